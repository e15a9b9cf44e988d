// Command rollupbench measures the rollups on attempts of 90 simulated days, made
// inside an engine of its own, and writes a section of docs/benchmarks.md. It is
// bounded: 20 GB of disk and 15 minutes of work.
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
	"strconv"
	"strings"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/engine"
)

const (
	maxTime = 15 * time.Minute
	maxDisk = 20 << 30
)

func main() {
	sizes := flag.String("attempts", "3000000,30000000", "attempts of each run, comma-separated")
	limit := flag.Duration("limit", maxTime, "`DURATION` after which it gives up, for slow machines")
	dir := flag.String("dir", "", "directory for the data, removed at the end; empty = a temporary one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, cancel := context.WithTimeout(ctx, *limit)
	err := run(ctx, *sizes, *dir)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "rollupbench:", err)
		os.Exit(1)
	}
}

// bench is one run: an engine of its own.
type bench struct {
	engine *engine.Client
	began  time.Time
}

func run(ctx context.Context, sizes, parent string) (err error) {
	dir, err := os.MkdirTemp(parent, "retrylens-rollupbench-")
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
	b := &bench{engine: e, began: time.Now()}
	var results []result
	for text := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1000 {
			return fmt.Errorf("-attempts: %q is no number of at least 1000", text)
		}
		r, err := b.size(ctx, n)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	five, err := b.fiveMinutes(ctx)
	if err != nil {
		return err
	}
	write(os.Stdout, results, five)
	return nil
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

// address is that of a database of the engine.
func (b *bench) address(ctx context.Context, database string) (string, error) {
	at, err := b.engine.Endpoint(ctx)
	if err != nil {
		return "", err
	}
	u := url.URL{Scheme: "clickhouse", User: url.UserPassword(at.User, at.Password), Host: at.TCPAddr, Path: "/" + database}
	return u.String(), nil
}

func (b *bench) connect(ctx context.Context, database string) (*clickhouse.Store, error) {
	address, err := b.address(ctx, database)
	if err != nil {
		return nil, err
	}
	return clickhouse.Open(ctx, clickhouse.Config{URL: address, Dial: b.engine.DialTCP})
}

// open is a migrated store in a database of its own, and a plain connection.
func (b *bench) open(ctx context.Context, database string) (*clickhouse.Store, driver.Conn, error) {
	address, err := b.address(ctx, database)
	if err != nil {
		return nil, nil, err
	}
	s, err := b.connect(ctx, database)
	if err != nil {
		return nil, nil, err
	}
	if _, err := s.Migrate(ctx); err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	o, err := ch.ParseDSN(address)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	o.ReadTimeout = time.Hour
	conn, err := ch.Open(o)
	return s, conn, err
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%6.1fs  "+format+"\n", append([]any{time.Since(b.began).Seconds()}, args...)...)
}
