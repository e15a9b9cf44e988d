package api

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/retrylens/retrylens/internal/metrics"
)

// SeriesParams are a question about figures over time.
type SeriesParams struct {
	ReportParams
	Figure []string `query:"figure,explode" example:"amplification" doc:"Figures of a report by name, one entry as name{key}: latency_ms{p99}. Repeated, or with commas. Default: amplification. CSV and Parquet hold every figure."`
}

// DefaultFigure is the figure of a series when none is named.
const DefaultFigure = "amplification"

// Series is the JSON of figures over time.
type Series struct {
	From          *time.Time            `json:"from"`
	To            *time.Time            `json:"to"`
	AsOf          time.Time             `json:"as_of"`
	GroupBy       []metrics.Dimension   `json:"group_by"`
	BucketSeconds int64                 `json:"bucket_seconds"`
	Provisional   bool                  `json:"provisional"`
	Completeness  *metrics.Completeness `json:"completeness"`
	Figures       []string              `json:"figures"`
	Series        []SeriesGroup         `json:"series" doc:"One for each group, in order."`
}

// SeriesGroup is the points of one group.
type SeriesGroup struct {
	Group  map[string]string `json:"group" doc:"The values of the dimensions of group_by."`
	Points []Point           `json:"points" doc:"In order of time; a bucket without operations has none."`
}

// Point is the values of one bucket.
type Point struct {
	Bucket time.Time         `json:"bucket" doc:"Start of the bucket."`
	Values []json.RawMessage `json:"values" doc:"In the order of figures: a number, an amount as a string, or null where there is no value."`
}

func (a *API) series(ctx context.Context, p *SeriesParams) (*answer, error) {
	q, err := a.parse(ctx, &p.WindowParams)
	if err != nil {
		return nil, err
	}
	names, err := figureNames(p.Figure, q.Spend())
	if err != nil {
		return nil, err
	}
	if q.Bucket == 0 {
		q.Bucket = NiceBucket(q.To.Sub(q.From))
	}
	r, err := a.o.Source.Report(ctx, q)
	if err != nil {
		return nil, err
	}
	if media := p.media(); media != typeJSON {
		return reportAnswer(r, media, "series", p.IfNoneMatch)
	}
	return jsonAnswer(NewSeries(r, names), p.IfNoneMatch)
}

func figureNames(lists []string, spend bool) ([]string, error) {
	var names []string
	for _, list := range lists {
		for name := range strings.SplitSeq(list, ",") {
			if _, ok := metrics.Figure(name, metrics.Row{}); !ok {
				return nil, paramError("figure", name, "is no figure; /api/v1/figures lists them, an entry is name{key}")
			}
			base, _, _ := strings.Cut(name, "{")
			if f, _ := metrics.LookupFormula(base); spend && !f.Spend {
				return nil, paramError("figure", name, "cannot be grouped by what was executed: that holds spend figures only")
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 && spend {
		return []string{"billed_cost_usd"}, nil
	}
	if len(names) == 0 {
		return []string{DefaultFigure}, nil
	}
	return names, nil
}

// buckets are those that people read.
var buckets = []time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 7 * day, 30 * day, 90 * day, 365 * day, 3650 * day, 36500 * day,
}

const day = 24 * time.Hour

const maxPoints = 150

// NiceBucket is the shortest bucket that people read which cuts a window into at most
// 150 pieces.
func NiceBucket(window time.Duration) time.Duration {
	for _, b := range buckets {
		if window/b <= maxPoints {
			return b
		}
	}
	return buckets[len(buckets)-1]
}

// NewSeries picks figures of a report with buckets; names must be figures.
func NewSeries(r *metrics.Report, names []string) *Series {
	s := &Series{
		From: instant(r.From), To: instant(r.To), AsOf: r.AsOf.UTC(), GroupBy: r.GroupBy, BucketSeconds: int64(r.Bucket / time.Second),
		Provisional: r.Provisional, Completeness: r.Completeness, Figures: names, Series: []SeriesGroup{},
	}
	if s.GroupBy == nil {
		s.GroupBy = []metrics.Dimension{}
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		if i == 0 || !slices.Equal(row.Dims, r.Rows[i-1].Dims) {
			s.Series = append(s.Series, SeriesGroup{Group: groupOf(r, row)})
		}
		g := &s.Series[len(s.Series)-1]
		g.Points = append(g.Points, pointOf(row, names))
	}
	return s
}

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func groupOf(r *metrics.Report, row *metrics.Row) map[string]string {
	group := make(map[string]string, len(r.GroupBy))
	for i, d := range r.GroupBy {
		group[string(d)] = row.Dims[i]
	}
	return group
}

func pointOf(row *metrics.Row, names []string) Point {
	p := Point{Bucket: row.Bucket.UTC()}
	for _, name := range names {
		v, _ := metrics.Figure(name, *row)
		p.Values = append(p.Values, v.AppendJSON(nil))
	}
	return p
}
