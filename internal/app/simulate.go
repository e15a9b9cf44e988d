package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/query"
	"github.com/retrylens/retrylens/internal/sim"
)

// SimulateOptions say what is simulated, and where it is written.
type SimulateOptions struct {
	Seed      uint64
	Hours     float64 // 0 = 24; a trace brings its own
	Start     string  // see query.ParseTime; "" = so that it ends now
	PerMinute float64 // 0 = 60; a trace brings its own
	Trace     string  // CSV of arrivals, "" = random ones
	Out       string  // NDJSON; compressed by .gz, .zst; "-" or "" = Streams.Out
	Streams   Streams
	Now       func() time.Time // nil = time.Now
}

// Simulate writes the attempts of a simulated fleet.
type Simulate struct {
	o   SimulateOptions
	sim sim.Options
}

// maxSimulatedHours is a year and a day.
const maxSimulatedHours = 366 * 24

// NewSimulate checks the options and reads the trace.
func NewSimulate(o SimulateOptions) (*Simulate, error) {
	switch {
	case !(o.Hours >= 0 && o.Hours <= maxSimulatedHours):
		return nil, usagef("--hours must be within 0..%d, got %v", maxSimulatedHours, o.Hours)
	case !(o.PerMinute >= 0 && o.PerMinute <= 1e6):
		return nil, usagef("--per-minute must be within 0..1000000, got %v", o.PerMinute)
	case o.Trace != "" && (o.Hours != 0 || o.PerMinute != 0):
		return nil, usagef("--trace brings its own times: leave --hours and --per-minute out")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Simulate{o: o, sim: sim.Options{
		Seed: o.Seed, Duration: time.Duration(o.Hours * float64(time.Hour)), OperationsPerMinute: o.PerMinute,
	}}
	if err := s.readTrace(); err != nil {
		return nil, err
	}
	return s, s.setStart()
}

func (s *Simulate) readTrace() error {
	if s.o.Trace == "" {
		return nil
	}
	f, err := os.Open(s.o.Trace)
	if err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	defer f.Close()
	if s.sim.Trace, err = sim.ParseTrace(f); err != nil {
		return fmt.Errorf("--trace %s: %w", s.o.Trace, err)
	}
	return nil
}

// setStart takes the start asked for, or the one with which it ends now.
func (s *Simulate) setStart() error {
	now := s.o.Now()
	if s.o.Start == "" {
		s.sim.Start = now.Add(-s.duration()).UTC().Truncate(time.Minute)
		return nil
	}
	var err error
	if s.sim.Start, err = query.ParseTime(s.o.Start, now); err != nil {
		return usagef("--start: %w", err)
	}
	return nil
}

func (s *Simulate) duration() time.Duration {
	switch n := len(s.sim.Trace); {
	case n > 0:
		return s.sim.Trace[n-1].At
	case s.sim.Duration > 0:
		return s.sim.Duration
	}
	return 24 * time.Hour
}

// Run writes the records.
func (s *Simulate) Run(ctx context.Context) (err error) {
	out, err := openNDJSON(s.o.Out, s.o.Streams.Out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	records := 0
	var line []byte
	err = sim.Run(ctx, s.sim, func(a *retrylens.Attempt) error {
		records++
		line = append(a.AppendJSON(line[:0]), '\n')
		_, err := out.Write(line)
		return err
	})
	if err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	fmt.Fprintf(s.o.Streams.Err, "simulated %s from %s with seed %d: %d records\n",
		s.duration().Round(time.Second), s.sim.Start.Format(time.RFC3339), s.o.Seed, records)
	return nil
}

// ndjsonFile is a buffered, perhaps compressed file; Close tells every error.
type ndjsonFile struct {
	io.Writer
	closers []func() error
}

func (f *ndjsonFile) Close() error {
	var errs []error
	for i := len(f.closers) - 1; i >= 0; i-- {
		errs = append(errs, f.closers[i]())
	}
	return errors.Join(errs...)
}

func openNDJSON(path string, stdout io.Writer) (*ndjsonFile, error) {
	out := &ndjsonFile{Writer: stdout}
	if path != "" && path != "-" {
		f, err := os.Create(path)
		if err != nil {
			return nil, fmt.Errorf("--out: %w", err)
		}
		out.Writer, out.closers = f, append(out.closers, f.Close)
	}
	buffer := bufio.NewWriterSize(out.Writer, 1<<20)
	out.Writer, out.closers = buffer, append(out.closers, buffer.Flush)
	switch {
	case strings.HasSuffix(path, ".gz"):
		z := gzip.NewWriter(buffer)
		out.Writer, out.closers = z, append(out.closers, z.Close)
	case strings.HasSuffix(path, ".zst"):
		z, err := zstd.NewWriter(buffer)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("--out: %w", err), out.Close())
		}
		out.Writer, out.closers = z, append(out.closers, z.Close)
	}
	return out, nil
}
