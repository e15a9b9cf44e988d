// Command chaos holds the ingest service to its promise: senders over HTTP, several
// ingest nodes on one store, and meanwhile the nodes and the engine are killed and
// stopped, the store is cut off and refuses with every class of error, spools reach
// their limit and, as root, a disk runs full under one. Then everything drains, and what was acknowledged is compared with
// what is stored. It prints one JSON line and fails unless that agrees.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

func main() {
	seconds := flag.Int("seconds", 120, "how long faults go on")
	seed := flag.Uint64("seed", 1, "another seed, other faults")
	nodes := flag.Int("nodes", 3, "ingest nodes on the store")
	bin := flag.String("bin", "bin", "directory of ingest and engine")
	verbose := flag.Bool("v", false, "tell every fault")
	keep := flag.Bool("keep", false, "keep the directory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	level := slog.LevelWarn
	if *verbose {
		level = slog.LevelDebug
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	err := run(ctx, options{time.Duration(*seconds) * time.Second, *seed, *nodes, *bin, *keep, logger})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

type options struct {
	duration time.Duration
	seed     uint64
	nodes    int
	bin      string
	keep     bool
	logger   *slog.Logger
}

// result is the line that is printed.
type result struct {
	Check              string         `json:"check"`
	Seed               uint64         `json:"seed"`
	Seconds            int            `json:"seconds"`
	Nodes              int            `json:"nodes"`
	FullDisk           string         `json:"full_disk"`    // how: tmpfs, or the spool's limit only
	Acknowledged       int            `json:"acknowledged"` // records, repeats included
	Identities         int            `json:"identities"`
	Resent             int64          `json:"resent_bodies"`
	SpoolFull          int64          `json:"spool_full_answers"`
	Faults             map[string]int `json:"faults"`
	Retries            map[string]int `json:"insert_retries"`
	DeadLetters        int            `json:"dead_letters_reimported"`
	DrainSeconds       float64        `json:"drain_seconds"`
	AcknowledgedMinus  int            `json:"acknowledged_minus_stored"`
	StoredTwice        int            `json:"stored_twice"`
	NeverSent          int            `json:"stored_never_sent"`
	RecordsMissing     uint64         `json:"records_missing"`
	LogQuotes          int            `json:"records_quoted_in_logs"`
	FiguresEqual       bool           `json:"figures_equal"`
	FiguresComparedMin int            `json:"figure_rows_compared"`
	OK                 bool           `json:"ok"`
}

func run(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "retrylens-chaos-")
	if err != nil {
		return err
	}
	if !o.keep {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	if o.bin, err = filepath.Abs(o.bin); err != nil {
		return err
	}
	w, err := newWorld(ctx, o, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	r := &result{Check: "chaos-ingest", Seed: o.seed, Seconds: int(o.duration.Seconds()), Nodes: o.nodes, FullDisk: "limit"}
	if w.disk != nil {
		r.FullDisk = "tmpfs"
	}
	if err := w.suffer(ctx, r); err != nil {
		return err
	}
	if err := w.settle(ctx, r); err != nil {
		return err
	}
	if err := w.verify(ctx, r); err != nil {
		return err
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	fmt.Println(string(line))
	if !r.OK {
		return errors.New("what was acknowledged and what is stored differ")
	}
	return nil
}
