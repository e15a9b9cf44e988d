package metrics_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

// docLine is how docs/metrics.md lists a figure.
func docLine(f metrics.Formula) string {
	name := f.Name
	if f.Label != "" {
		name += "{" + f.Label + "}"
	}
	return fmt.Sprintf("| `%s` | %s | %s |\n", name, f.Unit, f.Text)
}

func TestEveryFormulaIsDocumented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range metrics.Formulas {
		if !strings.Contains(string(doc), docLine(f)) {
			t.Errorf("docs/metrics.md lacks the line\n%s", docLine(f))
		}
	}
}

func TestFormulasAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range metrics.Formulas {
		if seen[f.Name] || f.Name == "" || f.Text == "" || f.Unit == "" {
			t.Errorf("%q twice, or without text or unit", f.Name)
		}
		seen[f.Name] = true
		if (f.Label == "") != (len(f.Keys) == 0) {
			t.Errorf("%s: a label and keys go together", f.Name)
		}
	}
}

func sampleRow() metrics.Row {
	row := metrics.Row{Latency: metrics.Quantiles{P50: retrylens.Some[int64](5), P99: retrylens.Some[int64](-7)}}
	row.Operations, row.Attempts, row.KeyConflicts = 2, 3, 4
	row.OrphanedCostUSD, row.BilledCostUSD = retrylens.PicoUSD(1), retrylens.PicoUSD(4)
	row.OrphanedPromptTokens, row.OrphanedCompletionTokens = 10, 20
	row.ErrorsByClass = map[string]uint64{"timeout": 2, "auth": 0}
	row.OrphanedCostUSDByReason = map[string]retrylens.Money{"error": retrylens.PicoUSD(1), "timeout": {}}
	return row
}

func TestFigure(t *testing.T) {
	for name, want := range map[string]string{
		"operations":                             "2",
		"key_conflicts":                          "4",
		"retry_ratio":                            "1.5",
		"rescue_ratio":                           "null",
		"cost_per_rescue_usd":                    "null",
		"orphaned_tokens":                        "30",
		"orphaned_cost_usd":                      "0.000000000001",
		"orphaned_cost_ratio":                    "0.25",
		"errors_by_class{timeout}":               "2",
		"errors_by_class{overloaded}":            "0",
		"orphaned_cost_usd_by_reason{error}":     "0.000000000001",
		"orphaned_cost_usd_by_reason{abandoned}": "0.000000000000",
		"attempts_by_position{9}":                "0",
		"latency_ms{p50}":                        "5",
		"latency_ms{p90}":                        "null",
		"latency_ms{p99}":                        "-7",
	} {
		v, ok := metrics.Figure(name, sampleRow())
		if !ok || v.String() != want {
			t.Errorf("%s = %s, %t; want %s", name, v, ok, want)
		}
	}
}

func TestFigureThatIsNone(t *testing.T) {
	for _, name := range []string{
		"", "retries_ratio", "errors_by_class", "errors_by_class{}", "errors_by_class{tiemout}", "errors_by_class{timeout",
		"latency_ms", "latency_ms{p95}", "operations{x}", "operations{", "attempts_by_position{10}",
	} {
		if v, ok := metrics.Figure(name, sampleRow()); ok {
			t.Errorf("%s = %s, want none", name, v)
		}
	}
}

func TestValueFloat64(t *testing.T) {
	for name, want := range map[string]float64{
		"operations": 2, "retry_ratio": 1.5, "orphaned_cost_usd": 1e-12, "latency_ms{p99}": -7,
	} {
		v, _ := metrics.Figure(name, sampleRow())
		if got, ok := v.Float64(); !ok || got != want {
			t.Errorf("%s = %v, %t", name, got, ok)
		}
	}
	null, _ := metrics.Figure("rescue_ratio", sampleRow())
	if _, ok := null.Float64(); ok {
		t.Error("null has a number")
	}
}
