package export

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/retrylens/retrylens"
)

const (
	decimalScale     = 12
	decimalPrecision = 38
	decimalBytes     = 16
	rowGroupRows     = 100_000
	writeRows        = 256
)

// Parquet writes a table: money as DECIMAL(38, 12), times as TIMESTAMP (UTC,
// milliseconds), texts by dictionary, columns in the table's order, zstd pages.
func Parquet(w io.Writer, t Table) error {
	schema := parquet.NewSchema("retrylens", newRoot(t.Columns))
	options := []parquet.WriterOption{schema, parquet.MaxRowsPerRowGroup(rowGroupRows), parquet.Compression(&zstd.Codec{Level: zstd.SpeedDefault})}
	for _, k := range slices.Sorted(maps.Keys(t.Notes)) {
		options = append(options, parquet.KeyValueMetadata(k, t.Notes[k]))
	}
	pw := parquet.NewGenericWriter[any](w, options...)
	if err := writeAll(pw, t); err != nil {
		return err
	}
	if err := pw.Close(); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

func writeAll(pw *parquet.GenericWriter[any], t Table) error {
	rows := make([]parquet.Row, 0, writeRows)
	flush := func() error {
		if _, err := pw.WriteRows(rows); err != nil {
			return fmt.Errorf("export: %w", err)
		}
		rows = rows[:0]
		return nil
	}
	for cells, err := range t.Rows {
		if err != nil {
			return err
		}
		rows = append(rows, parquetRow(t.Columns, cells))
		if len(rows) == cap(rows) {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

func parquetRow(columns []Column, cells []Cell) parquet.Row {
	row := make(parquet.Row, len(cells))
	for i, col := range columns {
		switch {
		case !col.Kind.nullable():
			row[i] = parquetValue(col.Kind, cells[i]).Level(0, 0, i)
		case cells[i].Set:
			row[i] = parquetValue(col.Kind, cells[i]).Level(0, 1, i)
		default:
			row[i] = parquet.NullValue().Level(0, 0, i)
		}
	}
	return row
}

func (k Kind) nullable() bool { return k != Text && k != Bool }

func parquetValue(k Kind, c Cell) parquet.Value {
	switch k {
	case Text:
		return parquet.ByteArrayValue([]byte(c.Text))
	case Bool:
		return parquet.BooleanValue(c.Bool)
	case Count:
		return parquet.Int64Value(c.Count)
	case Ratio:
		return parquet.DoubleValue(c.Ratio)
	case USD:
		return parquet.FixedLenByteArrayValue(bigEndian(c.USD))
	}
	return parquet.Int64Value(c.Time.UnixMilli())
}

// bigEndian is the unscaled value of a decimal as Parquet stores it.
func bigEndian(m retrylens.Money) []byte {
	return m.Pico().FillBytes(make([]byte, decimalBytes))
}

func parquetNode(k Kind) parquet.Node {
	switch k {
	case Text:
		return parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
	case Bool:
		return parquet.Leaf(parquet.BooleanType)
	case Count:
		return parquet.Optional(parquet.Leaf(parquet.Int64Type))
	case Ratio:
		return parquet.Optional(parquet.Leaf(parquet.DoubleType))
	case USD:
		return parquet.Optional(parquet.Decimal(decimalScale, decimalPrecision, parquet.FixedLenByteArrayType(decimalBytes)))
	}
	return parquet.Optional(parquet.Timestamp(parquet.Millisecond))
}

// root is a parquet.Group that keeps its columns in order; the library's sorts
// them by name.
type root struct {
	parquet.Group
	fields []parquet.Field
}

func newRoot(columns []Column) root {
	r := root{Group: parquet.Group{}}
	for _, c := range columns {
		node := parquetNode(c.Kind)
		r.Group[c.Name] = node
		r.fields = append(r.fields, field{Node: node, name: c.Name})
	}
	return r
}

// Fields are the columns in the table's order.
func (r root) Fields() []parquet.Field { return r.fields }

type field struct {
	parquet.Node
	name string
}

// Name is the column's.
func (f field) Name() string { return f.name }

// Value is asked for when rows are made from Go structs; ours are not.
func (f field) Value(base reflect.Value) reflect.Value { return base.MapIndex(reflect.ValueOf(f.name)) }
