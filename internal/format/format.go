package format

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

// Null stands for a figure that has no value: a ratio of nothing, a quantile
// without samples.
const Null = "–"

// Grouped writes an integer with commas: 1,234,567.
func Grouped[T int | int64 | uint64](n T) string { return grouped(fmt.Sprint(n)) }

func grouped(digits string) string {
	sign := ""
	if rest, ok := strings.CutPrefix(digits, "-"); ok {
		sign, digits = "-", rest
	}
	var parts []string
	for len(digits) > 3 {
		parts = append([]string{digits[len(digits)-3:]}, parts...)
		digits = digits[:len(digits)-3]
	}
	return sign + strings.Join(append([]string{digits}, parts...), ",")
}

// Tokens writes a count short: 999, 12.3k, 12.3M, 1.2B.
func Tokens(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	f, unit := float64(n)/1000, "kMBT"
	for len(unit) > 1 && f >= 999.95 {
		f, unit = f/1000, unit[1:]
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + unit[:1]
}

// Amounts of USD are shown with two decimals, below a cent with six; both are
// rounded half-even.
var (
	cent  = retrylens.PicoUSD(10_000_000_000)
	micro = retrylens.PicoUSD(1_000_000)
)

// USD writes an amount for people; exact amounts are Money's own String.
func USD(m retrylens.Money) string {
	switch {
	case m.IsZero():
		return "0.00"
	case m.Cmp(micro) < 0:
		return "<0.000001"
	case m.Cmp(cent) < 0:
		return "0." + fmt.Sprintf("%06s", m.Div(1_000_000).Pico())
	}
	cents := fmt.Sprintf("%03s", m.Div(10_000_000_000).Pico())
	return grouped(cents[:len(cents)-2]) + "." + cents[len(cents)-2:]
}

// Times writes a ratio that multiplies: ×1.34.
func Times(f float64) string { return "×" + strconv.FormatFloat(f, 'f', 2, 64) }

// Percent writes a share: 2.31 %.
func Percent(f float64) string {
	if f > 0 && f < 0.00005 {
		return "<0.01 %"
	}
	return strconv.FormatFloat(f*100, 'f', 2, 64) + " %"
}

// MS writes milliseconds: 700 ms, 35.0 s, 2m03s, 1h02m.
func MS(ms int64) string {
	abs := max(ms, -ms)
	d := time.Duration(abs) * time.Millisecond
	sign := ""
	if ms < 0 {
		sign = "-"
	}
	switch {
	case abs < 1000:
		return fmt.Sprintf("%s%d ms", sign, abs)
	case abs < 9_995:
		return fmt.Sprintf("%s%.2f s", sign, d.Seconds())
	case abs < 59_950:
		return fmt.Sprintf("%s%.1f s", sign, d.Seconds())
	case abs < 3_599_500:
		s := int64(math.Round(d.Seconds()))
		return fmt.Sprintf("%s%dm%02ds", sign, s/60, s%60)
	}
	minutes := int64(math.Round(d.Minutes()))
	return fmt.Sprintf("%s%dh%02dm", sign, minutes/60, minutes%60)
}

// Instant writes a time; a zero one is unbounded.
func Instant(t time.Time, unbounded string) string {
	if t.IsZero() {
		return unbounded
	}
	return t.UTC().Format("2006-01-02T15:04:05.999Z07:00")
}

// factors are the ratios that multiply; the other ones are shares.
var factors = map[string]bool{"retry_ratio": true, "amplification": true, "layer_factor": true}

// Short writes a value of a figure for people.
func Short(f metrics.Formula, v metrics.Value) string {
	switch {
	case !v.Set:
		return Null
	case f.Unit == metrics.UnitUSD:
		return USD(v.Money)
	case f.Unit == metrics.UnitTokens:
		return Tokens(v.Count)
	case f.Unit == metrics.UnitMS:
		return MS(v.Count)
	case f.Unit == metrics.UnitRatio && factors[f.Name]:
		return Times(v.Ratio)
	case f.Unit == metrics.UnitRatio:
		return Percent(v.Ratio)
	}
	return Grouped(v.Count)
}

// Figure is the short form of a row's figure; name as in [metrics.Figure].
func Figure(name string, row *metrics.Row) string {
	base, _, _ := strings.Cut(name, "{")
	f, known := metrics.LookupFormula(base)
	v, ok := metrics.Figure(name, *row)
	if !known || !ok {
		return Null
	}
	return Short(f, v)
}

// Safe makes foreign text harmless on a terminal: control, format and
// bidirectional characters are written as escapes.
func Safe(s string) string {
	if strings.IndexFunc(s, unsafe) < 0 && !strings.ContainsRune(s, unicode.ReplacementChar) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == unicode.ReplacementChar && s[i] != "\ufffd"[0]:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unsafe(r):
			b.WriteString(strings.Trim(strconv.QuoteToASCII(string(r)), `"`))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unsafe(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
}

// Bytes writes a size for people: 12.3 GiB.
func Bytes(n uint64) string {
	f, unit := float64(n), 0
	for units := []string{"B", "KiB", "MiB", "GiB", "TiB"}; ; unit++ {
		if f < 1024 || unit == len(units)-1 {
			if unit == 0 {
				return strconv.FormatUint(n, 10) + " B"
			}
			return strconv.FormatFloat(f, 'f', 1, 64) + " " + units[unit]
		}
		f /= 1024
	}
}
