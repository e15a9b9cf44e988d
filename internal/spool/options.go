package spool

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Durability says when an append counts as done.
type Durability string

// Durabilities.
const (
	FSync  Durability = "fsync"  // on disk: survives a power cut
	OS     Durability = "os"     // written to the operating system: survives the end of the process
	Memory Durability = "memory" // taken over: the end of the process loses what was not written yet
)

// ParseDurability reads a Durability.
func ParseDurability(s string) (Durability, error) {
	switch d := Durability(s); d {
	case FSync, OS, Memory:
		return d, nil
	}
	return "", fmt.Errorf("spool: durability must be memory, os or fsync, got %.40q", s)
}

// Options say where a spool is and how it behaves. Only Dir must be given.
type Options struct {
	Dir          string
	Durability   Durability    // "" = FSync
	LimitBytes   int64         // of all segments; 0 = DefaultLimitBytes
	SegmentRows  int           // a segment is sealed when it has so many; 0 = DefaultSegmentRows
	SegmentBytes int64         // or takes so much; 0 = DefaultSegmentBytes
	SegmentAge   time.Duration // or is so old; 0 = DefaultSegmentAge
	FS           FS            // nil = Disk
	Logger       *slog.Logger  // nil = none
}

// The defaults of Options.
const (
	DefaultLimitBytes   = 4 << 30
	DefaultSegmentRows  = 20_000
	DefaultSegmentBytes = 16 << 20
	DefaultSegmentAge   = time.Second
)

// While more than backlogSegments wait to be drained there is no hurry: segments
// may become backlogFactor times as old, so that an outage leaves fewer.
const (
	backlogSegments = 4
	backlogFactor   = 10
)

// Errors of a spool.
var (
	// ErrFull: the segments reach the limit, or the disk is full. Nothing of the
	// batch was kept.
	ErrFull = errors.New("spool: full")
	// ErrTooLarge: the batch alone is more than the limit. It never fits.
	ErrTooLarge = errors.New("spool: larger than the spool")
	// ErrClosed: the spool was closed.
	ErrClosed = errors.New("spool: closed")
)

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Dir == "":
		return o, errors.New("spool: Options.Dir must be given")
	case o.LimitBytes < 0:
		return o, fmt.Errorf("spool: Options.LimitBytes must not be negative, got %d", o.LimitBytes)
	case o.SegmentRows < 0:
		return o, fmt.Errorf("spool: Options.SegmentRows must not be negative, got %d", o.SegmentRows)
	case o.SegmentBytes < 0:
		return o, fmt.Errorf("spool: Options.SegmentBytes must not be negative, got %d", o.SegmentBytes)
	case o.SegmentAge < 0:
		return o, fmt.Errorf("spool: Options.SegmentAge must not be negative, got %v", o.SegmentAge)
	}
	o.Durability = defaulted(o.Durability, FSync)
	o.LimitBytes = defaulted(o.LimitBytes, DefaultLimitBytes)
	o.SegmentRows = defaulted(o.SegmentRows, DefaultSegmentRows)
	o.SegmentBytes = defaulted(o.SegmentBytes, DefaultSegmentBytes)
	o.SegmentAge = defaulted(o.SegmentAge, DefaultSegmentAge)
	if o.FS == nil {
		o.FS = Disk{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	_, err := ParseDurability(string(o.Durability))
	return o, err
}

func defaulted[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
