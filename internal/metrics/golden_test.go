package metrics_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/wire"
)

func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
}

var goldenReports = []struct {
	file  string
	query metrics.Query
}{
	{"report-all.json", metrics.Query{AsOf: at("2026-11-29T12:00:00Z")}},
	{"report-by-provider-model.json", metrics.Query{
		AsOf: at("2026-11-29T12:00:00Z"), GroupBy: []metrics.Dimension{metrics.DimProvider, metrics.DimModel},
	}},
	{"report-by-tenant-service-0030-0145.json", metrics.Query{
		From: at("2026-11-28T00:30:00Z"), To: at("2026-11-28T01:45:00Z"),
		AsOf: at("2026-11-29T12:00:00Z"), GroupBy: []metrics.Dimension{metrics.DimTenant, metrics.DimService},
	}},
	{"report-by-environment-as-of-0130.json", metrics.Query{
		AsOf: at("2026-11-28T01:30:00Z"), GroupBy: []metrics.Dimension{metrics.DimEnvironment},
	}},
}

func TestGolden(t *testing.T) {
	attempts := goldenAttempts(t)
	for _, g := range goldenReports {
		t.Run(g.file, func(t *testing.T) {
			report, err := metrics.Fold(attempts, g.query)
			if err != nil {
				t.Fatal(err)
			}
			got, want := rowsOf(t, marshal(t, report)), rowsOf(t, readFile(t, g.file))
			if len(got) != len(want) {
				t.Fatalf("%d rows, want %d", len(got), len(want))
			}
			for i := range want {
				diffRow(t, fmt.Sprintf("row %d", i), "", got[i], want[i])
			}
		})
	}
}

// diffRow compares exactly: numbers and money as numbers, quantiles within
// 0.5 %.
func diffRow(t *testing.T, where, figure string, got, want any) {
	t.Helper()
	w, isMap := want.(map[string]any)
	g, _ := got.(map[string]any)
	switch {
	case isMap:
		for k := range w {
			diffRow(t, where+" "+k, figure+"/"+k, g[k], w[k])
		}
		for k := range g {
			if _, ok := w[k]; !ok {
				t.Errorf("%s: extra %s = %v", where, k, g[k])
			}
		}
	case !sameFigure(figure, got, want):
		t.Errorf("%s: got %v, want %v", where, got, want)
	}
}

func sameFigure(figure string, got, want any) bool {
	g, gok := new(big.Rat).SetString(fmt.Sprint(got))
	w, wok := new(big.Rat).SetString(fmt.Sprint(want))
	if !gok || !wok {
		return got == want
	}
	if strings.HasPrefix(figure, "/latency_ms/") || strings.HasPrefix(figure, "/retry_tax_ms/") {
		gf, _ := g.Float64()
		wf, _ := w.Float64()
		return math.Abs(gf-wf) <= 0.005*wf
	}
	return g.Cmp(w) == 0
}

func rowsOf(t *testing.T, b []byte) []any {
	t.Helper()
	var v struct{ Rows []any }
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v.Rows
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "golden", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func goldenAttempts(t *testing.T) []retrylens.Attempt {
	t.Helper()
	attempts, err := wire.DecodeAll(bytes.NewReader(readFile(t, "attempts.ndjson")))
	if err != nil {
		t.Fatal(err)
	}
	return attempts
}
