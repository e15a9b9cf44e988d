package clickhouse

import (
	"context"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// defaultFinaliseRows is about how many attempts a window of a pass reads: what it
// holds in memory is at most a group of 1.3 kB for each.
const defaultFinaliseRows = 150_000

// minuteWindow is a part of the time that is folded at once, and which of its
// minutes are wanted.
type minuteWindow struct {
	window
	minutes []int64
}

// grains counts the attempts of the grains that hold the minutes.
func (s *Store) grains(ctx context.Context, minutes []int64) (map[int64]uint64, error) {
	rows := map[int64]uint64{}
	if len(minutes) == 0 {
		return rows, nil
	}
	result, err := s.conn.Query(s.with(ctx, nil), "SELECT intDiv(toUnixTimestamp64Milli(operation_started_at), {grain:Int64}) * {grain:Int64} AS start, count() FROM "+s.database+".attempts"+
		" WHERE operation_started_at >= fromUnixTimestamp64Milli({from:Int64}) AND operation_started_at < fromUnixTimestamp64Milli({to:Int64})"+
		" AND toDate(operation_started_at) IN {days:Array(Date)} GROUP BY start",
		clickhouse.Named("grain", sliceGrain.Milliseconds()), clickhouse.Named("from", minutes[0]),
		clickhouse.Named("to", minutes[len(minutes)-1]+minuteMS), clickhouse.Named("days", days(minutes)))
	if err != nil {
		return nil, err
	}
	defer result.Close()
	for result.Next() {
		var b block
		if err := result.Scan(&b.start, &b.rows); err != nil {
			return nil, err
		}
		rows[b.start] = b.rows
	}
	return rows, result.Err()
}

// chunks cuts sorted minutes into pieces of at most 4 times s.finaliseRows attempts,
// so that a pass that is killed has not worked for nothing; at the end of a day if
// they have half of that, so that most days are summed once.
func (s *Store) chunks(ctx context.Context, minutes []int64) ([][]int64, error) {
	const day = 24 * 60 * minuteMS
	grains, err := s.grains(ctx, minutes)
	if err != nil {
		return nil, err
	}
	var out [][]int64
	held, last := uint64(0), int64(0)
	for i, m := range minutes {
		n := grains[grainOf(m)] / uint64(sliceGrain.Milliseconds()/minuteMS)
		if i == 0 || held+n > 4*s.finaliseRows || m/day != last/day && held >= 2*s.finaliseRows {
			out, held = append(out, nil), 0
		}
		out[len(out)-1] = append(out[len(out)-1], m)
		held, last = held+n, m
	}
	return out, nil
}

func grainOf(ms int64) int64 { return ms - ms%sliceGrain.Milliseconds() }

// windows cuts sorted minutes into windows to fold. A gap is bridged where reading
// it costs less than another window: its minutes are not wanted.
func (s *Store) windows(ctx context.Context, minutes []int64) ([]minuteWindow, error) {
	const bridge = 20_000 // attempts
	grains, err := s.grains(ctx, spanned(minutes))
	if err != nil {
		return nil, err
	}
	perMinute := func(m int64) uint64 { return grains[grainOf(m)] / uint64(sliceGrain.Milliseconds()/minuteMS) }
	var out []minuteWindow
	held := uint64(0)
	for _, m := range minutes {
		last := len(out) - 1
		if last >= 0 {
			gap := uint64(0)
			for g := out[last].to; g < m && gap <= bridge && m-out[last].to < maxGap; g += minuteMS {
				gap += perMinute(g)
			}
			if gap <= bridge && m-out[last].to < maxGap && held+gap+perMinute(m) <= s.finaliseRows {
				out[last].to, held = m+minuteMS, held+gap+perMinute(m)
				out[last].minutes = append(out[last].minutes, m)
				continue
			}
		}
		out, held = append(out, minuteWindow{window{m, m + minuteMS}, []int64{m}}), perMinute(m)
	}
	return out, nil
}

// maxGap is the longest gap that is bridged.
const maxGap = 24 * 60 * minuteMS

// spanned are the minutes and the first of each grain in gaps that may be bridged.
func spanned(minutes []int64) []int64 {
	out := slices.Clone(minutes)
	for i := 1; i < len(minutes); i++ {
		if d := minutes[i] - minutes[i-1]; d > minuteMS && d < maxGap {
			for g := minutes[i-1]; g < minutes[i]; g += sliceGrain.Milliseconds() {
				out = append(out, g)
			}
		}
	}
	slices.Sort(out)
	return out
}
