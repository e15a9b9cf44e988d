package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/app"
)

// printed is what a command of arithmetic writes.
func printed(t *testing.T, run func(app.Output) error, format string) string {
	t.Helper()
	var out strings.Builder
	if err := run(app.Output{Format: format, Streams: app.Streams{Out: &out}}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestArithmeticTables(t *testing.T) {
	for name, c := range map[string]struct {
		run   func(app.Output) error
		table string // lines that are in it
		json  string
	}{
		"timeout": {
			func(out app.Output) error {
				o := app.NewTimeoutCostOptions(app.Streams{})
				o.Output = out
				return app.TimeoutCost(o)
			},
			"retries a day       40,000\ntokens a day    72,000,000\nUSD a call          0.0054\nUSD a day           216.00\nUSD in 30 days    6,480.00\n",
			`{"retries_per_day":40000,"tokens_per_day":72000000,"call_usd":"0.005400000000","day_usd":"216.000000000000","month_usd":"6480.000000000000"}`,
		},
		"hedge": {
			func(out app.Output) error {
				o := app.NewHedgeCostOptions(app.Streams{})
				o.Output = out
				return app.HedgeCost(o)
			},
			"generations, up to     1,050,000\n",
			`{"copies":50000,"generations":1050000,"extra_tokens":90000000,"extra_usd":"270.000000000000","total_usd":"5670.000000000000"}`,
		},
		"layers": {
			func(out app.Output) error {
				return app.LayerCost(app.LayerOptions{Layers: []app.Layer{{Name: "client", Attempts: 3}}, Factors: []string{"4"}, Output: out})
			},
			"layer       attempts  calls under it\nclient             3               3\nlayer 2            4              12\nworst case                        12\n",
			`{"layers":[{"name":"client","attempts":3,"calls":3},{"name":"layer 2","attempts":4,"calls":12}],"worst_case_calls":12}`,
		},
		"storm": {
			func(out app.Output) error {
				o := app.NewStormOptions(app.Streams{})
				o.Jitters, o.Output = []string{"none"}, out
				return app.Storm(context.Background(), o)
			},
			"none         63.0 s       270      210            60          ×4.50\n",
			`{"rows":[{"jitter":"none","completion_ms":63000,"requests":270,"retries":210,"peak_retries":60,"amplification":4.5}]}`,
		},
	} {
		if got := printed(t, c.run, "table"); !strings.Contains(got, c.table) {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.table)
		}
		if got := printed(t, c.run, "json"); got != c.json+"\n" {
			t.Errorf("%s: %s, want %s", name, got, c.json)
		}
	}
}

func outage(change func(*app.OutageOptions)) func(app.Output) error {
	return func(out app.Output) error {
		o := app.NewOutageOptions(app.Streams{})
		o.Output = out
		change(&o)
		return app.SimulateOutage(context.Background(), o)
	}
}

func TestSimulateOutage(t *testing.T) {
	run := outage(func(o *app.OutageOptions) {
		o.Jitters, o.NoBreaker = []string{"none"}, true
		o.Attempts, o.Base = retrylens.Some(2), retrylens.Some(time.Second)
		o.OutageAt, o.Outage, o.Duration, o.FailureRate = 0, time.Minute, time.Second, 1
		o.Rate = 20
	})
	var doc struct {
		Rows []struct {
			Jitter        string
			RetryAfter    *string `json:"retry_after"`
			Operations    int
			Failed        int            `json:"failed_operations"`
			StopReasons   map[string]int `json:"failed_by_stop_reason"`
			Calls         int
			Amplification *float64
			Completion    struct{ P50 *int64 } `json:"completion_ms"`
			USD           string               `json:"cost_usd"`
		}
	}
	if err := json.Unmarshal([]byte(printed(t, run, "json")), &doc); err != nil || len(doc.Rows) != 3 {
		t.Fatalf("%+v, %v", doc, err)
	}
	none, obey := doc.Rows[0], doc.Rows[2]
	if none.RetryAfter != nil || none.Failed != none.Operations || none.StopReasons["max_attempts"] != none.Failed ||
		none.Calls != 2*none.Operations || *none.Amplification != 2 || none.Completion.P50 != nil || none.USD != "0.000000000000" {
		t.Errorf("none: %+v", none)
	}
	if obey.RetryAfter == nil || *obey.RetryAfter != "obey" || obey.Calls != obey.Operations || obey.StopReasons["deadline"] != obey.Failed {
		t.Errorf("obey: %+v", obey)
	}
	table := printed(t, run, "")
	if table != printed(t, run, "") || strings.Count(table, "\n") != 4 || !strings.Contains(table, "×2.00") || !strings.Contains(table, "–") {
		t.Errorf("table:\n%s", table)
	}
}

func TestNoOperationAtAll(t *testing.T) {
	run := outage(func(o *app.OutageOptions) { o.Rate, o.Duration = 0.001, time.Second })
	if got := printed(t, run, "json"); !strings.Contains(got, `"amplification":null,"completion_ms":{"p50":null,"p99":null}`) {
		t.Error(got)
	}
}

// TestWrongArithmetic: a bad number is a usage error that names its flag.
func TestWrongArithmetic(t *testing.T) {
	storm := func(f func(*app.StormOptions)) error {
		o := app.NewStormOptions(app.Streams{})
		f(&o)
		return app.Storm(context.Background(), o)
	}
	wrong := func(f func(*app.OutageOptions)) error { return outage(f)(app.Output{}) }
	timeout, hedge := app.NewTimeoutCostOptions(app.Streams{}), app.NewHedgeCostOptions(app.Streams{})
	timeout.Days, hedge.Requests = 0, 0
	format := app.Output{Format: "csv"}
	for want, err := range map[string]error{
		"--clients must be within 1..1000000, got 0":     storm(func(o *app.StormOptions) { o.Clients = 0 }),
		"--jitter must be some of none":                  storm(func(o *app.StormOptions) { o.Jitters = []string{"half"} }),
		"each once":                                      storm(func(o *app.StormOptions) { o.Jitters = []string{"full", "full"} }),
		"--jitter must name":                             storm(func(o *app.StormOptions) { o.Jitters = nil }),
		"--output must be one of table, json, got \"csv": storm(func(o *app.StormOptions) { o.Output = format }),
		"--policy must be one of interactive, batch":     wrong(func(o *app.OutageOptions) { o.Preset = "fast" }),
		"--attempts must be within 1..99, got 0":         wrong(func(o *app.OutageOptions) { o.Attempts = retrylens.Some(0) }),
		"--cap must be within 1m0s..1h0m0s, got 20s":     wrong(func(o *app.OutageOptions) { o.Base = retrylens.Some(time.Minute) }),
		"--wall-clock-budget must be within":             wrong(func(o *app.OutageOptions) { o.WallClockBudget = retrylens.Some(-time.Second) }),
		"--attempt-timeout must be within":               wrong(func(o *app.OutageOptions) { o.AttemptTimeout = retrylens.Some(time.Duration(0)) }),
		"--failure must be one of [unavailable":          wrong(func(o *app.OutageOptions) { o.FailureName = "x" }),
		"--retry-after must be whole seconds":            wrong(func(o *app.OutageOptions) { o.RetryAfter = time.Millisecond }),
		"--days must be within 1..366, got 0":            app.TimeoutCost(timeout),
		"--requests must be within":                      app.HedgeCost(hedge),
		`"3y4": attempts of a layer`:                     app.LayerCost(app.LayerOptions{Factors: []string{"3y4"}}),
		"got \"csv\"":                                    app.LayerCost(app.LayerOptions{Factors: []string{"3"}, Output: format}),
	} {
		var usage *app.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want a usage error with %q", err, want)
		}
	}
}
