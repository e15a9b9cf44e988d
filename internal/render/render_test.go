package render_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"github.com/retrylens/retrylens/internal/format"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/export"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/render"
)

var update = flag.Bool("update", false, "write the golden files")

var (
	noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	asOf = noon.Add(24 * time.Hour)
)

func some[T any](v T) retrylens.Opt[T] { return retrylens.Some(v) }

func money(t *testing.T, s string) retrylens.Opt[retrylens.Money] {
	t.Helper()
	m, err := retrylens.ParseMoney(s)
	if err != nil {
		t.Fatal(err)
	}
	return retrylens.Some(m)
}

// attempt is one of an operation that starts at noon.
func attempt(id string, n int32, afterMS, durationMS int64, change func(*retrylens.Attempt)) retrylens.Attempt {
	a := retrylens.Attempt{
		Tenant: "acme", LogicalID: id, Attempt: n, OperationStartedAt: noon,
		StartedAt: noon.Add(time.Duration(afterMS) * time.Millisecond), DurationMS: some(durationMS),
		Service: "assistant", Environment: "prod", Operation: "chat", Provider: "openai", Model: "gpt-4o",
		Outcome: retrylens.OutcomeError, IdempotencyKey: "k-" + id,
	}
	if change != nil {
		change(&a)
	}
	a.Normalize()
	return a
}

// worked is the worked example of the metrics' definition.
func worked(t *testing.T) []retrylens.Attempt {
	return []retrylens.Attempt{
		attempt("a", 0, 0, 1000, func(a *retrylens.Attempt) {
			a.ErrorClass, a.Status = retrylens.ClassRateLimited, some[uint16](429)
			a.RetryAfterMS, a.DelayMS = some[int64](500), some[int64](700)
		}),
		attempt("a", 1, 1700, 30000, func(a *retrylens.Attempt) {
			a.ErrorClass, a.Revision, a.DelayMS = retrylens.ClassTimeout, 1, some[int64](1300)
			a.PromptTokens, a.CompletionTokens, a.CostUSD = some[int64](900), some[int64](1800), money(t, "0.0081")
		}),
		attempt("a", 2, 33000, 2000, func(a *retrylens.Attempt) {
			a.Outcome, a.Status = retrylens.OutcomeSuccess, some[uint16](200)
			a.PromptTokens, a.CompletionTokens, a.CostUSD = some[int64](900), some[int64](1750), money(t, "0.00795")
		}),
		attempt("b", 0, 0, 100, func(a *retrylens.Attempt) {
			a.Outcome, a.Model = retrylens.OutcomeSuccess, "gpt-4o-mini"
			a.PromptTokens, a.CompletionTokens, a.CostUSD = some[int64](10), some[int64](5), money(t, "0.00001")
		}),
	}
}

// hostile has names that try a terminal, a spreadsheet and a Markdown table.
func hostile() []retrylens.Attempt {
	return []retrylens.Attempt{
		attempt("\x1b[31mred\u202e", 0, 0, 50, func(a *retrylens.Attempt) {
			a.Tenant, a.Service, a.Model = "=1+1|2", "-svc", "m<b>`x`"
			a.Outcome = retrylens.OutcomeSuccess
		}),
		attempt("open", 0, 0, 0, func(a *retrylens.Attempt) {
			a.DurationMS, a.ErrorClass = retrylens.Opt[int64]{}, retrylens.ClassTimeout
		}),
	}
}

// gateway is an operation that both hops report: a retry of the gateway's own,
// a reply that was lost, and a replay.
func gateway(t *testing.T) []retrylens.Attempt {
	inner := func(a *retrylens.Attempt) { a.Hop = retrylens.HopGateway }
	return []retrylens.Attempt{
		attempt("g", 0, 0, 5000, func(a *retrylens.Attempt) {
			a.ErrorClass, a.DelayMS = retrylens.ClassTimeout, some[int64](800)
		}),
		attempt("g", 1, 5800, 900, func(a *retrylens.Attempt) {
			a.Outcome, a.ServedBy = retrylens.OutcomeSuccess, some[int32](2)
		}),
		attempt("g", 0, 10, 1000, func(a *retrylens.Attempt) {
			inner(a)
			a.ErrorClass, a.Status, a.RetryAfterMS = retrylens.ClassOverloaded, some[uint16](529), some[int64](2000)
		}),
		attempt("g", 1, 1300, 4500, func(a *retrylens.Attempt) {
			inner(a)
			a.Outcome, a.PromptTokens, a.CostUSD = retrylens.OutcomeSuccess, some[int64](120), money(t, "12.5")
		}),
		attempt("g", 2, 5810, 20, func(a *retrylens.Attempt) {
			inner(a)
			a.Outcome, a.ReplayOf = retrylens.OutcomeReplayed, some[int32](1)
		}),
	}
}

func fold(t *testing.T, attempts []retrylens.Attempt, q metrics.Query) *metrics.Report {
	t.Helper()
	q.AsOf = asOf
	r, err := metrics.Fold(attempts, q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (write it with -update)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (rewrite with -update):\n%s", name, got)
	}
}

func TestGolden(t *testing.T) {
	all := append(append(worked(t), gateway(t)...), hostile()...)
	whole := fold(t, worked(t), metrics.Query{From: noon, To: noon.Add(time.Hour)})
	groups := fold(t, all, metrics.Query{GroupBy: []metrics.Dimension{metrics.DimTenant, metrics.DimModel}})
	buckets := fold(t, all, metrics.Query{Bucket: 5 * time.Minute})
	spend := fold(t, all, metrics.Query{GroupBy: []metrics.Dimension{metrics.DimExecutedModel}})
	empty := fold(t, nil, metrics.Query{})
	none := fold(t, nil, metrics.Query{GroupBy: []metrics.Dimension{metrics.DimTenant}})
	plain, wide, narrow := render.Screen{}, render.Screen{Width: 150}, render.Screen{Width: 60}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"whole.txt":          func(b *bytes.Buffer) error { return render.Table(b, whole, false, plain) },
		"whole-narrow.txt":   func(b *bytes.Buffer) error { return render.Table(b, whole, true, narrow) },
		"whole.md":           func(b *bytes.Buffer) error { return render.Markdown(b, whole, true) },
		"whole.csv":          func(b *bytes.Buffer) error { return export.CSV(b, export.Report(whole)) },
		"whole.json":         func(b *bytes.Buffer) error { return render.JSON(b, whole) },
		"groups.txt":         func(b *bytes.Buffer) error { return render.Table(b, groups, true, plain) },
		"groups.md":          func(b *bytes.Buffer) error { return render.Markdown(b, groups, false) },
		"groups.csv":         func(b *bytes.Buffer) error { return export.CSV(b, export.Report(groups)) },
		"buckets.txt":        func(b *bytes.Buffer) error { return render.Table(b, buckets, false, plain) },
		"spend.txt":          func(b *bytes.Buffer) error { return render.Table(b, spend, false, plain) },
		"spend.csv":          func(b *bytes.Buffer) error { return export.CSV(b, export.Report(spend)) },
		"empty.txt":          func(b *bytes.Buffer) error { return render.Table(b, empty, false, plain) },
		"none.txt":           func(b *bytes.Buffer) error { return render.Table(b, none, false, plain) },
		"waterfall.txt":      func(b *bytes.Buffer) error { return render.Waterfall(b, metrics.Operations(all, asOf), plain) },
		"waterfall-wide.txt": func(b *bytes.Buffer) error { return render.Waterfall(b, metrics.Operations(all, asOf), wide) },
		"waterfall-60.txt":   func(b *bytes.Buffer) error { return render.Waterfall(b, metrics.Operations(all, asOf), narrow) },
		"operations.json":    func(b *bytes.Buffer) error { return metrics.OperationsJSON(b, metrics.Operations(all, asOf), asOf) },
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			golden(t, name, b.Bytes())
		})
	}
}

// TestColoursOnlyWhereAsked: every escape is ours, and none without colour.
func TestColoursOnlyWhereAsked(t *testing.T) {
	all := append(worked(t), hostile()...)
	for _, color := range []bool{false, true} {
		var b bytes.Buffer
		s := render.Screen{Width: 100, Color: color}
		if err := render.Table(&b, fold(t, all, metrics.Query{GroupBy: []metrics.Dimension{metrics.DimTenant}}), true, s); err != nil {
			t.Fatal(err)
		}
		if err := render.Waterfall(&b, metrics.Operations(all, asOf), s); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "\x1b["); got != color {
			t.Errorf("colour %t: escapes %t", color, got)
		}
		if strings.Contains(b.String(), "\u202e") || strings.Contains(b.String(), "\x1b[31mred") {
			t.Errorf("colour %t: a name reaches the terminal as it is", color)
		}
	}
}

// TestWaterfallFits: no line is wider than the screen, from 80 columns on.
func TestWaterfallFits(t *testing.T) {
	for _, width := range []int{80, 100, 120, 200} {
		var b bytes.Buffer
		if err := render.Waterfall(&b, metrics.Operations(append(worked(t), gateway(t)...), asOf), render.Screen{Width: width}); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(b.String(), "\n") {
			if n := utf8.RuneCountInString(line); n > width && strings.ContainsAny(line, "█╱") && !strings.Contains(line, "Retry-After") {
				t.Errorf("width %d: %d columns: %s", width, n, line)
			}
		}
	}
}

// TestEveryFigureHasItsPlace: in the sections of one row, and in the CSV.
func TestEveryFigureHasItsPlace(t *testing.T) {
	r := fold(t, worked(t), metrics.Query{})
	var table, file bytes.Buffer
	if err := render.Table(&table, r, false, render.Screen{}); err != nil {
		t.Fatal(err)
	}
	if err := export.CSV(&file, export.Report(r)); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range metrics.Formulas {
		if n := strings.Count(table.String(), "\n  "+f.Name+" "); n != 1 {
			t.Errorf("%s stands %d times in the table", f.Name, n)
		}
		columns := []string{f.Name}
		if f.Label != "" {
			columns = nil
			for _, k := range f.Keys {
				columns = append(columns, f.Name+"."+k)
			}
		}
		for _, c := range columns {
			if !slices.Contains(rows[0], c) {
				t.Errorf("the CSV has no column %s", c)
			}
		}
	}
}

func TestFooterNamesWhatCannotBeKnown(t *testing.T) {
	r := fold(t, worked(t), metrics.Query{})
	r.Completeness = nil
	if got := strings.Join(format.Footer(r), "\n"); !strings.Contains(got, "completeness: cannot be known") || !strings.Contains(got, "provisional: yes") {
		t.Errorf("got %s", got)
	}
	r.Completeness = &metrics.Completeness{RecordsMissing: some[uint64](4), DeadLetters: some[uint64](2), SpoolAgeMS: some[int64](1500)}
	for range 5 {
		r.Completeness.Emitters = append(r.Completeness.Emitters, metrics.EmitterGap{Tenant: "t", Emitter: "e\x1b", Missing: 1, MaxSeq: 9, Distinct: 9})
	}
	got := strings.Join(format.Footer(r), "\n")
	for _, want := range []string{`records missing: 4 (t/e\x1b 1 of 10, `, "2 emitters more", "dead letters: 2", "spool age: 1.50 s", "rejected lines: cannot be known"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}

func TestOperationsJSONHoldsTheRecordsAsTheyCame(t *testing.T) {
	var b bytes.Buffer
	attempts := worked(t)
	if err := metrics.OperationsJSON(&b, metrics.Operations(attempts, asOf), asOf); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Operations []struct {
			Verdict  metrics.Verdict
			Attempts []struct{ Record json.RawMessage }
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if v := got.Operations[0].Verdict; v.OrphanedTokens != 2700 || *v.RetryTaxMS != 33000 || !v.Rescued {
		t.Errorf("verdict %+v", v)
	}
	if rec := got.Operations[0].Attempts[1].Record; string(rec) != string(attempts[1].AppendJSON(nil)) {
		t.Errorf("record %s", rec)
	}
}

func TestHeadingNamesTheFilters(t *testing.T) {
	r := &metrics.Report{GroupBy: []metrics.Dimension{metrics.DimTenant}, Filters: map[metrics.Dimension][]string{metrics.DimModel: {"a", "b\n"}, metrics.DimTenant: {"t"}}}
	var b strings.Builder
	if err := render.Table(&b, r, false, render.Screen{}); err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(b.String(), "\n")
	if !strings.Contains(first, ", tenant t, model a or b") || !strings.Contains(first, ", as of") {
		t.Errorf("got %q", first)
	}
}
