package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
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
	Scenario  string // "" = masked_outage
	Seed      uint64
	Hours     float64       // 0 = 24; a trace brings its own
	Start     string        // see query.ParseTime; "" = so that it ends now
	PerMinute float64       // 0 = 60; a trace brings its own
	Trace     string        // CSV of arrivals, "" = random ones
	Size      int           // 1..5; 0 = 3
	At        time.Duration // of the incident; 0 = a third into the time
	For       time.Duration // 0 = the scenario's own
	Out       string        // NDJSON; compressed by .gz, .zst; "-" or "" = Streams.Out
	Truth     string        // NDJSON of what was so and when; "" = none
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

// ScenarioNames are those of all scenarios.
func ScenarioNames() []string { return sim.Names() }

// ListScenarios writes a line for each.
func ListScenarios(w io.Writer) error {
	for _, s := range sim.Scenarios() {
		if _, err := fmt.Fprintf(w, "%-22s %s\n", s.Name, s.Summary); err != nil {
			return err
		}
	}
	return nil
}

// NewSimulate checks the options and reads the trace.
func NewSimulate(o SimulateOptions) (*Simulate, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Simulate{o: o, sim: sim.Options{
		Scenario: o.Scenario, Seed: o.Seed, Duration: time.Duration(o.Hours * float64(time.Hour)), OperationsPerMinute: o.PerMinute,
		Size: o.Size, At: o.At, For: o.For,
	}}
	if err := s.readTrace(); err != nil {
		return nil, err
	}
	if d := s.duration(); o.At > d {
		return nil, usagef("--at must be within the %v simulated, got %v", d, o.At)
	}
	return s, s.setStart()
}

func (o *SimulateOptions) validate() error {
	switch {
	case !(o.Hours >= 0 && o.Hours <= maxSimulatedHours):
		return usagef("--hours must be within 0..%d, got %v", maxSimulatedHours, o.Hours)
	case !(o.PerMinute >= 0 && o.PerMinute <= 1e6):
		return usagef("--ops-per-minute must be within 0..1000000, got %v", o.PerMinute)
	case o.Trace != "" && (o.Hours != 0 || o.PerMinute != 0):
		return usagef("--trace brings its own times: leave --hours and --ops-per-minute out")
	case o.Scenario != "" && !slices.Contains(sim.Names(), o.Scenario):
		return usagef("--scenario must be one of %s, got %.40q", strings.Join(sim.Names(), ", "), o.Scenario)
	case o.Size < 0 || o.Size > sim.Sizes:
		return usagef("--size must be within 1..%d, got %d", sim.Sizes, o.Size)
	case o.At < 0:
		return usagef("--at must not be negative, got %v", o.At)
	case o.For < 0:
		return usagef("--for must not be negative, got %v", o.For)
	case o.Truth != "" && o.Truth == o.Out:
		return usagef("--truth and --out must be different files, both are %s", o.Out)
	}
	return nil
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

// Run writes the records, then the truth.
func (s *Simulate) Run(ctx context.Context) error {
	simulation, err := sim.Build(s.sim)
	if err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	records, err := s.writeRecords(ctx, simulation)
	if err != nil {
		return err
	}
	if err := s.writeTruth(simulation.Truth); err != nil {
		return err
	}
	err = s.tell("simulated %s from %s with seed %d: %d records\n", s.duration().Round(time.Second), s.sim.Start.Format(time.RFC3339), s.o.Seed, records)
	for _, t := range simulation.Truth {
		err = errors.Join(err, s.tell("truth: %s\n", t))
	}
	return err
}

func (s *Simulate) tell(format string, args ...any) error {
	_, err := fmt.Fprintf(s.o.Streams.Err, format, args...)
	return err
}

func (s *Simulate) writeRecords(ctx context.Context, simulation *sim.Simulation) (n uint64, err error) {
	out, err := openNDJSON(s.o.Out, s.o.Streams.Out)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	var line []byte
	stats, err := simulation.World.Run(ctx, func(a *retrylens.Attempt) error {
		line = append(a.AppendJSON(line[:0]), '\n')
		_, err := out.Write(line)
		return err
	})
	if err != nil {
		return stats.Records, fmt.Errorf("simulate: %w", err)
	}
	return stats.Records, nil
}

func (s *Simulate) writeTruth(truth []sim.Truth) error {
	if s.o.Truth == "" {
		return nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for _, t := range truth {
		if err := e.Encode(t); err != nil {
			return fmt.Errorf("--truth: %w", err)
		}
	}
	if err := os.WriteFile(s.o.Truth, b.Bytes(), 0o600); err != nil {
		return fmt.Errorf("--truth: %w", err)
	}
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
