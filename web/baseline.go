package web

import (
	"math"
	"slices"
	"time"

	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/metrics"
)

// baselineWindow is how much before a window is what is usual: a day, of longer windows as
// much again.
const baselineWindow = 24 * time.Hour

// usual is the question about what is usual before a query's window. Its ends lie on
// those of the pieces of its band, and it is judged as of the piece after it, so it is the
// same question for a while and its answer is kept.
func usual(q metrics.Query) metrics.Query {
	long := max(baselineWindow, q.To.Sub(q.From))
	piece := bandBucket(long)
	asOf := q.AsOf
	q.To = q.From.Truncate(piece)
	q.From = q.To.Add(-long).Truncate(piece)
	if q.AsOf = q.To.Add(piece); q.AsOf.After(asOf) {
		q.AsOf = asOf.Truncate(time.Minute)
	}
	q.Bucket = 0
	return q
}

// bandBucket is how long the pieces are that the band of a window is made of.
func bandBucket(window time.Duration) time.Duration {
	return max(15*time.Minute, api.NiceBucket(window))
}

// band is the range of a figure that four of five buckets before the window were in.
// It is not set with fewer than five buckets that have a value.
type band struct {
	Low, High, Middle float64
	Set               bool
}

const fewestBuckets = 5

// bandOf is the 10th and the 90th percentile, and the median, of a figure over buckets.
func bandOf(rows []metrics.Row, name string) band {
	var values []float64
	for i := range rows {
		if v, ok := number(name, &rows[i]); ok {
			values = append(values, v)
		}
	}
	if len(values) < fewestBuckets {
		return band{Low: math.NaN(), High: math.NaN(), Middle: math.NaN()}
	}
	slices.Sort(values)
	at := func(p float64) float64 { return values[int(math.Ceil(p*float64(len(values))))-1] }
	return band{at(0.1), at(0.9), at(0.5), true}
}

// top is above what is usual: the band's end and half its width. Without a band nothing is.
func (b band) top() float64 {
	if !b.Set {
		return math.Inf(1)
	}
	return b.High + max((b.High-b.Low)/2, 0.01)
}
