package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/export"
	"github.com/retrylens/retrylens/internal/format"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/query"
	"github.com/retrylens/retrylens/internal/render"
)

// Formats of a report.
var Formats = []string{"table", "json", "csv", "md", "parquet"}

// ReportOptions are a report as it is asked for, in words.
type ReportOptions struct {
	Store    StoreOptions
	From, To string // see query.ParseTime; "" = unbounded
	Since    string // a duration before as-of, instead of From and To
	AsOf     string // "" = now
	GroupBy  []string
	Bucket   string // a duration; "" = none
	Filters  map[metrics.Dimension][]string
	Figures  []string // of a series, see NewSeries; none = a report
	Format   string   // one of Formats; "" = table
	Explain  bool     // table and md: formula and rows counted under each figure
	SQL      bool     // print the statements instead of running them
	FailOn   []string
	Streams  Streams
	Now      func() time.Time    // nil = time.Now
	Getenv   func(string) string // nil = os.Getenv
}

// Report answers a question about a window of operations.
type Report struct {
	o          ReportOptions
	query      metrics.Query
	thresholds []Threshold
}

// NewReport checks the options.
func NewReport(o ReportOptions) (*Report, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Format == "" {
		o.Format = "table"
	}
	r := &Report{o: o}
	for _, check := range []func() error{r.checkFormat, r.parseTimes, r.parseGroups, r.parseThresholds} {
		if err := check(); err != nil {
			return nil, &UsageError{Err: err}
		}
	}
	return r, nil
}

func (r *Report) checkFormat() error {
	switch {
	case !slices.Contains(Formats, r.o.Format):
		return fmt.Errorf("--output must be one of %s, got %.40q", strings.Join(Formats, ", "), r.o.Format)
	case r.o.Format == "parquet" && isTerminal(r.o.Streams.Out):
		return errors.New("-o parquet writes binary data: send it to a file, analyze report -o parquet > report.parquet")
	case r.o.Explain && r.o.Format != "table" && r.o.Format != "md":
		return fmt.Errorf("--explain goes with -o table and -o md: %s is for machines", r.o.Format)
	case r.o.SQL && (r.o.Explain || len(r.o.FailOn) > 0):
		return errors.New("--sql prints the statements and runs none: leave --explain and --fail-on out")
	}
	return nil
}

func (r *Report) parseTimes() error {
	now := r.o.Now()
	r.query.AsOf = now.UTC().Truncate(time.Millisecond)
	for _, t := range []struct {
		flag, text string
		to         *time.Time
	}{{"--as-of", r.o.AsOf, &r.query.AsOf}, {"--from", r.o.From, &r.query.From}, {"--to", r.o.To, &r.query.To}} {
		if t.text == "" {
			continue
		}
		at, err := query.ParseTime(t.text, now)
		if err != nil {
			return fmt.Errorf("%s: %w", t.flag, err)
		}
		*t.to = at.Truncate(time.Millisecond)
	}
	return r.parseDurations()
}

func (r *Report) parseDurations() error {
	if r.o.Since != "" {
		if r.o.From != "" || r.o.To != "" {
			return errors.New("--since goes without --from and --to")
		}
		d, err := query.ParseDuration(r.o.Since)
		if err != nil {
			return fmt.Errorf("--since: %w", err)
		}
		r.query.From = r.query.AsOf.Add(-d)
	}
	if r.o.Bucket != "" {
		var err error
		if r.query.Bucket, err = query.ParseDuration(r.o.Bucket); err != nil {
			return fmt.Errorf("--bucket: %w", err)
		}
	}
	return nil
}

func (r *Report) parseGroups() error {
	for _, name := range r.o.GroupBy {
		d, err := metrics.ParseDimension(name)
		if err != nil {
			return fmt.Errorf("--group-by: %w; did you mean %s?", err, nearest(name, DimensionNames()))
		}
		r.query.GroupBy = append(r.query.GroupBy, d)
	}
	r.query.Filters = map[metrics.Dimension][]string{}
	for d, values := range r.o.Filters {
		if len(values) > 0 {
			r.query.Filters[d] = values
		}
	}
	return r.query.Validate()
}

// DimensionNames are the words of --group-by.
func DimensionNames() []string {
	names := make([]string, len(metrics.Dimensions))
	for i, d := range metrics.Dimensions {
		names[i] = string(d)
	}
	return names
}

func (r *Report) parseThresholds() error {
	for _, text := range r.o.FailOn {
		t, err := ParseThreshold(text)
		if err != nil {
			return fmt.Errorf("--fail-on: %w", err)
		}
		if r.query.Spend() && !t.spend() {
			return fmt.Errorf("--fail-on %s: a report by %s holds spend figures only", t, joinDims(r.query.GroupBy))
		}
		r.thresholds = append(r.thresholds, t)
	}
	return nil
}

func joinDims(dims []metrics.Dimension) string {
	names := make([]string, len(dims))
	for i, d := range dims {
		names[i] = string(d)
	}
	return strings.Join(names, ", ")
}

// Run writes the report, or its statements, to Streams.Out. It returns
// ErrThreshold when a row broke a threshold.
func (r *Report) Run(ctx context.Context) (err error) {
	r.o.Store.MustExist = true
	store, err := OpenStore(ctx, r.o.Store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if r.o.SQL {
		return r.printSQL(store)
	}
	if err := store.readable(ctx); err != nil {
		return err
	}
	report, err := store.Report(ctx, r.query)
	if err != nil {
		return err
	}
	if err := r.write(report); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return r.judge(report)
}

func (r *Report) printSQL(store *Store) error {
	statements, err := store.SQL(r.query)
	if err != nil {
		return err
	}
	for _, s := range statements {
		if _, err := fmt.Fprintf(r.o.Streams.Out, "%s;\n\n", strings.TrimSpace(s)); err != nil {
			return err
		}
	}
	return nil
}

func (r *Report) write(report *metrics.Report) error {
	out := r.o.Streams.Out
	switch r.o.Format {
	case "json":
		if len(r.o.Figures) > 0 {
			return json.NewEncoder(out).Encode(api.NewSeries(report, r.o.Figures))
		}
		return render.JSON(out, report)
	case "csv":
		return errors.Join(export.CSV(out, export.Report(report)), r.footer(report))
	case "parquet":
		return errors.Join(export.Parquet(out, export.Report(report)), r.footer(report))
	case "md":
		return render.Markdown(out, report, r.o.Explain)
	}
	if len(r.o.Figures) > 0 {
		return render.Series(out, report, r.o.Figures, screen(out, r.o.Getenv))
	}
	return render.Table(out, report, r.o.Explain, screen(out, r.o.Getenv))
}

// footer says beside a CSV what it has no column for.
func (r *Report) footer(report *metrics.Report) error {
	for _, line := range format.Footer(report) {
		if _, err := fmt.Fprintln(r.o.Streams.Err, line); err != nil {
			return err
		}
	}
	return nil
}

// judge names every row that broke a threshold.
func (r *Report) judge(report *metrics.Report) error {
	broken := false
	for _, t := range r.thresholds {
		for i := range report.Rows {
			if v, bad := t.Broken(report.Rows[i]); bad {
				broken = true
				fmt.Fprintf(r.o.Streams.Err, "fail-on %s: %s is %s in %s\n", t, t.Figure, v, render.RowName(report, i))
			}
		}
	}
	if broken {
		return ErrThreshold
	}
	return nil
}
