package main

import (
	"context"
	"encoding/json"
	"runtime"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/sim"
	"github.com/retrylens/retrylens/internal/wire"
)

var simStart = time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)

// lines simulates n attempts as a terse emitter would write them (no defaults, no
// response_model and ttfb_ms), and returns the lines of 460..600 bytes.
func lines(ctx context.Context, n int) ([][]byte, error) {
	var out [][]byte
	err := sim.Run(ctx, sim.Options{Seed: 1, Start: simStart, OperationsPerMinute: float64(n) / 1440}, func(a *retrylens.Attempt) error {
		a.Hop, a.Cause, a.Delivery, a.UsageSource, a.CostSource, a.ResponseModel = "", "", "", "", "", ""
		a.UpstreamCalls, a.Final, a.TTFBMS = retrylens.Opt[uint16]{}, retrylens.Opt[bool]{}, retrylens.Opt[int64]{}
		if line := a.AppendJSON(nil); len(line) >= 460 && len(line) <= 600 {
			out = append(out, line)
		}
		return nil
	})
	return out, err
}

// baselineRecord is what a plain encoding/json decoder would fill.
type baselineRecord struct {
	Tenant, Service, Environment, Operation, Provider, Model, Endpoint, Hop, Cause, Outcome, Delivery, Emitter string

	LogicalID          string    `json:"logical_id"`
	OperationStartedAt time.Time `json:"operation_started_at"`
	StartedAt          time.Time `json:"started_at"`
	IdempotencyKey     string    `json:"idempotency_key"`
	ErrorClass         string    `json:"error_class"`
	StopReason         string    `json:"stop_reason"`
	ProviderRequestID  string    `json:"provider_request_id"`
	UsageSource        string    `json:"usage_source"`
	CostSource         string    `json:"cost_source"`
	CostUSD            string    `json:"cost_usd"`
	Attempt            int64
	Final              bool
	DurationMS         *int64  `json:"duration_ms"`
	TTFBMS             *int64  `json:"ttfb_ms"`
	DelayMS            *int64  `json:"delay_ms"`
	PromptTokens       *int64  `json:"prompt_tokens"`
	CompletionTokens   *int64  `json:"completion_tokens"`
	UpstreamCalls      *uint16 `json:"upstream_calls"`
	Status             *uint16
	Seq                *int64
}

func (b *bench) decode(ctx context.Context) error {
	sample, err := lines(ctx, 40_000)
	if err != nil {
		return err
	}
	size := 0
	for _, l := range sample {
		size += len(l)
	}
	var d wire.Decoder
	limits := retrylens.Limits{Now: simStart.Add(48 * time.Hour)}
	ours := onOneCore(len(sample), func(i int) {
		var a retrylens.Attempt
		if err := d.Decode(sample[i], &a); err != nil {
			panic(err)
		}
		a.Normalize()
		if err := a.Validate(limits); err != nil {
			panic(err)
		}
	})
	baseline := onOneCore(len(sample), func(i int) {
		var r baselineRecord
		if err := json.Unmarshal(sample[i], &r); err != nil {
			panic(err)
		}
	})
	b.printf("## Decode and validate, one core\n\n%d simulated lines of 460–600 bytes (mean %d).\n\n", len(sample), size/len(sample))
	b.printf("| decoder | records/s | µs a record | target |\n|---|---:|---:|---|\n")
	b.printf("| `wire.Decoder` + `Normalize` + `Validate` | %.0f | %.2f | ≥ 250,000: %s |\n", ours, 1e6/ours, verdict(ours >= 250_000))
	b.printf("| `encoding/json` into a struct, no validation (baseline) | %.0f | %.2f | |\n\n", baseline, 1e6/baseline)
	return nil
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "**missed**"
}

// onOneCore calls fn with 0..n-1 over and over and returns the best calls/s of
// five seconds: what the code costs, not what else the machine did.
func onOneCore(n int, fn func(int)) float64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	best := 0.0
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		start := time.Now()
		for i := range n {
			fn(i)
		}
		best = max(best, float64(n)/time.Since(start).Seconds())
	}
	return best
}
