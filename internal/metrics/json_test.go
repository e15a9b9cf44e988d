package metrics_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

func TestReportJSON(t *testing.T) {
	row := sampleRow()
	row.Dims, row.Bucket = []string{`a"b`}, at("2026-11-28T00:00:00Z")
	q := metrics.Query{
		From: at("2026-11-28T00:00:00Z"), AsOf: at("2026-11-29T12:00:00Z"),
		GroupBy: []metrics.Dimension{metrics.DimTenant}, Bucket: time.Hour,
	}
	got := string(marshal(t, metrics.NewReport(q, []metrics.Row{row}, 0, nil)))
	for _, want := range []string{
		`{"from":"2026-11-28T00:00:00Z","to":null,"as_of":"2026-11-29T12:00:00Z","group_by":["tenant"],"bucket_seconds":3600,"provisional":true,"completeness":null,"rows":[{"tenant":"a\"b","bucket":"2026-11-28T00:00:00Z","operations":2,`,
		`"errors_by_class":{"timeout":2}`,
		`"orphaned_cost_usd":"0.000000000001"`,
		`"orphaned_cost_usd_by_reason":{"error":"0.000000000001"}`,
		`"cost_per_rescue_usd":null`,
		`"latency_ms":{"p50":5,"p90":null,"p99":-7}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %s:\n%s", want, got)
		}
	}
}

// TestJSONNames: exactly the figures, in their order.
func TestJSONNames(t *testing.T) {
	var names []string
	for _, f := range metrics.Formulas {
		names = append(names, f.Name)
	}
	sameNames(t, (&metrics.Row{}).AppendJSON(nil, nil), names)
}

func TestSpendJSONHoldsSpendOnly(t *testing.T) {
	row := metrics.Row{Key: metrics.Key{Dims: []string{"openai"}}}
	sameNames(t, row.AppendJSON(nil, []metrics.Dimension{metrics.DimExecutedProvider}), []string{
		"executed_provider", "billed_tokens", "billed_cost_usd",
		"orphaned_attempts", "orphaned_tokens", "orphaned_prompt_tokens", "orphaned_completion_tokens", "orphaned_cost_usd",
		"orphaned_tokens_by_reason", "orphaned_cost_usd_by_reason", "orphaned_tokens_by_usage_source",
		"orphan_suspects", "orphaned_cost_ratio",
		"recovered_tokens", "recovered_cost_usd", "redundant_tokens", "redundant_cost_usd",
	})
}

// sameNames reads the names of an object in order.
func sameNames(t *testing.T, object []byte, want []string) {
	t.Helper()
	var got []string
	d := json.NewDecoder(strings.NewReader(string(object)))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			t.Fatal(err)
		}
		got = append(got, name.(string))
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestCompletenessJSON(t *testing.T) {
	for want, c := range map[string]metrics.Completeness{
		`{"records_missing":null,"coverage_ratio":null,"emitters":[],"known_usage_ratio":null,"rejected_lines":null,"dead_letters":null,"spool_age_ms":null,"finaliser_lag_ms":null}`: {},
		`{"records_missing":2,"coverage_ratio":0.75,"emitters":[{"tenant":"t","emitter":"e","missing":2,"max_seq":3,"distinct":2}],"known_usage_ratio":0.5,"rejected_lines":0,"dead_letters":1,"spool_age_ms":7,"finaliser_lag_ms":8}`: {
			RecordsMissing: retrylens.Some[uint64](2), CoverageRatio: retrylens.Some(0.75), KnownUsageRatio: retrylens.Some(0.5),
			Emitters:      []metrics.EmitterGap{{Tenant: "t", Emitter: "e", Missing: 2, MaxSeq: 3, Distinct: 2}},
			RejectedLines: retrylens.Some[uint64](0), DeadLetters: retrylens.Some[uint64](1), SpoolAgeMS: retrylens.Some[int64](7),
			FinaliserLagMS: retrylens.Some[int64](8),
		},
	} {
		if got := string(marshal(t, &c)); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

func TestEmitterGapsNamesAHundred(t *testing.T) {
	var all []metrics.EmitterGap
	for i := range uint64(150) {
		all = append(all, metrics.EmitterGap{Emitter: "e", Missing: i})
	}
	all[0].Distinct = 149 * 150 / 2
	var c metrics.Completeness
	c.SetGaps(all)
	if c.RecordsMissing != retrylens.Some[uint64](149*150/2) || len(c.Emitters) != metrics.MaxEmitterGaps || c.Emitters[0].Missing != 149 {
		t.Errorf("%v missing, %d gaps, most %d", c.RecordsMissing, len(c.Emitters), c.Emitters[0].Missing)
	}
	if c.CoverageRatio != retrylens.Some(0.5) {
		t.Errorf("coverage %v, want 0.5", c.CoverageRatio)
	}
	if c.SetGaps(nil); c.RecordsMissing.Set || c.CoverageRatio.Set {
		t.Error("without emitters something is known")
	}
}
