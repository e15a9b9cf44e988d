package export_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/export"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/histories"
)

func report(t *testing.T, q metrics.Query) *metrics.Report {
	t.Helper()
	q.AsOf = histories.Now
	r, err := metrics.Fold(histories.Generate(7, 600), q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func summaries(yield func(metrics.Summary, error) bool) {
	for _, op := range metrics.Operations(histories.Generate(7, 600), histories.Now) {
		if !yield(metrics.NewSummary(&op), nil) {
			return
		}
	}
}

// tables are one of every kind.
func tables(t *testing.T) map[string]func() export.Table {
	whole := report(t, metrics.Query{})
	groups := report(t, metrics.Query{GroupBy: []metrics.Dimension{metrics.DimTenant, metrics.DimModel}, Bucket: time.Hour})
	spend := report(t, metrics.Query{GroupBy: []metrics.Dimension{metrics.DimExecutedProvider}})
	return map[string]func() export.Table{
		"whole":      func() export.Table { return export.Report(whole) },
		"groups":     func() export.Table { return export.Report(groups) },
		"spend":      func() export.Table { return export.Report(spend) },
		"operations": func() export.Table { return export.Operations(summaries, export.Notes(whole)) },
	}
}

// TestParquetHoldsWhatTheCSVHolds: cell by cell, in the order of the columns, with
// the types that other programs need to see.
func TestParquetHoldsWhatTheCSVHolds(t *testing.T) {
	for name, table := range tables(t) {
		t.Run(name, func(t *testing.T) {
			var c, p bytes.Buffer
			if err := errors.Join(export.CSV(&c, table()), export.Parquet(&p, table())); err != nil {
				t.Fatal(err)
			}
			lines, err := csv.NewReader(&c).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			file, err := parquet.OpenFile(bytes.NewReader(p.Bytes()), int64(p.Len()))
			if err != nil {
				t.Fatal(err)
			}
			got := append([][]string{nil}, readRows(t, file)...)
			for _, f := range file.Schema().Fields() {
				got[0] = append(got[0], f.Name())
			}
			if !reflect.DeepEqual(got, lines) {
				t.Errorf("differs from the CSV:\n%.600s\n%.600s", fmt.Sprint(got), fmt.Sprint(lines))
			}
			if len(lines) < 2 {
				t.Error("nothing was compared")
			}
			for key := range table().Notes {
				if _, ok := file.Lookup(key); !ok {
					t.Errorf("no metadata %s", key)
				}
			}
		})
	}
}

// readRows reads the file by its own schema only and writes each value as the CSV
// would.
func readRows(t *testing.T, file *parquet.File) [][]string {
	t.Helper()
	var out [][]string
	for _, g := range file.RowGroups() {
		rows := g.Rows()
		buf := make([]parquet.Row, 10)
		for {
			n, err := rows.ReadRows(buf)
			for _, row := range buf[:n] {
				out = append(out, texts(t, file, row))
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func texts(t *testing.T, file *parquet.File, row parquet.Row) []string {
	t.Helper()
	var cells []string
	for i, f := range file.Schema().Fields() {
		v := row[i]
		var logical any
		if l := f.Type().LogicalType(); l != nil {
			logical = l.Value
		}
		switch typ := logical.(type) {
		case *format.DecimalType:
			if typ.Scale != 12 || typ.Precision != 38 {
				t.Fatalf("%s is %v", f.Name(), typ)
			}
		case *format.TimestampType:
			if !typ.IsAdjustedToUTC {
				t.Fatalf("%s is not in UTC", f.Name())
			}
		}
		cells = append(cells, cellText(logical, v))
	}
	return cells
}

func cellText(logical any, v parquet.Value) string {
	if v.IsNull() {
		return ""
	}
	switch logical.(type) {
	case *format.DecimalType:
		m, _ := retrylens.MoneyFromPico(new(big.Int).SetBytes(v.ByteArray()))
		return m.String()
	case *format.TimestampType:
		return time.UnixMilli(v.Int64()).UTC().Format(time.RFC3339Nano)
	case *format.StringType:
		return string(v.ByteArray())
	}
	if v.Kind() == parquet.Double {
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	}
	return v.String()
}

// TestTextsAreDictionaries, so that a column of few names costs little.
func TestTextsAreDictionaries(t *testing.T) {
	var b bytes.Buffer
	if err := export.Parquet(&b, tables(t)["operations"]()); err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Metadata().RowGroups[0].Columns {
		if strings.Join(c.MetaData.PathInSchema, ".") == "provider" && c.MetaData.DictionaryPageOffset == 0 {
			t.Error("provider has no dictionary")
		}
	}
}

// TestCSVNeverHoldsAFormula, whatever a name begins with; Parquet keeps it as it is.
func TestCSVNeverHoldsAFormula(t *testing.T) {
	for _, name := range []string{"=cmd()", "+1", "-1", "@x", "\tx", "\rx"} {
		r := &metrics.Report{GroupBy: []metrics.Dimension{metrics.DimTenant}, Rows: []metrics.Row{{Key: metrics.Key{Dims: []string{name}}}}}
		var c, p bytes.Buffer
		if err := errors.Join(export.CSV(&c, export.Report(r)), export.Parquet(&p, export.Report(r))); err != nil {
			t.Fatal(err)
		}
		lines, err := csv.NewReader(&c).ReadAll()
		if err != nil || lines[1][0] != "'"+name {
			t.Errorf("%q: %q, %v", name, lines, err)
		}
		file, err := parquet.OpenFile(bytes.NewReader(p.Bytes()), int64(p.Len()))
		if err != nil {
			t.Fatal(err)
		}
		if got := readRows(t, file)[0][0]; got != name {
			t.Errorf("%q: Parquet has %q", name, got)
		}
	}
}

// TestEveryFigureIsAColumn of a report, entries as name.key.
func TestEveryFigureIsAColumn(t *testing.T) {
	var names []string
	for _, c := range export.Report(report(t, metrics.Query{})).Columns {
		names = append(names, c.Name)
	}
	for _, f := range metrics.Formulas {
		want := []string{f.Name}
		if f.Label != "" {
			want = nil
			for _, k := range f.Keys {
				want = append(want, f.Name+"."+k)
			}
		}
		for _, w := range want {
			if !slices.Contains(names, w) {
				t.Errorf("no column %s", w)
			}
		}
	}
}

// TestErrorsEndAFile: a source that fails half way is not a short answer.
func TestErrorsEndAFile(t *testing.T) {
	broken := errors.New("the store went away")
	var rows iter.Seq2[metrics.Summary, error] = func(yield func(metrics.Summary, error) bool) {
		_ = yield(metrics.Summary{}, nil) && yield(metrics.Summary{}, broken)
	}
	for name, write := range map[string]func(io.Writer, export.Table) error{"csv": export.CSV, "parquet": export.Parquet} {
		if err := write(io.Discard, export.Operations(rows, nil)); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
