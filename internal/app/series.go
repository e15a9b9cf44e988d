package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/metrics"
)

// SeriesFormats are the formats of a series.
var SeriesFormats = []string{"table", "json", "csv", "parquet"}

// defaultSeriesWindow is the window of a series that names none.
const defaultSeriesWindow = "1h"

// NewSeries checks the options of a series: a report with buckets of which some
// figures are shown.
func NewSeries(o ReportOptions) (*Report, error) {
	if len(o.Figures) == 0 {
		o.Figures = []string{api.DefaultFigure}
	}
	switch {
	case o.From == "" && o.Since == "" && o.To != "":
		return nil, usagef("--to goes with --from")
	case o.From == "" && o.Since == "":
		o.Since = defaultSeriesWindow
	}
	if o.Format != "" && !slices.Contains(SeriesFormats, o.Format) {
		return nil, usagef("--output must be one of %s, got %.40q", strings.Join(SeriesFormats, ", "), o.Format)
	}
	r, err := NewReport(o)
	if err != nil {
		return nil, err
	}
	for _, name := range o.Figures {
		if err := r.checkFigure(name); err != nil {
			return nil, &UsageError{Err: err}
		}
	}
	if r.query.To.IsZero() {
		r.query.To = r.query.AsOf
	}
	if r.query.To.Before(r.query.From) {
		return nil, usagef("--to is before --from")
	}
	if r.query.Bucket == 0 {
		r.query.Bucket = api.NiceBucket(r.query.To.Sub(r.query.From))
	}
	const most = 11_000 // rows of one group that people or charts can take in
	if r.query.To.Sub(r.query.From)/max(r.query.Bucket, time.Second) > most {
		return nil, usagef("--bucket cuts the window into more than %d pieces: take a longer one", most)
	}
	return r, nil
}

func (r *Report) checkFigure(name string) error {
	if _, ok := metrics.Figure(name, metrics.Row{}); !ok {
		return fmt.Errorf("--figure: %w", unknownFigure(name))
	}
	base, _, _ := strings.Cut(name, "{")
	if f, _ := metrics.LookupFormula(base); r.query.Spend() && !f.Spend {
		return errors.New("--figure " + name + ": a series by " + joinDims(r.query.GroupBy) + " holds spend figures only")
	}
	return nil
}
