package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/format"
	"github.com/retrylens/retrylens/internal/ingest"
)

// maxShownRejects is how many bad lines are shown; all are counted and all go
// to RejectsFile.
const maxShownRejects = 20

// ErrDamaged is returned by an import of a file that broke off or is corrupt.
var ErrDamaged = errors.New("damaged")

// ErrNothingAccepted is returned by an import that accepted no line and refused
// some.
var ErrNothingAccepted = errors.New("no line was accepted")

// ImportOptions say what is imported, and where to.
type ImportOptions struct {
	Store       StoreOptions
	Migrate     bool     // also a store that is not embedded
	Tenant      string   // for records without one
	Files       []string // "-" is Streams.In
	RejectsFile string   // "" = only what is shown
	Streams     Streams
	Now         func() time.Time // nil = time.Now
}

// Import brings files of attempts into a store.
type Import struct {
	o       ImportOptions
	sources []ingest.Source

	mu      sync.Mutex // of what is below: rejects and progress come from one goroutine each
	meter   meter
	shown   int
	hidden  int
	rejects *ingest.RejectWriter
}

// NewImport checks the options, and that every file can be read.
func NewImport(o ImportOptions) (*Import, error) {
	if len(o.Files) == 0 {
		return nil, usagef("no file given; - reads standard input")
	}
	if stdins := countOf(o.Files, "-"); stdins > 1 {
		return nil, usagef("standard input (-) is given %d times", stdins)
	}
	if len(o.Tenant) > 64 {
		return nil, usagef("--tenant is longer than 64 bytes")
	}
	if path := sameAs(o.RejectsFile, o.Files); path != "" {
		return nil, usagef("--rejects would overwrite %s, which is to be imported", path)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	sources, err := ingest.FileSources(o.Streams.In, o.Files...)
	if err != nil {
		return nil, err
	}
	return &Import{o: o, sources: sources}, nil
}

// sameAs returns the one of the files that path is another name of.
func sameAs(path string, files []string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	for _, f := range files {
		if other, err := os.Stat(f); err == nil && info.Mode().IsRegular() && os.SameFile(info, other) {
			return f
		}
	}
	return ""
}

func countOf(words []string, word string) int {
	n := 0
	for _, w := range words {
		if w == word {
			n++
		}
	}
	return n
}

// Run imports and writes the summary to Streams.Out, also when it ends with an
// error once it has begun to store. Bad lines are no error unless there is no
// good one.
func (im *Import) Run(ctx context.Context) (err error) {
	closeRejects, err := im.openRejects()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeRejects()) }()
	store, err := OpenStore(ctx, im.o.Store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := store.writable(ctx, im.o.Migrate); err != nil {
		return err
	}
	return im.into(ctx, store)
}

func (im *Import) into(ctx context.Context, store *Store) error {
	retention, err := store.Retention(ctx)
	if err != nil {
		return err
	}
	importer, err := ingest.New(ingest.Options{
		Sink:          store,
		Limits:        func() retrylens.Limits { return retrylens.Limits{Now: im.o.Now(), Retention: retention} },
		DefaultTenant: im.o.Tenant,
		OnReject:      im.reject,
		Progress:      im.progress,
	})
	if err != nil {
		return err
	}
	im.meter = newMeter(im.o.Streams.Err, im.o.Now)
	sum, err := importer.Run(ctx, im.sources...)
	im.meter.finish()
	im.tellHidden()
	return errors.Join(err, im.summarize(sum, err == nil))
}

func (im *Import) summarize(sum ingest.Summary, complete bool) error {
	if sum.RejectedByReason == nil {
		sum.RejectedByReason = map[string]int64{}
	}
	if err := json.NewEncoder(im.o.Streams.Out).Encode(sum); err != nil {
		return fmt.Errorf("write the summary: %w", err)
	}
	switch {
	case !complete:
		return nil
	case len(sum.Damaged) > 0:
		return fmt.Errorf("%w: %s; what came before is stored, import it again when it is whole", ErrDamaged, format.Safe(strings.Join(sum.Damaged, ", ")))
	case sum.Accepted == 0 && sum.Rejected > 0:
		return fmt.Errorf("%w, %d were refused", ErrNothingAccepted, sum.Rejected)
	}
	return nil
}

func (im *Import) openRejects() (func() error, error) {
	if im.o.RejectsFile == "" {
		return func() error { return nil }, nil
	}
	f, err := os.OpenFile(im.o.RejectsFile, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--rejects: %w", err)
	}
	buffer := bufio.NewWriter(f)
	im.rejects = ingest.NewRejectWriter(buffer)
	return func() error { return errors.Join(im.rejects.Err(), buffer.Flush(), f.Close()) }, nil
}

func (im *Import) reject(r ingest.Reject) {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.rejects != nil {
		im.rejects.Write(r)
	}
	if im.shown == maxShownRejects {
		im.hidden++
		return
	}
	im.shown++
	im.meter.say(rejectLine(r))
}

// rejectLine is source:line: field: reason.
func rejectLine(r ingest.Reject) string {
	what := r.Reason
	if r.Field != "" {
		what = r.Field + ": " + what
	}
	return format.Safe(fmt.Sprintf("%s:%d: %s", r.Source, r.Line, what))
}

func (im *Import) progress(p ingest.Progress) {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.meter.update(p)
}

func (im *Import) tellHidden() {
	switch {
	case im.hidden == 0:
	case im.rejects != nil:
		im.meter.say(fmt.Sprintf("… and %d more bad lines, all in %s", im.hidden, im.o.RejectsFile))
	default:
		im.meter.say(fmt.Sprintf("… and %d more bad lines; --rejects FILE keeps them all", im.hidden))
	}
}
