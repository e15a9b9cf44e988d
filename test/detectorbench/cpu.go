package main

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/retrylens/retrylens/internal/detect"
)

// cpuResult is what rounds over many series cost.
type cpuResult struct {
	Series       int     `json:"series"`
	Rounds       int     `json:"rounds"`
	MeanMS       float64 `json:"mean_cpu_ms"`
	WorstMS      float64 `json:"worst_cpu_ms"` // of the minute with most, a round
	SnapshotKB   float64 `json:"snapshot_kb"`  // of one series with a full history
	HeapMB       float64 `json:"heap_mb"`
	MicrosSeries float64 `json:"cpu_us_a_series"`
}

// roundsOf a day of so many series: with full histories, every round measured.
func roundsOf(series int, day time.Duration) (cpuResult, error) {
	d, err := detect.New(detect.Options{MaxSeries: series})
	if err != nil {
		return cpuResult{}, err
	}
	keys := make([]detect.Key, series)
	for i := range keys {
		keys[i] = detect.Key{Tenant: fmt.Sprintf("tenant-%02d", i%7), Provider: "openai", Model: fmt.Sprintf("model-%04d", i)}
	}
	r := rand.New(rand.NewPCG(1, 2))
	out := cpuResult{Series: series}
	heap := liveHeap()
	var total, minute, worst time.Duration
	samples := make([]detect.Sample, series)
	for at := began; at.Before(began.Add(day)); at = at.Add(detect.Interval) {
		for i := range samples {
			samples[i] = randomSample(r, keys[i], at)
		}
		before := cpuTime()
		if _, err := d.Round(at, samples); err != nil {
			return out, err
		}
		took := cpuTime() - before
		total, minute = total+took, minute+took
		if out.Rounds++; out.Rounds%4 == 0 {
			worst, minute = max(worst, minute/4), 0
		}
	}
	out.MeanMS = float64(total.Microseconds()) / 1000 / float64(out.Rounds)
	out.WorstMS = float64(worst.Microseconds()) / 1000
	out.MicrosSeries = out.MeanMS * 1000 / float64(series)
	out.HeapMB = float64(liveHeap()-heap) / 1e6
	snapshot, err := d.Snapshot(keys[0])
	out.SnapshotKB = float64(len(snapshot)) / 1000
	return out, err
}

// randomSample of a series with a few retries: no comparison is cut short.
func randomSample(r *rand.Rand, k detect.Key, at time.Time) detect.Sample {
	s := detect.Sample{Key: k, At: at}
	n := 150 + r.Int64N(150)
	retries := r.Int64N(6)
	s.Window.Counts = detect.Counts{
		Operations: n, Succeeded: n, Attempts: n + retries, UpstreamCalls: n + retries, Retries: retries, RetrySuccesses: retries,
		FirstAttempts: n, FirstSuccesses: n - retries, FailedAttempts: retries,
	}
	s.Window.Delivered, s.Window.P50MS, s.Window.P99MS = n, 1500+r.Int64N(900), 9000+r.Int64N(9000)
	s.Window.P25MS, s.Window.AnswerP50MS, s.Window.AnswerP99MS, s.Window.AnswerMS = s.Window.P50MS/2, s.Window.P50MS, s.Window.P99MS, s.Window.P50MS
	s.Recent = s.Window
	for i := range s.Slots {
		s.Slots[i] = detect.Counts{Operations: n / 8, Attempts: n/8 + retries/4, UpstreamCalls: n/8 + retries/4, FirstAttempts: n / 8, FirstSuccesses: n / 8}
	}
	s.ErrorsByClass = map[string]int64{"overloaded": retries, "timeout": 1}
	return s
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
