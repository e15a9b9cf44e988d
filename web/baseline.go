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

// usual is the question about what is usual before a query's window.
func usual(q metrics.Query) metrics.Query {
	to := q.From.Truncate(time.Minute)
	q.To, q.From = to, to.Add(-max(baselineWindow, q.To.Sub(q.From)).Truncate(time.Minute))
	q.AsOf = q.AsOf.Truncate(time.Minute)
	q.Bucket = 0
	return q
}

// bandBucket is how long the pieces are that a band is made of.
func bandBucket(q metrics.Query) time.Duration {
	return max(15*time.Minute, api.NiceBucket(q.To.Sub(q.From)))
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
