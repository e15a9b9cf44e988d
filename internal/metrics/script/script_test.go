package script

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

func TestParse(t *testing.T) {
	cases, err := Parse(`
# a comment
case two words   # another
attempt service="a b" reason="say \"hi\"" duration_ms=null final=false
attempt attempt=1 started_at=12:00:01.5 error_class=timeout stream=true cost_usd=0.5
query from=12:00 bucket=1m filter.tenant=t,u group_by=tenant,model
rows 1
case other
rows 0
`)
	if err != nil || len(cases) != 2 || cases[0].Name != "two words" {
		t.Fatalf("%v, %+v", err, cases)
	}
	first, second := cases[0].Attempts[0], cases[0].Attempts[1]
	if first.Service != "a b" || first.Reason != `say "hi"` || first.DurationMS.Set || first.Final != retrylens.Some(false) {
		t.Errorf("first attempt %+v", first)
	}
	if second.Outcome != retrylens.OutcomeError || second.OperationStartedAt != first.StartedAt || !second.Stream ||
		second.StartedAt.Sub(first.StartedAt) != 1500*time.Millisecond {
		t.Errorf("second attempt %+v", second)
	}
	q := cases[0].Queries[0]
	if q.From != first.StartedAt || q.Bucket != time.Minute || len(q.Filters[metrics.DimTenant]) != 2 || len(q.GroupBy) != 2 {
		t.Errorf("query %+v", q)
	}
	if q := cases[1].Queries[0]; q.AsOf != nextNoon || q.Checks[0].Line != 9 {
		t.Errorf("query without a line %+v", q)
	}
}

func TestParseErrorsNameTheLine(t *testing.T) {
	for src, want := range map[string]string{
		"attempt":                                 "line 1: before the first case",
		"case c\nfoo":                             `line 2: unknown word "foo"`,
		"case c\nattempt colour=red":              `line 2: unknown key "colour"`,
		"case c\nattempt attempt=x":               "line 2: attempt:",
		"case c\nattempt attempt=2147483648":      "line 2: attempt:",
		"case c\nattempt revision=256":            "line 2: revision:",
		"case c\nattempt upstream_calls=65536":    "line 2: upstream_calls:",
		"case c\nattempt cost_usd=-1":             "line 2: cost_usd:",
		"case c\nattempt started_at=noon":         "line 2: started_at:",
		"case c\nattempt outcome=error":           "line 2: error_class: missing",
		"case c\nattempt service=\"open":          "line 2: a quote is not closed",
		"case c\nquery bucket=x":                  "line 2: bucket:",
		"case c\nquery colour=x":                  "line 2: colour: unknown key",
		"case c\nrows":                            "line 2: rows: what?",
		"case c\nattempt served_by=1 hop=gateway": "line 2: served_by:",
	} {
		if _, err := Parse(src); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", src, err, want)
		}
	}
}

var reference = FolderFunc(func(_ context.Context, attempts []retrylens.Attempt, q metrics.Query) (*metrics.Report, error) {
	return metrics.Fold(attempts, q)
})

// wrongs runs the only case of a script of checks on three attempts.
func wrongs(t *testing.T, query, check string) []error {
	t.Helper()
	cases, err := Parse("case c\nattempt emitter=e seq=1 duration_ms=1000\n" +
		"attempt logical_id=b tenant=u error_class=timeout prompt_tokens=1 cost_usd=0.5\n" +
		"query " + query + "\n" + check)
	if err != nil {
		t.Fatal(err)
	}
	return cases[0].Queries[0].hold(t.Context(), cases[0].Attempts, reference)
}

var checks = []struct {
	query, check string
	holds        bool
}{
	{"", "rows 1", true},
	{"", "rows 2", false},
	{"", "expect operations 2", true},
	{"", "expect operations 3", false},
	{"", "expect operations null", false},
	{"", "expect operations two", false},
	{"", "expect operations", false},
	{"", "expect nonsense 1", false},
	{"", "expect error_ratio 0/1", true},
	{"", "expect error_ratio 1/3", false},
	{"", "expect rescue_ratio null", true},
	{"", "expect rescue_ratio 0", false},
	{"", "expect billed_cost_usd 0.5", true},
	{"", "expect billed_cost_usd 0.500000000001", false},
	{"", "expect errors_by_class timeout=1", true},
	{"", "expect errors_by_class timeout=2", false},
	{"", "expect errors_by_class timeout=1 auth=1", false},
	{"", "expect errors_by_class auth=1", false},
	{"", "expect errors_by_class none", false},
	{"", "expect stops_by_reason none", true},
	{"", "expect errors_by_class{timeout} 1", true},
	{"", "expect errors_by_class{timeout} 0", false},
	{"", "expect latency_ms{p50} 1004", true},
	{"", "expect latency_ms{p50} 1006", false},
	{"group_by=tenant", "expect tenant=u operations 1", true},
	{"group_by=tenant", "expect tenant=v operations 1", false},
	{"group_by=tenant", "expect operations 1", false},
	{"group_by=tenant", "expect model=m operations 1", false},
	{"bucket=1h", "expect bucket=12:00 operations 2", true},
	{"bucket=1h", "expect bucket=13:00 operations 2", false},
	{"", "provisional true", true},
	{"", "provisional false", false},
	{"", "completeness records_missing 1", true},
	{"", "completeness records_missing null", false},
	{"", "completeness known_usage_ratio 1/2", true},
	{"", "completeness nonsense 1", false},
	{"", "completeness records_missing", false},
	{"", "gap e 1", true},
	{"", "gap e 2", false},
	{"", "gap e", false},
	{"group_by=colour", "refused colour", true},
	{"group_by=colour", "refused flavour", false},
	{"group_by=colour", "rows 1", false},
	{"", "refused anything", false},
}

func TestChecksHold(t *testing.T) {
	for _, c := range checks {
		if wrong := wrongs(t, c.query, c.check); (len(wrong) == 0) != c.holds {
			t.Errorf("%s, %s: %v", c.query, c.check, wrong)
		}
	}
}

func TestWhatIsWrongNamesItsLine(t *testing.T) {
	wrong := wrongs(t, "", "rows 1\nrows 3")
	if len(wrong) != 1 || wrong[0].Error() != "6: rows 3: got 1" {
		t.Errorf("got %v", wrong)
	}
	failing := FolderFunc(func(context.Context, []retrylens.Attempt, metrics.Query) (*metrics.Report, error) {
		return nil, errors.New("down")
	})
	q := Query{Checks: []Check{{Line: 1, Words: []string{"rows", "1"}}}}
	if wrong := q.hold(t.Context(), nil, failing); len(wrong) != 1 || !strings.Contains(wrong[0].Error(), "down") {
		t.Errorf("got %v", wrong)
	}
}
