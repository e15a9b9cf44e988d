package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/metrics"
)

// reimport brings the dead letters back, as an operator would.
func (w *world) reimport(ctx context.Context, r *result) error {
	r.Retries = map[string]int{}
	for _, n := range w.nodes {
		log, err := os.ReadFile(n.dir + ".log")
		if err != nil {
			return err
		}
		for _, m := range retryLine.FindAllSubmatch(log, -1) {
			r.Retries[string(m[1])]++
		}
		file := filepath.Join(n.dir, "dead-letters.ndjson")
		letters, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		r.DeadLetters += bytes.Count(letters, []byte("\n"))
		out, err := exec.CommandContext(ctx, filepath.Join(w.o.bin, "ingest"), "import", "--store", w.store, file).CombinedOutput()
		if err != nil {
			return fmt.Errorf("import of dead letters: %w: %s", err, out)
		}
	}
	return nil
}

var retryLine = regexp.MustCompile(`a segment waits for the store.* kind=(\w+)`)

// identity of an attempt.
type identity struct {
	tenant, logicalID, hop string
	attempt                uint32
}

// verify compares what was acknowledged with what is stored.
func (w *world) verify(ctx context.Context, r *result) error {
	want := map[identity]uint64{}
	for i := range w.crowd.acknowledged {
		a := &w.crowd.acknowledged[i]
		id := identity{a.Tenant, a.LogicalID, string(a.Hop), uint32(a.Attempt)}
		want[id] = max(want[id], a.Version())
	}
	r.Identities = len(want)
	if err := w.compareRows(ctx, want, r); err != nil {
		return err
	}
	if err := w.compareFigures(ctx, r); err != nil {
		return err
	}
	r.OK = r.AcknowledgedMinus == 0 && r.StoredTwice == 0 && r.NeverSent == 0 && r.RecordsMissing == 0 && r.FiguresEqual && r.Acknowledged > 0
	return nil
}

func (w *world) compareRows(ctx context.Context, want map[identity]uint64, r *result) error {
	o, err := ch.ParseDSN(w.store)
	if err != nil {
		return err
	}
	conn, err := ch.Open(o)
	if err != nil {
		return err
	}
	defer conn.Close()
	stored, err := readStored(ctx, conn)
	if err != nil {
		return err
	}
	for id, version := range want {
		if stored[id] != version {
			r.AcknowledgedMinus++
			w.o.logger.Warn("missing", "id", fmt.Sprintf("%+v", id), "want", version, "stored", stored[id])
		}
	}
	for id := range stored {
		if _, ok := want[id]; !ok {
			r.NeverSent++
		}
	}
	var twice int64
	err = conn.QueryRow(ctx, "SELECT count() - uniqExact(tenant, logical_id, hop, attempt, version) FROM attempts FINAL").Scan(&twice)
	r.StoredTwice = int(twice)
	return err
}

func readStored(ctx context.Context, conn driver.Conn) (map[identity]uint64, error) {
	rows, err := conn.Query(ctx, "SELECT tenant, logical_id, toString(hop), attempt, max(version) FROM attempts GROUP BY tenant, logical_id, hop, attempt")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	stored := map[identity]uint64{}
	for rows.Next() {
		var id identity
		var version uint64
		if err := rows.Scan(&id.tenant, &id.logicalID, &id.hop, &id.attempt, &version); err != nil {
			return nil, err
		}
		stored[id] = version
	}
	return stored, rows.Err()
}

// compareFigures folds what was acknowledged with the reference.
func (w *world) compareFigures(ctx context.Context, r *result) (err error) {
	store, err := clickhouse.Open(ctx, clickhouse.Config{URL: w.store})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	r.FiguresEqual = true
	asOf := time.Now().UTC().Truncate(time.Millisecond)
	for _, q := range []metrics.Query{
		{AsOf: asOf},
		{AsOf: asOf, GroupBy: []metrics.Dimension{metrics.DimProvider, metrics.DimModel}},
		{AsOf: asOf, GroupBy: []metrics.Dimension{metrics.DimTenant, metrics.DimService}, Bucket: time.Hour},
	} {
		got, err := store.Report(ctx, q)
		if err != nil {
			return err
		}
		want, err := metrics.Fold(w.crowd.acknowledged, q)
		if err != nil {
			return err
		}
		r.FiguresComparedMin += len(want.Rows)
		r.RecordsMissing += missing(got.Completeness, want.Completeness)
		if !sameRows(got.Rows, want.Rows, q) {
			r.FiguresEqual = false
		}
	}
	return nil
}

// missing is how far the figure of lost records is from that of the senders,
// who left gaps themselves.
func missing(got, want *metrics.Completeness) uint64 {
	if got == nil || want == nil {
		return 1
	}
	g, w := got.RecordsMissing.Or(0), want.RecordsMissing.Or(0)
	return max(g, w) - min(g, w)
}

// sameRows compares everything but quantiles, which are sketches.
func sameRows(got, want []metrics.Row, q metrics.Query) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range want {
		g, w := got[i], want[i]
		g.Latency, g.RetryTax = w.Latency, w.RetryTax
		if !bytes.Equal(g.AppendJSON(nil, q.GroupBy), w.AppendJSON(nil, q.GroupBy)) {
			return false
		}
	}
	return true
}
