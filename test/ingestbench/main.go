// Command ingestbench measures the ingest service: records a second that are
// acknowledged with fsync, CPU a record outside the engine, memory through an
// outage, memory under hostile senders; each beside a raw insert of the same
// records in the same run. It prints a section of docs/benchmarks.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/engine"
)

func main() {
	seconds := flag.Int("seconds", 8, "of each measurement")
	only := flag.String("only", "", "senders, raw, outage or hostile")
	outage := flag.Int("outage", 1_000_000, "records that come during the outage")
	bin := flag.String("bin", "bin", "directory of ingest and engine")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *bin, *only, time.Duration(*seconds)*time.Second, *outage)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ingestbench:", err)
		os.Exit(1)
	}
}

// bench is one run on an engine of its own.
type bench struct {
	bin, dir string
	store    string // address
	engine   *engine.Client
	length   time.Duration
	spools   int
}

func run(ctx context.Context, bin, only string, length time.Duration, outage int) (err error) {
	dir, err := os.MkdirTemp("", "retrylens-ingestbench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if bin, err = filepath.Abs(bin); err != nil {
		return err
	}
	e, err := engine.Open(ctx, engine.Options{Dir: filepath.Join(dir, "data"), Binary: filepath.Join(bin, "engine"), Linger: time.Second})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close(), waitGone(e, filepath.Join(dir, "data"))) }()
	at, err := e.Endpoint(ctx)
	if err != nil {
		return err
	}
	u := url.URL{Scheme: "clickhouse", User: url.UserPassword(at.User, at.Password), Host: at.TCPAddr, Path: "/retrylens"}
	b := &bench{bin: bin, dir: dir, store: u.String(), engine: e, length: length}
	fmt.Printf("## Ingest service\n\nBodies of 500 records of 460–600 bytes, fsync, sender, service and engine on the same machine. CPU is that of the ingest process until\neverything was drained; RSS is its highest.\n\n")
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{{"senders", b.senders}, {"raw", b.raw}, {"outage", func(ctx context.Context) error { return b.outage(ctx, outage) }}, {"hostile", b.hostile}} {
		if only != "" && only != step.name {
			continue
		}
		if err := step.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// senders is the table of acknowledged records.
func (b *bench) senders(ctx context.Context) error {
	fmt.Printf("| senders | body | acknowledged records/s | CPU-µs a record | of it to the answer | RSS MiB |\n|---:|---|---:|---:|---:|---:|\n")
	for _, c := range []struct {
		n        int
		encoding string
	}{{1, ""}, {8, ""}, {64, ""}, {8, "gzip"}, {8, "zstd"}} {
		whole, err := b.measure(ctx, c.n, c.encoding, b.store)
		if err != nil {
			return err
		}
		accept, err := b.measure(ctx, c.n, c.encoding, "clickhouse://127.0.0.1:1/x") // nobody drains
		if err != nil {
			return err
		}
		name := c.encoding
		if name == "" {
			name = "plain"
		}
		fmt.Printf("| %d | %s | %.0f | %.2f | %.2f | %d |\n", c.n, name, whole.rate(), whole.cpuMicros(), accept.cpuMicros(), whole.rss>>20)
	}
	fmt.Println()
	return nil
}

// figures of one measurement.
type figures struct {
	records int64
	took    time.Duration
	cpu     float64
	rss     int64
}

func (f figures) rate() float64      { return float64(f.records) / f.took.Seconds() }
func (f figures) cpuMicros() float64 { return 1e6 * f.cpu / float64(f.records) }

func (b *bench) measure(ctx context.Context, senders int, encoding, store string) (f figures, err error) {
	s, err := b.serve(ctx, store)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	idle, err := s.cpu()
	if err != nil {
		return f, err
	}
	began := time.Now()
	if f.records, err = s.load(ctx, senders, encoding, began.Add(b.length)); err != nil {
		return f, err
	}
	f.took = time.Since(began)
	if store == b.store {
		if err := s.drained(ctx); err != nil {
			return f, err
		}
	}
	busy, err := s.cpu()
	f.cpu = busy - idle
	f.rss = s.highestRSS()
	return f, err
}

// raw inserts the same records without anything before.
func (b *bench) raw(ctx context.Context) (err error) {
	store, err := clickhouse.Open(ctx, clickhouse.Config{URL: b.store})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if _, err := store.Migrate(ctx); err != nil {
		return err
	}
	batch := attempts(20_000)
	cpu, began, n := ownCPU(), time.Now(), 0
	for time.Since(began) < b.length {
		if err := store.Write(ctx, batch); err != nil {
			return err
		}
		n += len(batch)
	}
	took := time.Since(began).Seconds()
	fmt.Printf("Baseline, Store.Write of the same records from memory, batches of 20,000, one connection: %.0f records/s, %.2f CPU-µs a record in the client.\n\n",
		float64(n)/took, 1e6*(ownCPU()-cpu)/float64(n))
	return nil
}

// outage fills the spool while the store is away, then drains it.
func (b *bench) outage(ctx context.Context, records int) (err error) {
	spool := b.newSpool()
	s, err := b.serveOn(ctx, "clickhouse://127.0.0.1:1/x", spool)
	if err != nil {
		return err
	}
	sent, err := s.loadRecords(ctx, 8, records)
	rss, bytes := s.highestRSS(), s.spoolBytes()
	if err := errors.Join(err, s.stop()); err != nil {
		return err
	}
	if s, err = b.serveOn(ctx, b.store, spool); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	began := time.Now()
	if err := s.drained(ctx); err != nil {
		return err
	}
	took := time.Since(began)
	fmt.Printf("An outage of the store during which %d records came (an hour at %d a second): spool %d MiB, RSS at most %d MiB; then drained in %.1f s, %.0f records/s, RSS at most %d MiB.\n\n",
		sent, sent/3600, bytes>>20, rss>>20, took.Seconds(), float64(sent)/took.Seconds(), s.highestRSS()>>20)
	return nil
}
