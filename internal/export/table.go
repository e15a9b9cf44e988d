package export

import (
	"iter"
	"time"

	"github.com/retrylens/retrylens"
)

// Kind is the type of a column.
type Kind uint8

// Kinds.
const (
	Text  Kind = iota
	Count      // whole numbers, up to 2^63 − 1
	Ratio      // 64-bit floats
	USD        // exact, Decimal(38, 12)
	Time       // milliseconds since 1970, UTC
	Bool
)

// Column is one of a table. Columns of every kind but Text and Bool can hold null.
type Column struct {
	Name string
	Kind Kind
}

// Cell is a value; the field that its column's kind names holds it. The zero Cell
// is null, in a Text or Bool column the empty text or false.
type Cell struct {
	Set   bool
	Text  string
	Count int64
	Ratio float64
	USD   retrylens.Money
	Time  time.Time
	Bool  bool
}

// Table is rows under columns. Rows may be read once; each row has a cell for
// every column and is the receiver's until the next one. An error ends them.
type Table struct {
	Columns []Column
	Rows    iter.Seq2[[]Cell, error]
	// Notes go into a Parquet file's key-value metadata: the question, and how far
	// its answer can be trusted.
	Notes map[string]string
}

func text(s string) Cell         { return Cell{Set: true, Text: s} }
func count(n int64) Cell         { return Cell{Set: true, Count: n} }
func flag(b bool) Cell           { return Cell{Set: true, Bool: b} }
func instant(t time.Time) Cell   { return Cell{Set: !t.IsZero(), Time: t.UTC()} }
func usd(m retrylens.Money) Cell { return Cell{Set: true, USD: m} }
