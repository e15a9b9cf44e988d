package app_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/app"
	"github.com/retrylens/retrylens/internal/metrics"
)

var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// row has an amplification of 1.25, p99 of 30 s and no retries at all.
func row() metrics.Row {
	r := metrics.Row{Counters: metrics.Counters{Operations: 4, UpstreamCalls: 5, ErrorsByClass: map[string]uint64{"timeout": 3}}}
	r.Latency.P99 = retrylens.Some[int64](30000)
	r.OrphanedCostUSD = retrylens.PicoUSD(1_500_000_000_000)
	return r
}

func TestThreshold(t *testing.T) {
	for in, broken := range map[string]bool{
		"amplification>1.2":             true,
		"amplification > 1.25":          false,
		"amplification>=1.25":           true,
		"amplification<1.25":            false,
		"amplification<=1.25":           true,
		" amplification < 2 ":           true,
		"errors_by_class{timeout}>=3":   true,
		"errors_by_class{overloaded}>0": false,
		"latency_ms{p99}>29999":         true,
		"latency_ms{p50}>0":             false, // null
		"latency_ms{p50}<1e9":           false, // null
		"retry_success_ratio<1":         false, // null
		"retry_success_ratio>=0":        false, // null
		"orphaned_cost_usd>1.49":        true,
		"orphaned_cost_usd>1.5":         false,
		"operations<-1":                 false,
	} {
		th, err := app.ParseThreshold(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if _, got := th.Broken(row()); got != broken {
			t.Errorf("%s: broken %t, want %t", in, got, broken)
		}
	}
}

func TestThresholdSaysWhatWasMeant(t *testing.T) {
	for in, want := range map[string]string{
		"amplificaton>1":                 "did you mean amplification?",
		"error_raito>1":                  "did you mean error_ratio?",
		"errors_by_class{timout}>1":      "did you mean errors_by_class{timeout}?",
		"errors_by_class>1":              "errors_by_class{rate_limited}",
		"amplification{x}>1":             "without {}",
		"latency_ms{p95}>1":              "did you mean latency_ms{p90}?",
		"latency_ms{p99>1":               "did you mean latency_ms{p99}?",
		"amplification":                  "no comparison",
		"amplification=1":                "no comparison",
		"amplification>":                 "no number",
		"amplification>>1":               "no number",
		"amplification>NaN":              "no number",
		"amplification>Inf":              "no number",
		">1":                             "unknown figure",
		strings.Repeat("x", 5000) + ">1": "unknown figure",
	} {
		_, err := app.ParseThreshold(in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", in, err, want)
		}
	}
}

func TestParseAddress(t *testing.T) {
	for in, want := range map[string]string{
		"":                                     "embedded:./data",
		"embedded:/var/lib/x":                  "embedded:/var/lib/x",
		"embedded:a b":                         "embedded:a b",
		"clickhouse://u:p@h:9000/db":           "clickhouse://u:xxxxx@h:9000/db",
		"clickhouse://u:p@h:9000,i:9000/db":    "clickhouse://u:xxxxx@h:9000,i:9000/db",
		"https://h:8443/db?secure=true&x=y":    "https://h:8443/db",
		"http://h/?username=u&password=geheim": "http://u:xxxxx@h/",
		"http://v@h/?password=geheim":          "http://v:xxxxx@h/",
	} {
		a, err := app.ParseAddress(in)
		if err != nil || a.String() != want {
			t.Errorf("%s: %s, %v; want %s", in, a, err, want)
		}
	}
}

// TestAddressNeverTellsThePassword whatever is wrong with it.
func TestAddressNeverTellsThePassword(t *testing.T) {
	const secret = "geheim"
	for _, in := range []string{
		"clickhouse://u:%zz" + secret + "@h:9000/db", "clickhouse://u:" + secret + "@h:port/db", "clickhouse://u:" + secret + "@/db",
		"u:" + secret + "@h:9000", "postgres://u:" + secret + "@h/db", "clickhouse:/u:" + secret + "@h", "http://u:" + secret + "@h\x00/",
		secret, "clickhouse://u:a/" + secret + "@h:x", "embedded:",
	} {
		_, err := app.ParseAddress(in)
		var usage *app.UsageError
		if !errors.As(err, &usage) {
			t.Errorf("%q: %v, want a usage error", in, err)
			continue
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q: the error tells it: %v", in, err)
		}
	}
}

func TestExitCode(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("more: %w", err) }
	for _, c := range []struct {
		err  error
		code int
	}{
		{nil, 0},
		{errors.New("any"), 1},
		{wrap(app.ErrNothingAccepted), 1},
		{wrap(&app.UsageError{Err: errors.New("flag")}), 2},
		{wrap(app.ErrThreshold), 3},
		{wrap(app.ErrUnreachable), 5},
		{errors.Join(app.ErrThreshold, nil), 3},
		{&app.InterruptedError{Err: wrap(app.ErrUnreachable)}, 1},
	} {
		if got := app.ExitCode(c.err); got != c.code {
			t.Errorf("%v: %d, want %d", c.err, got, c.code)
		}
	}
}

func TestReportOptions(t *testing.T) {
	for name, c := range map[string]struct {
		o    app.ReportOptions
		want string // of the error, "" = none
	}{
		"nothing":          {app.ReportOptions{}, ""},
		"format":           {app.ReportOptions{Format: "xml"}, "--output must be one of"},
		"explain csv":      {app.ReportOptions{Explain: true, Format: "csv"}, "--explain goes with"},
		"sql and fail-on":  {app.ReportOptions{SQL: true, FailOn: []string{"operations>1"}}, "--sql prints"},
		"from":             {app.ReportOptions{From: "soon"}, "--from: no time"},
		"to before from":   {app.ReportOptions{From: "now", To: "now-1h"}, "to is before from"},
		"since and to":     {app.ReportOptions{Since: "1h", To: "now"}, "--since goes without"},
		"since":            {app.ReportOptions{Since: "-1h"}, "--since: no positive duration"},
		"bucket":           {app.ReportOptions{Bucket: "1.5s"}, "whole seconds"},
		"group":            {app.ReportOptions{GroupBy: []string{"providr"}}, "did you mean provider?"},
		"group twice":      {app.ReportOptions{GroupBy: []string{"model", "model"}}, "twice"},
		"group mixed":      {app.ReportOptions{GroupBy: []string{"model", "executed_model"}}, "cannot join"},
		"spend threshold":  {app.ReportOptions{GroupBy: []string{"executed_model"}, FailOn: []string{"amplification>1"}}, "spend figures only"},
		"spend threshold2": {app.ReportOptions{GroupBy: []string{"executed_model"}, FailOn: []string{"orphaned_cost_usd>1"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Now = func() time.Time { return now }
			_, err := app.NewReport(c.o)
			var usage *app.UsageError
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!errors.As(err, &usage) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want a usage error with %q", err, c.want)
			}
		})
	}
}

// TestOptionsOfImportAndSimulate: a bad one is named.
func TestOptionsOfImportAndSimulate(t *testing.T) {
	imports := func(o app.ImportOptions) error { _, err := app.NewImport(o); return err }
	simulates := func(o app.SimulateOptions) error { _, err := app.NewSimulate(o); return err }
	for want, err := range map[string]error{
		"no file given":         imports(app.ImportOptions{}),
		"given 2 times":         imports(app.ImportOptions{Files: []string{"-", "-"}}),
		"--tenant":              imports(app.ImportOptions{Files: []string{"-"}, Tenant: strings.Repeat("x", 65)}),
		"--hours must be":       simulates(app.SimulateOptions{Hours: -1}),
		"--ops-per-minute must": simulates(app.SimulateOptions{PerMinute: 2e6}),
		"--start: no time":      simulates(app.SimulateOptions{Start: "soon"}),
		"--trace brings its":    simulates(app.SimulateOptions{Trace: "x", Hours: 1}),
	} {
		var usage *app.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want a usage error with %q", err, want)
		}
	}
	if err := imports(app.ImportOptions{Files: []string{"missing"}}); app.ExitCode(err) != app.ExitFailure {
		t.Errorf("a missing file: %v", err)
	}
}

// TestSimulateTwiceIsTheSame: a seed and a start say all.
func TestSimulateTwiceIsTheSame(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	run := func() string {
		var out, errs strings.Builder
		s, err := app.NewSimulate(app.SimulateOptions{
			Seed: seed, Hours: 0.1, Start: "2026-11-28", Streams: app.Streams{Out: &out, Err: &errs},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if a, b := run(), run(); a != b || !strings.HasPrefix(a, `{"tenant":`) {
		t.Errorf("two runs differ, or are no records: %.80s", a)
	}
}
