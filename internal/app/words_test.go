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

func TestParseTime(t *testing.T) {
	for in, want := range map[string]string{
		"2026-11-28T00:30:00Z":         "2026-11-28T00:30:00Z",
		"2026-11-28T01:30:00.25+02:00": "2026-11-27T23:30:00.25Z",
		"2026-11-28":                   "2026-11-28T00:00:00Z",
		"1764288000":                   "2025-11-28T00:00:00Z",
		"1764288000250":                "2025-11-28T00:00:00.25Z",
		"0":                            "1970-01-01T00:00:00Z",
		"now":                          "2026-11-28T12:00:00Z",
		"now-1h":                       "2026-11-28T11:00:00Z",
		"now+90s":                      "2026-11-28T12:01:30Z",
		"now-7d":                       "2026-11-21T12:00:00Z",
		"now-1.5d":                     "2026-11-27T00:00:00Z",
		"now-2w":                       "2026-11-14T12:00:00Z",
		"99999999999":                  "5138-11-16T09:46:39Z", // still seconds
		"100000000000":                 "1973-03-03T09:46:40Z", // milliseconds
	} {
		got, err := app.ParseTime(in, now)
		if err != nil || got.Format(time.RFC3339Nano) != want {
			t.Errorf("ParseTime(%s) = %v, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "yesterday", "now-", "now1h", "now--1h", "now-1", "now-0s", "now*2h", "-5", "2026-13-01", "2026-11-28 00:00", "1e9",
		"100000000000000", "99999999999999999999", "now-99999999999d", "NaN", "now-NaNd", "now-Infd",
	} {
		if got, err := app.ParseTime(in, now); err == nil {
			t.Errorf("ParseTime(%q) = %v, want an error", in, got)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "5m": 5 * time.Minute, "1h30m": 90 * time.Minute, "1d": 24 * time.Hour, "0.5w": 84 * time.Hour, "250ms": 250 * time.Millisecond,
	} {
		if got, err := app.ParseDuration(in); err != nil || got != want {
			t.Errorf("ParseDuration(%s) = %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "0", "0s", "-5m", "5", "d", "-1d", "1e99d", "5 m", "NaNw"} {
		if got, err := app.ParseDuration(in); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", in, got)
		}
	}
}

func FuzzParseTime(f *testing.F) {
	for _, s := range []string{"now-1h", "2026-11-28", "1764288000", "now-1e3d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, err := app.ParseTime(s, now); err == nil && got.Location() != time.UTC {
			t.Errorf("%q is not UTC", s)
		}
	})
}

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
		"no file given":      imports(app.ImportOptions{}),
		"given 2 times":      imports(app.ImportOptions{Files: []string{"-", "-"}}),
		"--tenant":           imports(app.ImportOptions{Files: []string{"-"}, Tenant: strings.Repeat("x", 65)}),
		"--hours must be":    simulates(app.SimulateOptions{Hours: -1}),
		"--per-minute must":  simulates(app.SimulateOptions{PerMinute: 2e6}),
		"--start: no time":   simulates(app.SimulateOptions{Start: "soon"}),
		"--trace brings its": simulates(app.SimulateOptions{Trace: "x", Hours: 1}),
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
