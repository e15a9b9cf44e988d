package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

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
		r.LogQuotes += len(recordName.FindAll(log, -1))
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

var retryLine = regexp.MustCompile(`a segment waits.* kind=(\w+)`)

// recordName is what every operation's name begins with: see sender.histories.
var recordName = regexp.MustCompile(`\bs\d+-\d+-`)

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
	r.OK = r.AcknowledgedMinus == 0 && r.StoredTwice == 0 && r.NeverSent == 0 && r.RecordsMissing == 0 && r.FiguresEqual && r.LogQuotes == 0 && r.Acknowledged > 0
	return nil
}

func (w *world) compareRows(ctx context.Context, want map[identity]uint64, r *result) error {
	stored, err := w.readStored(ctx)
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
	// A revision that moves the start is another row by design, which readers de-duplicate:
	// twice is the same version twice, or the same place in the table twice.
	return w.eachRow(ctx, "SELECT greatest(count() - uniqExact(tenant, logical_id, hop, attempt, version),"+
		" count() - uniqExact(tenant, logical_id, hop, attempt, toStartOfMinute(operation_started_at))) FROM attempts FINAL", func(columns []string) error {
		r.StoredTwice, err = strconv.Atoi(columns[0])
		return err
	})
}

func (w *world) readStored(ctx context.Context) (map[identity]uint64, error) {
	stored := map[identity]uint64{}
	err := w.eachRow(ctx, "SELECT tenant, logical_id, hop, attempt, max(version) FROM attempts GROUP BY tenant, logical_id, hop, attempt", func(c []string) error {
		attempt, err := strconv.ParseUint(c[3], 10, 32)
		if err != nil {
			return err
		}
		stored[identity{c[0], c[1], c[2], uint32(attempt)}], err = strconv.ParseUint(c[4], 10, 64)
		return err
	})
	return stored, err
}

// query asks the engine itself, past the proxy and past what is tested.
func (w *world) query(ctx context.Context, statement string) (io.ReadCloser, error) {
	at, err := w.engine.Endpoint(ctx)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+at.HTTPAddr+"/?database=retrylens", strings.NewReader(statement))
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth(at.User, at.Password)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
	return nil, fmt.Errorf("%s: %d %s", statement, resp.StatusCode, text)
}

// eachRow hands over the columns of every row as texts. No text of a history
// needs an escape.
func (w *world) eachRow(ctx context.Context, statement string, row func(columns []string) error) error {
	rows, err := w.query(ctx, statement+" FORMAT TabSeparated")
	if err != nil {
		return err
	}
	defer rows.Close()
	lines := bufio.NewScanner(rows)
	for lines.Scan() {
		if err := row(strings.Split(lines.Text(), "\t")); err != nil {
			return err
		}
	}
	return lines.Err()
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
