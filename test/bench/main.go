// Command bench measures what docs/benchmarks.md says, each figure beside a
// baseline of the same run, and rewrites that file.
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
	"runtime"
	"strings"
	"time"

	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/engine"
)

func main() {
	out := flag.String("out", "", "file to write; empty = standard output")
	quick := flag.Bool("quick", false, "a tenth of the rows, for a try")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *out, *quick)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is one run: an engine of its own, and the text so far.
type bench struct {
	engine *engine.Client
	rows   int // attempts of the simulated day
	text   strings.Builder
}

func run(ctx context.Context, out string, quick bool) (err error) {
	dir, err := os.MkdirTemp("", "retrylens-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary, err := filepath.Abs("bin/engine")
	if err != nil {
		return err
	}
	e, err := engine.Open(ctx, engine.Options{Dir: dir, Binary: binary, Linger: time.Second})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopEngine(e)) }()
	b := &bench{engine: e, rows: 2_600_000}
	if quick {
		b.rows /= 10
	}
	b.head()
	for _, part := range []func(context.Context) error{b.decode, b.importRows, b.reports} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return b.write(out)
}

// stopEngine ends the engine that this run started, by its pid, and waits.
func stopEngine(e *engine.Client) error {
	at, err := e.Endpoint(context.Background())
	if err != nil {
		return err
	}
	p, err := os.FindProcess(at.PID)
	if err != nil {
		return err
	}
	if err := errors.Join(e.Close(), p.Signal(os.Interrupt)); err != nil {
		return err
	}
	for range 300 {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", at.PID)); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("the engine (pid %d) did not end", at.PID)
}

func (b *bench) write(out string) error {
	if out == "" {
		_, err := os.Stdout.WriteString(b.text.String())
		return err
	}
	return os.WriteFile(out, []byte(b.text.String()), 0o644)
}

func (b *bench) printf(format string, args ...any) {
	fmt.Fprintf(&b.text, format, args...)
	fmt.Fprintf(os.Stderr, format, args...)
}

func (b *bench) head() {
	b.printf("# Benchmarks\n\nWritten by `make bench` (`go run ./test/bench -out docs/benchmarks.md`). Every figure stands beside a baseline or a target of the same run.\n\n")
	b.printf("Machine: %s, %d CPUs, %s, %s/%s, %s.\n\n", cpuModel(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, time.Now().UTC().Format("2006-01-02"))
}

func cpuModel() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown CPU"
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown CPU"
}

// config is that of a database on the bench's engine.
func (b *bench) config(ctx context.Context, database string) (clickhouse.Config, error) {
	at, err := b.engine.Endpoint(ctx)
	if err != nil {
		return clickhouse.Config{}, err
	}
	u := url.URL{Scheme: "clickhouse", User: url.UserPassword(at.User, at.Password), Host: at.TCPAddr, Path: "/" + database}
	return clickhouse.Config{URL: u.String(), Dial: b.engine.DialTCP}, nil
}

func (b *bench) store(ctx context.Context, database string) (*clickhouse.Store, error) {
	c, err := b.config(ctx, database)
	if err != nil {
		return nil, err
	}
	s, err := clickhouse.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	if _, err := s.Migrate(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
