package wire

import (
	"fmt"
	"math"
	"time"

	"github.com/retrylens/retrylens"
)

func text(name string, required bool, at func(*attempt) *string, repeats bool) field {
	return field{name: name, read: func(d *Decoder, a *attempt, v value) string {
		switch {
		case v.kind != '"':
			return v.wrongType("a string")
		case len(v.text) == 0 && required:
			return "must not be empty"
		case repeats:
			*at(a) = d.names.intern(v.text)
		default:
			*at(a) = string(v.text)
		}
		return ""
	}}
}

func enum[T ~string](name string, values []T, at func(*attempt) *T) field {
	return field{name: name, read: func(d *Decoder, a *attempt, v value) string {
		if v.kind != '"' {
			return v.wrongType("a string")
		}
		for _, known := range values {
			if string(known) == string(v.text) {
				*at(a) = known
				return ""
			}
		}
		return fmt.Sprintf("not one of its values: %.40q", v.text)
	}}
}

// orEmpty lets an enum be the empty text, which says the same as leaving it out.
func orEmpty(f field) field {
	read := f.read
	f.read = func(d *Decoder, a *attempt, v value) string {
		if v.kind == '"' && len(v.text) == 0 {
			return ""
		}
		return read(d, a, v)
	}
	return f
}

func boolean(name string, set func(*attempt, bool)) field {
	return field{name: name, read: func(_ *Decoder, a *attempt, v value) string {
		if v.kind != 't' && v.kind != 'f' {
			return v.wrongType("true or false")
		}
		set(a, v.kind == 't')
		return ""
	}}
}

func integer(name string, limit int64, set func(*attempt, int64)) field {
	return field{name: name, read: func(_ *Decoder, a *attempt, v value) string {
		n, reason := parseInt(v)
		if reason != "" {
			return reason
		}
		if n < 0 || n > limit {
			return fmt.Sprintf("must be within 0..%d, got %.40s", limit, v.text)
		}
		set(a, n)
		return ""
	}}
}

func count(name string, limit int64, at func(*attempt) *retrylens.Opt[int64]) field {
	return integer(name, limit, func(a *attempt, n int64) { *at(a) = retrylens.Some(n) })
}

// status leaves the gap between 0 and 100 to Validate.
func status(name string) field {
	return field{name: name, read: func(_ *Decoder, a *attempt, v value) string {
		n, reason := parseInt(v)
		if reason != "" {
			return reason
		}
		if n < 0 || n > math.MaxUint16 {
			return fmt.Sprintf("must be 0 or within 100..599, got %.40s", v.text)
		}
		a.Status = retrylens.Some(uint16(n))
		return ""
	}}
}

// parseInt reads an integer written without fraction or exponent; one beyond 64
// bits comes back as the nearest int64, which is out of every field's range.
func parseInt(v value) (int64, string) {
	if v.kind != '0' {
		return 0, v.wrongType("an integer")
	}
	digits, negative := v.text, v.text[0] == '-'
	if negative {
		digits = digits[1:]
	}
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, fmt.Sprintf("must be an integer without fraction or exponent, got %.40s", v.text)
		}
		if n > (math.MaxInt64-9)/10 {
			return math.MaxInt64, ""
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, ""
}

func instant(name string, at func(*attempt) *time.Time) field {
	return field{name: name, read: func(d *Decoder, a *attempt, v value) string {
		if v.kind != '"' {
			return v.wrongType("a string")
		}
		t, ok := parseTime(v.text)
		if !ok {
			return fmt.Sprintf("not an RFC 3339 time: %.40q", v.text)
		}
		if t.IsZero() { // else it would pass for a missing one
			return "before 2020-01-01"
		}
		*at(a) = t
		return ""
	}}
}

// money reads a decimal from a string or a number.
func money(name string, at func(*attempt) *retrylens.Opt[retrylens.Money]) field {
	return field{name: name, read: func(_ *Decoder, a *attempt, v value) string {
		if v.kind != '"' && v.kind != '0' {
			return v.wrongType("a decimal string or number")
		}
		m, err := retrylens.ParseMoney(v.text)
		if err != nil {
			return err.Error()
		}
		*at(a) = retrylens.Some(m)
		return ""
	}}
}

func (v value) wrongType(want string) string {
	return "wrong type: want " + want + ", got " + v.kindName()
}

func (v value) kindName() string {
	switch v.kind {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	}
	return "true or false"
}
