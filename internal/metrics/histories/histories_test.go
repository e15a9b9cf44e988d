package histories_test

import (
	"reflect"
	"testing"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics/histories"
)

func TestEveryAttemptIsValid(t *testing.T) {
	for seed := range uint64(50) {
		for _, a := range histories.Generate(seed, 300) {
			if err := a.Validate(retrylens.Limits{Now: histories.Now}); err != nil {
				t.Fatalf("seed %d: %v: %s", seed, err, a.AppendJSON(nil))
			}
		}
	}
}

func TestSameSeedSameHistory(t *testing.T) {
	if !reflect.DeepEqual(histories.Generate(7, 500), histories.Generate(7, 500)) {
		t.Error("differs")
	}
}

// TestHistoriesAreHostile counts what must be in them.
func TestHistoriesAreHostile(t *testing.T) {
	seen := map[string]int{}
	for _, a := range histories.Generate(1, 20_000) {
		seen["outcome "+string(a.Outcome)]++
		seen["class "+string(a.ErrorClass)]++
		seen["cause "+string(a.Cause)]++
		seen["stop "+string(a.StopReason)]++
		seen["usage "+string(a.UsageSource)]++
		if a.Outcome == retrylens.OutcomeSuccess && a.UpstreamCalls.Value == 0 {
			seen["success without a call"]++
		}
		if a.ErrorClass == retrylens.ClassTransportPresend && a.UpstreamCalls.Value > 0 {
			seen["presend with a call"]++
		}
		if a.StartedAt.Before(a.OperationStartedAt) {
			seen["starts before its operation"]++
		}
		if a.Revision == 255 {
			seen["last revision"]++
		}
	}
	for _, want := range []string{"success without a call", "presend with a call", "starts before its operation", "last revision"} {
		if seen[want] == 0 {
			t.Errorf("no %s", want)
		}
	}
	wantAll(t, seen, "outcome ", retrylens.Outcomes)
	wantAll(t, seen, "class ", retrylens.ErrorClasses)
	wantAll(t, seen, "cause ", retrylens.Causes)
	wantAll(t, seen, "stop ", retrylens.StopReasons)
	wantAll(t, seen, "usage ", retrylens.UsageSources)
}

func wantAll[T ~string](t *testing.T, seen map[string]int, prefix string, values []T) {
	t.Helper()
	for _, v := range values {
		if seen[prefix+string(v)] == 0 {
			t.Errorf("no %s%s", prefix, v)
		}
	}
}
