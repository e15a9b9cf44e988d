package clickhouse

import (
	"slices"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/metrics"
)

// A slice ends by its rows, never by time without any.
func TestCutBridgesGaps(t *testing.T) {
	const grain = int64(sliceGrain / time.Millisecond)
	at := func(n, rows int64) block { return block{n * grain, uint64(rows)} }
	query := metrics.Query{From: time.UnixMilli(grain / 2), To: time.UnixMilli(1000*grain + 1)}
	for name, c := range map[string]struct {
		blocks []block
		want   []window
	}{
		"nothing":               {nil, nil},
		"gaps":                  {[]block{at(0, 1), at(7, 1), at(500, 1)}, []window{{grain / 2, 501 * grain}}},
		"rows end a slice":      {[]block{at(1, 60), at(2, 40), at(9, 1)}, []window{{grain, 3 * grain}, {9 * grain, 10 * grain}}},
		"a block of its own":    {[]block{at(1, 500), at(2, 1)}, []window{{grain, 2 * grain}, {2 * grain, 3 * grain}}},
		"clipped to the window": {[]block{at(1000, 1), at(1001, 1)}, []window{{1000 * grain, 1000*grain + 1}}},
	} {
		if got := cut(c.blocks, query, 100); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
