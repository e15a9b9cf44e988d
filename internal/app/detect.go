package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/detect"
	"github.com/retrylens/retrylens/internal/detect/replay"
	"github.com/retrylens/retrylens/internal/ingest"
	"github.com/retrylens/retrylens/internal/query"
)

// DetectOptions say which history is replayed.
type DetectOptions struct {
	Store   StoreOptions
	Records []string // files of attempts, "-" is Streams.In; none = the store
	From    string   // see query.ParseTime; of the store required
	To      string   // "" = until now, of files until their end
	Learn   string   // a duration: how much before From baselines are learned from; "" = DefaultLearn
	Tenant  string   // of records that name none
	Changes bool     // write only evaluations whose state is another than before
	Streams Streams
	Now     func() time.Time // nil = time.Now
}

// DefaultLearn is how much history is learned from before what is asked for.
const DefaultLearn = "24h"

// Detect says of history what the detector would have said.
type Detect struct {
	o        DetectOptions
	from, to time.Time // zero = unbounded; of files only
	learn    time.Duration
	detector *detect.Detector
	out      *bufio.Writer
	line     []byte
	told     detectSummary
}

// detectSummary is what came of it, for standard error.
type detectSummary struct {
	records, rejected, evaluations, pages int64
	series                                map[detect.Key]bool
}

// NewDetect checks the options.
func NewDetect(o DetectOptions) (*Detect, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Learn == "" {
		o.Learn = DefaultLearn
	}
	d := &Detect{o: o, out: bufio.NewWriterSize(o.Streams.Out, 1<<16), told: detectSummary{series: map[detect.Key]bool{}}}
	if err := d.parseTimes(); err != nil {
		return nil, &UsageError{Err: err}
	}
	var err error
	d.detector, err = detect.New(detect.Options{})
	return d, err
}

func (d *Detect) parseTimes() error {
	now := d.o.Now()
	for _, t := range []struct {
		flag, text string
		to         *time.Time
	}{{"--from", d.o.From, &d.from}, {"--to", d.o.To, &d.to}} {
		if t.text == "" {
			continue
		}
		at, err := query.ParseTime(t.text, now)
		if err != nil {
			return fmt.Errorf("%s: %w", t.flag, err)
		}
		*t.to = at.UTC().Truncate(time.Millisecond)
	}
	var err error
	if d.learn, err = query.ParseDuration(d.o.Learn); err != nil {
		return fmt.Errorf("--learn: %w", err)
	}
	switch {
	case len(d.o.Records) == 0 && d.from.IsZero():
		return errors.New("name --records FILE, or --from (and --to) of the store")
	case len(d.o.Records) == 0 && d.to.IsZero():
		d.to = now.UTC().Truncate(time.Millisecond)
	}
	if !d.to.IsZero() && !d.from.Before(d.to) {
		return fmt.Errorf("--to must be after --from, got %s and %s", d.to.Format(time.RFC3339), d.from.Format(time.RFC3339))
	}
	return nil
}

// Run writes a line of JSON for each evaluation to Streams.Out, and what it came to to
// Streams.Err.
func (d *Detect) Run(ctx context.Context) error {
	feed, err := replay.NewFeed(replay.Options{OnMoment: d.moment})
	if err != nil {
		return err
	}
	read := d.readStore
	if len(d.o.Records) > 0 {
		read = d.readFiles
	}
	if err := errors.Join(read(ctx, feed), feed.Close(), d.out.Flush()); err != nil {
		return err
	}
	return d.summarize(feed.Late())
}

func (d *Detect) readStore(ctx context.Context, feed *replay.Feed) (err error) {
	store, err := openReadable(ctx, d.o.Store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return store.EachAttempt(ctx, d.from.Add(-d.learn), d.to, func(a *retrylens.Attempt) error {
		d.told.records++
		return feed.Add(a)
	})
}

// feedSink is an ingest.Sink.
type feedSink struct{ feed *replay.Feed }

// Write implements ingest.Sink.
func (s feedSink) Write(ctx context.Context, batch []retrylens.Attempt) error {
	for i := range batch {
		if err := s.feed.Add(&batch[i]); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (d *Detect) readFiles(ctx context.Context, feed *replay.Feed) error {
	sources, err := ingest.FileSources(d.o.Streams.In, d.o.Records...)
	if err != nil {
		return err
	}
	importer, err := ingest.New(ingest.Options{
		Sink: feedSink{feed}, DefaultTenant: d.o.Tenant, BatchRows: 5000,
		Limits: func() retrylens.Limits { return retrylens.Limits{Now: d.o.Now()} },
		OnReject: func(r ingest.Reject) {
			if d.told.rejected++; d.told.rejected <= maxShownRejects {
				fmt.Fprintln(d.o.Streams.Err, rejectLine(r))
			}
		},
	})
	if err != nil {
		return err
	}
	sum, err := importer.Run(ctx, sources...)
	d.told.records = sum.Accepted
	switch {
	case err != nil:
		return err
	case sum.Accepted == 0 && sum.Rejected > 0:
		return fmt.Errorf("%w, %d were refused", ErrNothingAccepted, sum.Rejected)
	}
	return nil
}

// moment evaluates every series that has been seen.
func (d *Detect) moment(w *replay.Window) error {
	if !d.to.IsZero() && !w.At().Before(d.to) {
		return nil
	}
	var failed error
	err := w.Evaluate(d.detector, func(e *detect.Evaluation) {
		if failed == nil && !e.At.Before(d.from) {
			failed = d.write(e)
		}
	})
	return errors.Join(err, failed)
}

func (d *Detect) write(e *detect.Evaluation) (err error) {
	d.told.evaluations++
	d.told.series[e.Key] = true
	if e.Changed() && e.State.Pages() && !e.Previous.Pages() {
		d.told.pages++
	}
	if d.o.Changes && !e.Changed() {
		return nil
	}
	if d.line, err = e.AppendJSON(d.line[:0]); err != nil {
		return err
	}
	d.line = append(d.line, '\n')
	if _, err = d.out.Write(d.line); err != nil {
		return fmt.Errorf("write an evaluation: %w", err)
	}
	return nil
}

func (d *Detect) summarize(late int64) error {
	t := &d.told
	_, err := fmt.Fprintf(d.o.Streams.Err, "%d records, %d refused; %d evaluations of %d series: a page would have begun %d times\n",
		t.records, t.rejected, t.evaluations, len(t.series), t.pages)
	if late > 0 {
		_, lateErr := fmt.Fprintf(d.o.Streams.Err,
			"%d records are more than %v out of order and counted from when they came: import the files and replay them with --from\n", late, replay.DefaultHold)
		err = errors.Join(err, lateErr)
	}
	return err
}
