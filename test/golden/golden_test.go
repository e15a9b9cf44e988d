package golden

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/engine"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
	"github.com/retrylens/retrylens/internal/ingest"
)

var summaryLine = flag.Bool("summary-line", false, "print the result as one JSON line")

const goldenDir = "../../internal/metrics/testdata/golden"

// asOf of the golden reports; it is also "now" at the door, so that the test
// does not age.
var asOf = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func TestMain(m *testing.M) { os.Exit(enginetest.Run(m)) }

// ways of importing the same lines; each ends in the same figures.
var ways = []struct {
	name string
	load func(t *testing.T, s *clickhouse.Store, lines [][]byte)
}{
	{"once", func(t *testing.T, s *clickhouse.Store, lines [][]byte) { load(t, s, lines) }},
	{"twice", func(t *testing.T, s *clickhouse.Store, lines [][]byte) { load(t, s, lines); load(t, s, lines) }},
	{"pieces_of_100", func(t *testing.T, s *clickhouse.Store, lines [][]byte) {
		for piece := range slices.Chunk(lines, 100) {
			load(t, s, piece)
		}
	}},
	{"reversed", func(t *testing.T, s *clickhouse.Store, lines [][]byte) {
		backwards := slices.Clone(lines)
		slices.Reverse(backwards)
		load(t, s, backwards)
	}},
	{"eight_importers", importByEight},
}

func importByEight(t *testing.T, s *clickhouse.Store, lines [][]byte) {
	var wg sync.WaitGroup
	for i := range 8 {
		// Neighbours overlap by half, so that the same rows race.
		part := lines[i*len(lines)/9 : (i+2)*len(lines)/9]
		wg.Go(func() { load(t, s, part) })
	}
	wg.Wait()
}

// load runs the importer that bin/ingest import runs.
func load(t *testing.T, s *clickhouse.Store, lines [][]byte) {
	t.Helper()
	im, err := ingest.New(ingest.Options{
		Sink: s, BatchRows: 2000, Limits: func() retrylens.Limits { return retrylens.Limits{Now: asOf, Retention: 400 * 24 * time.Hour} },
		OnReject: func(r ingest.Reject) { t.Errorf("rejected: %+v", r) },
	})
	if err != nil {
		t.Error(err)
		return
	}
	summary, err := im.Run(context.Background(), ingest.ReaderSource("golden", bytes.NewReader(bytes.Join(lines, []byte("\n")))))
	if err != nil || summary.Accepted != int64(len(lines)) {
		t.Errorf("import: accepted %d of %d: %v", summary.Accepted, len(lines), err)
	}
}

func TestGoldenReports(t *testing.T) {
	lines := goldenLines(t)
	result := map[string]int{}
	e := enginetest.Start(t)
	for i, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			s := migrated(t, clickhouse.Config{URL: address(t, e, fmt.Sprint("retrylens_", i)), Dial: e.DialTCP})
			way.load(t, s, lines)
			result[way.name] = compareAll(t, s)
		})
	}
	t.Run("two_shards", func(t *testing.T) {
		s := shards(t)
		load(t, s, lines)
		result["two_shards"] = compareAll(t, s)
	})
	printSummary(t, result)
}

func printSummary(t *testing.T, equal map[string]int) {
	if !*summaryLine {
		return
	}
	line, err := json.Marshal(map[string]any{"check": "verify-golden", "reports_equal": equal, "reports": len(goldenQueries), "ok": !t.Failed()})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(line))
}

func goldenLines(t *testing.T) [][]byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(goldenDir, "attempts.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSpace(data), []byte("\n"))
}

func address(t *testing.T, e *engine.Client, database string) string {
	t.Helper()
	at, err := e.Endpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	u := url.URL{Scheme: "clickhouse", User: url.UserPassword(at.User, at.Password), Host: at.TCPAddr, Path: "/" + database}
	return u.String()
}

func migrated(t *testing.T, c clickhouse.Config) *clickhouse.Store {
	t.Helper()
	s, err := clickhouse.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// shards are two engines behind Distributed tables; the first one is spoken to.
func shards(t *testing.T) *clickhouse.Store {
	t.Helper()
	var stores []*clickhouse.Store
	for _, e := range enginetest.StartCluster(t, 2) {
		dial := func(ctx context.Context) (net.Conn, error) { return e.DialTCP(ctx) }
		stores = append(stores, migrated(t, clickhouse.Config{
			URL: address(t, e, "retrylens"), Dial: dial, Cluster: enginetest.Cluster, EachNode: true,
		}))
	}
	t.Cleanup(func() { wholeOperations(t, stores) })
	return stores[0]
}

// wholeOperations checks that both shards hold rows and no operation is split.
func wholeOperations(t *testing.T, stores []*clickhouse.Store) {
	seen := map[string]int{}
	for i, s := range stores {
		ops, err := s.LocalOperations(context.Background())
		if err != nil {
			t.Error(err)
		}
		if len(ops) < 500 {
			t.Errorf("shard %d holds %d operations only", i, len(ops))
		}
		for _, op := range ops {
			if other, ok := seen[op]; ok && other != i {
				t.Errorf("operation %s is on both shards", op)
			}
			seen[op] = i
		}
	}
}
