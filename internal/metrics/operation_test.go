package metrics_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/histories"
	"github.com/retrylens/retrylens/internal/metrics/script"
)

func operation(t *testing.T, lines string) metrics.Operation {
	t.Helper()
	cases, err := script.Parse("case c\n" + lines)
	if err != nil {
		t.Fatal(err)
	}
	ops := metrics.Operations(cases[0].Attempts, at("2026-11-29T12:00:00Z"))
	if len(ops) != 1 {
		t.Fatalf("%d operations", len(ops))
	}
	return ops[0]
}

func TestOperationVerdict(t *testing.T) {
	op := operation(t, `
attempt attempt=2 started_at=12:00:33 duration_ms=2000 prompt_tokens=900 operation_started_at=12:00
attempt attempt=0 duration_ms=1000 error_class=rate_limited retry_after_ms=5000 service=s operation_started_at=12:00
attempt attempt=1 started_at=12:00:01.7 duration_ms=30000 error_class=timeout prompt_tokens=900 operation_started_at=12:00
attempt attempt=3 started_at=12:00:40 duration_ms=1 prompt_tokens=5 operation_started_at=12:00 idempotency_key=k
attempt attempt=4 started_at=12:00:40 duration_ms=1 error_class=server_error operation_started_at=12:00 idempotency_key=k
`)
	if op.State != metrics.StateSucceeded || op.Delivering != 2 || !op.Rescued || op.Retries != 4 || op.Attempts != 5 ||
		op.Home.Service != "s" || op.LatencyMS.Value != 35000 || op.RetryTaxMS.Value != 33000 || op.TwoHops {
		t.Errorf("verdict %+v", op)
	}
	for i, want := range []metrics.Fate{
		metrics.FateUnspent, metrics.FateOrphaned, metrics.FateDelivered, metrics.FateRedundant, metrics.FateSuspect,
	} {
		if r := op.Records[i]; r.Fate != want || r.Attempt.Attempt != int32(i) || !r.Executed() || !r.Counted {
			t.Errorf("record %d: %+v", i, r)
		}
	}
	if r := op.Records[1]; r.OrphanReason != metrics.OrphanTimeout || !r.UnkeyedAfterSend || !op.Records[0].RetryAfterViolated {
		t.Errorf("records %+v %+v", op.Records[0], r)
	}
}

func TestOperationOfTwoHops(t *testing.T) {
	op := operation(t, `
attempt hop=gateway prompt_tokens=1 duration_ms=1
attempt served_by=0
attempt hop=gateway attempt=1 started_at=12:00:01 outcome=replayed replay_of=0
`)
	if !op.TwoHops || op.Records[0].Hop != retrylens.HopClient || op.Records[0].Inner || op.Records[0].Executed() {
		t.Errorf("client record %+v", op.Records[0])
	}
	if r := op.Records[1]; r.Outer || r.Counted || r.Fate != metrics.FateDelivered || op.Records[2].Fate != "" {
		t.Errorf("gateway records %+v", op.Records[1:])
	}
}

func TestOperationWithoutCountedRecord(t *testing.T) {
	op := operation(t, "attempt outcome=key_mismatch error_class=invalid_request provider=gemini")
	if op.State != "" || op.Delivering != -1 || op.Home.Provider != "gemini" || op.Start.IsZero() {
		t.Errorf("verdict %+v", op)
	}
}

// TestOperationsLeaveAttemptsAlone: the fold neither sorts nor changes what it
// is given.
func TestOperationsLeaveAttemptsAlone(t *testing.T) {
	attempts, same := histories.Generate(3, 500), histories.Generate(3, 500)
	metrics.Operations(attempts, histories.Now)
	if _, err := metrics.Fold(attempts, metrics.Query{AsOf: histories.Now}); err != nil {
		t.Fatal(err)
	}
	for i := range attempts {
		if attempts[i].Version() != same[i].Version() {
			t.Fatalf("attempt %d was changed", i)
		}
	}
}

// hugeOperation has chains of replays as long as itself on both hops.
func hugeOperation(n int) []retrylens.Attempt {
	out := make([]retrylens.Attempt, 0, 2*n)
	for i := range n {
		a := retrylens.Attempt{
			Tenant: "t", LogicalID: "a", Provider: "openai", OperationStartedAt: histories.Base, StartedAt: histories.Base,
			Attempt: int32(i), Hop: retrylens.HopClient, Outcome: retrylens.OutcomeSuccess,
		}
		if i%2 == 0 {
			a.ServedBy = retrylens.Some(int32(n - 1 - i/2))
		}
		a.Normalize()
		out = append(out, a)
		a.Hop, a.ServedBy = retrylens.HopGateway, retrylens.Opt[int32]{}
		if i > 0 {
			a.Outcome, a.ReplayOf, a.UpstreamCalls = retrylens.OutcomeReplayed, retrylens.Some(int32(i-1)), retrylens.Opt[uint16]{}
		}
		a.Normalize()
		out = append(out, a)
	}
	return out
}

func TestHugeOperationFoldsInLinearTime(t *testing.T) {
	attempts := hugeOperation(50_000)
	began := time.Now()
	report := fold(t, attempts, metrics.Query{})
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	if row := report.Rows[0]; row.Attempts != 50_000 || row.DuplicatesServed != 49_999 {
		t.Errorf("%d attempts, %d served", row.Attempts, row.DuplicatesServed)
	}
}

func BenchmarkFold(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("attempts=%d", n), func(b *testing.B) {
			benchmarkFold(b, histories.Generate(1, n), metrics.Query{
				AsOf: histories.Now, GroupBy: []metrics.Dimension{metrics.DimProvider}, Bucket: time.Minute,
			})
		})
	}
	b.Run("one operation", func(b *testing.B) {
		benchmarkFold(b, hugeOperation(50_000), metrics.Query{AsOf: histories.Now})
	})
}

func benchmarkFold(b *testing.B, attempts []retrylens.Attempt, q metrics.Query) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := metrics.Fold(attempts, q); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(attempts)*b.N)/b.Elapsed().Seconds(), "attempts/s")
}
