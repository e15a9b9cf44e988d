package metrics

import (
	"strconv"

	"github.com/retrylens/retrylens"
)

// Unit is what a figure counts.
type Unit string

// Units.
const (
	UnitCount  Unit = "count"
	UnitTokens Unit = "tokens"
	UnitUSD    Unit = "usd" // exact, 12 decimals
	UnitRatio  Unit = "ratio"
	UnitMS     Unit = "ms"
)

// Value is the value of one figure. Which field holds it depends on the unit;
// not Set is null: a ratio with denominator 0, a quantile without samples.
type Value struct {
	Unit  Unit
	Set   bool
	Count int64 // of count, tokens, ms; never above 2^53 in practice
	Ratio float64
	Money retrylens.Money
}

// Float64 returns the nearest float, for thresholds; false when null.
func (v Value) Float64() (float64, bool) {
	switch v.Unit {
	case UnitRatio:
		return v.Ratio, v.Set
	case UnitUSD:
		return v.Money.Float64(), v.Set
	}
	return float64(v.Count), v.Set
}

// String writes the value as JSON does, money without quotes.
func (v Value) String() string {
	switch {
	case !v.Set:
		return "null"
	case v.Unit == UnitUSD:
		return v.Money.String()
	}
	return string(v.AppendJSON(nil))
}

// AppendJSON appends a number, money as a string of 12 decimals, or null.
func (v Value) AppendJSON(dst []byte) []byte {
	switch {
	case !v.Set:
		return append(dst, "null"...)
	case v.Unit == UnitUSD:
		return append(v.Money.Append(append(dst, '"')), '"')
	case v.Unit == UnitRatio:
		return strconv.AppendFloat(dst, v.Ratio, 'g', -1, 64)
	}
	return strconv.AppendInt(dst, v.Count, 10)
}
