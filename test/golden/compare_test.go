package golden

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/metrics"
)

// goldenQueries are the queries of the golden files, by file.
var goldenQueries = map[string]metrics.Query{
	"report-all.json":               {AsOf: asOf},
	"report-by-provider-model.json": {AsOf: asOf, GroupBy: []metrics.Dimension{metrics.DimProvider, metrics.DimModel}},
	"report-by-tenant-service-0030-0145.json": {
		AsOf: asOf, GroupBy: []metrics.Dimension{metrics.DimTenant, metrics.DimService},
		From: time.Date(2026, 11, 28, 0, 30, 0, 0, time.UTC), To: time.Date(2026, 11, 28, 1, 45, 0, 0, time.UTC),
	},
	"report-by-environment-as-of-0130.json": {
		AsOf: time.Date(2026, 11, 28, 1, 30, 0, 0, time.UTC), GroupBy: []metrics.Dimension{metrics.DimEnvironment},
	},
}

// compareAll returns how many golden reports the store gives.
func compareAll(t *testing.T, s *clickhouse.Store) (equal int) {
	t.Helper()
	for file, q := range goldenQueries {
		report, err := s.Report(t.Context(), q)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		got, err := json.Marshal(report)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(goldenDir, file))
		if err != nil {
			t.Fatal(err)
		}
		if diffs := diffRows(decode(t, got)["rows"], decode(t, want)["rows"]); len(diffs) > 0 {
			t.Errorf("%s:\n%s", file, strings.Join(diffs, "\n"))
			continue
		}
		equal++
	}
	return equal
}

func decode(t *testing.T, data []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	out := map[string]any{}
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// diffRows compares rows in any order by their text, member by member.
func diffRows(got, want any) []string {
	g, w := sortRows(got), sortRows(want)
	if len(g) != len(w) {
		return []string{fmt.Sprintf("%d rows, want %d", len(g), len(w))}
	}
	var diffs []string
	for i := range w {
		diffs = append(diffs, diff(fmt.Sprintf("row %d", i), g[i], w[i])...)
	}
	return diffs
}

func sortRows(rows any) []any {
	out, _ := rows.([]any)
	key := func(r any) string {
		m, _ := r.(map[string]any)
		var k strings.Builder
		for _, d := range metrics.Dimensions {
			fmt.Fprint(&k, m[string(d)], "\x00")
		}
		return k.String()
	}
	sort.Slice(out, func(i, j int) bool { return key(out[i]) < key(out[j]) })
	return out
}

func diff(path string, got, want any) []string {
	gm, gok := got.(map[string]any)
	wm, wok := want.(map[string]any)
	if gok && wok {
		return diffObjects(path, gm, wm)
	}
	if !same(path, got, want) {
		return []string{fmt.Sprintf("%s: got %v, want %v", path, got, want)}
	}
	return nil
}

func diffObjects(path string, got, want map[string]any) []string {
	var diffs []string
	for k := range got {
		if _, ok := want[k]; !ok {
			diffs = append(diffs, path+"."+k+": not in the golden report")
		}
	}
	for k, w := range want {
		g, ok := got[k]
		if !ok {
			diffs = append(diffs, path+"."+k+": missing")
			continue
		}
		diffs = append(diffs, diff(path+"."+k, g, w)...)
	}
	return diffs
}

// same compares numbers and money as numbers, ratios to 1e-12, quantiles to
// 0.5 %.
func same(path string, got, want any) bool {
	g, gok := number(got)
	w, wok := number(want)
	if !gok || !wok {
		return got == want
	}
	gf, _ := g.Float64()
	wf, _ := w.Float64()
	switch {
	case strings.Contains(path, "_ms."):
		return math.Abs(gf-wf) <= 0.005*math.Abs(wf)
	case strings.Contains(path, "ratio"), strings.Contains(path, "rate"), strings.HasSuffix(path, "amplification"), strings.HasSuffix(path, "factor"):
		return math.Abs(gf-wf) <= 1e-12
	}
	return g.Cmp(w) == 0
}

func number(v any) (*big.Rat, bool) {
	switch n := v.(type) {
	case json.Number:
		return new(big.Rat).SetString(n.String())
	case string:
		return new(big.Rat).SetString(n)
	}
	return nil, false
}
