package retrylens

import (
	"errors"
	"math/big"
	"math/bits"
)

// Money is a non-negative amount of US dollars in whole pico-dollars
// (Decimal(38,12)): a price per million tokens times tokens is an exact number
// of them. The zero value is 0 USD. It is never a float.
type Money struct{ hi, lo uint64 }

// moneyScale is the number of decimals of Money.
const moneyScale = 12

// maxMoney is the most that one record may cost: 10^14 USD less one
// pico-dollar, so that a sum over 10^12 records stays inside Decimal(38,12).
var maxMoney = mustPico("99999999999999999999999999")

// Errors of ParseMoney.
var (
	ErrMoneySyntax    = errors.New("not a decimal number")
	ErrMoneyNegative  = errors.New("must not be negative")
	ErrMoneyPrecision = errors.New("more than 12 decimals")
	ErrMoneyRange     = errors.New("must be below 10^14 USD")
)

func mustPico(s string) Money {
	m, ok := MoneyFromPico(mustBig(s))
	if !ok {
		panic("retrylens: bad constant " + s)
	}
	return m
}

func mustBig(s string) *big.Int {
	v, ok := new(big.Int).SetString(s, 10)
	if !ok {
		panic("retrylens: bad constant " + s)
	}
	return v
}

// MoneyFromPico converts a number of pico-dollars; false when it is negative or
// does not fit 128 bits.
func MoneyFromPico(v *big.Int) (Money, bool) {
	if v.Sign() < 0 || v.BitLen() > 128 {
		return Money{}, false
	}
	var b [16]byte
	v.FillBytes(b[:])
	return Money{hi: be64(b[:8]), lo: be64(b[8:])}, true
}

// PicoUSD returns n pico-dollars.
func PicoUSD(n uint64) Money { return Money{lo: n} }

func be64(b []byte) uint64 {
	var v uint64
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}

// Pico returns the amount in pico-dollars.
func (m Money) Pico() *big.Int {
	v := new(big.Int).SetUint64(m.hi)
	return v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(m.lo))
}

// Words returns the amount in pico-dollars as a 128-bit unsigned integer.
func (m Money) Words() (hi, lo uint64) { return m.hi, m.lo }

// Add returns m + n. It wraps at 2^128 pico-dollars, which no sum of valid
// records reaches.
func (m Money) Add(n Money) Money {
	lo, c := bits.Add64(m.lo, n.lo, 0)
	hi, _ := bits.Add64(m.hi, n.hi, c)
	return Money{hi, lo}
}

// Sub returns m − n, 0 where n is larger: there are no negative amounts.
func (m Money) Sub(n Money) Money {
	if m.Cmp(n) <= 0 {
		return Money{}
	}
	lo, borrow := bits.Sub64(m.lo, n.lo, 0)
	hi, _ := bits.Sub64(m.hi, n.hi, borrow)
	return Money{hi, lo}
}

// Cmp returns -1, 0 or +1 as m is less than, equal to or greater than n.
func (m Money) Cmp(n Money) int {
	switch {
	case m == n:
		return 0
	case m.hi < n.hi || m.hi == n.hi && m.lo < n.lo:
		return -1
	}
	return 1
}

// IsZero tells whether the amount is 0.
func (m Money) IsZero() bool { return m == Money{} }

// Div returns m / n rounded half to even to a pico-dollar. n must not be 0.
func (m Money) Div(n uint64) Money {
	qhi := m.hi / n
	qlo, r := bits.Div64(m.hi%n, m.lo, n)
	q := Money{qhi, qlo}
	// Compare r with n - r rather than 2r with n: no overflow.
	if r > n-r || r == n-r && q.lo&1 == 1 {
		q = q.Add(Money{lo: 1})
	}
	return q
}

// MulDiv returns m * num / den rounded half to even; den must not be 0. It is
// meant for prices ("per million tokens").
func (m Money) MulDiv(num, den uint64) Money {
	p := new(big.Int).Mul(m.Pico(), new(big.Int).SetUint64(num))
	d := new(big.Int).SetUint64(den)
	q, r := new(big.Int).QuoRem(p, d, new(big.Int))
	if c := r.Lsh(r, 1).Cmp(d); c > 0 || c == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(1))
	}
	out, _ := MoneyFromPico(q)
	return out
}

// Float64 returns the nearest float: for ratios and charts, never for sums.
func (m Money) Float64() float64 {
	return (float64(m.hi)*(1<<64) + float64(m.lo)) / 1e12
}

// String writes the amount with all its 12 decimals: "0.001459012500".
func (m Money) String() string { return string(m.Append(nil)) }

// Append appends what [Money.String] returns.
func (m Money) Append(dst []byte) []byte {
	var digits [40]byte
	i := len(digits)
	for m.hi != 0 || m.lo != 0 || i > len(digits)-moneyScale-1 {
		var r uint64
		qhi := m.hi / 10
		m.lo, r = bits.Div64(m.hi%10, m.lo, 10)
		m.hi = qhi
		i--
		digits[i] = byte('0' + r)
	}
	dst = append(dst, digits[i:len(digits)-moneyScale]...)
	dst = append(dst, '.')
	return append(dst, digits[len(digits)-moneyScale:]...)
}

// MarshalJSON writes a decimal string.
func (m Money) MarshalJSON() ([]byte, error) {
	return append(m.Append([]byte{'"'}), '"'), nil
}

// UnmarshalJSON reads a decimal string or number.
func (m *Money) UnmarshalJSON(b []byte) error {
	if len(b) >= 2 && b[0] == '"' && b[len(b)-1] == '"' {
		b = b[1 : len(b)-1]
	}
	v, err := ParseMoney(b)
	if err == nil {
		*m = v
	}
	return err
}

// ParseMoney reads a decimal in JSON number syntax ("12", "0.00795", "1e-6"),
// exactly: what does not fit 12 decimals or reaches 10^14 USD is an error, one
// of the ErrMoney values.
func ParseMoney[S ~string | ~[]byte](s S) (Money, error) {
	d, err := scanDecimal(s)
	if err != nil {
		return Money{}, err
	}
	switch {
	case d.v.IsZero():
		return Money{}, nil
	case d.neg:
		return Money{}, ErrMoneyNegative
	case d.overflow:
		return Money{}, ErrMoneyRange
	case d.tooFine:
		return Money{}, ErrMoneyPrecision
	}
	return d.pico()
}

// decimal is a scanned number: v × 10^exp.
type decimal struct {
	v             Money
	exp           int
	neg, overflow bool
	tooFine       bool // digits of the fraction were lost
}

// pico scales the number to pico-dollars.
func (d decimal) pico() (Money, error) {
	for e := d.exp + moneyScale; e != 0; {
		if e > 0 {
			if d.v.hi >= 1<<59 {
				return Money{}, ErrMoneyRange
			}
			d.v = d.v.times10(0)
			e--
			continue
		}
		q, r := d.v.div10()
		if r != 0 {
			return Money{}, ErrMoneyPrecision
		}
		d.v = q
		e++
	}
	if d.v.Cmp(maxMoney) > 0 {
		return Money{}, ErrMoneyRange
	}
	return d.v, nil
}

func (m Money) times10(digit uint64) Money {
	hi, lo := bits.Mul64(m.lo, 10)
	return Money{m.hi*10 + hi, lo}.Add(Money{lo: digit})
}

func (m Money) div10() (Money, uint64) {
	qlo, r := bits.Div64(m.hi%10, m.lo, 10)
	return Money{m.hi / 10, qlo}, r
}

// scanDecimal reads JSON number syntax. More digits than 128 bits hold set
// overflow; trailing zeros of the fraction do not count.
func scanDecimal[S ~string | ~[]byte](s S) (decimal, error) {
	var d decimal
	i := 0
	if i < len(s) && s[i] == '-' {
		d.neg = true
		i++
	}
	intDigits := scanDigits(&d, s, &i, false)
	if intDigits == 0 || intDigits > 1 && s[i-intDigits] == '0' {
		return d, ErrMoneySyntax
	}
	if i < len(s) && s[i] == '.' {
		i++
		if scanDigits(&d, s, &i, true) == 0 {
			return d, ErrMoneySyntax
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if !scanExponent(&d, s, &i) {
			return d, ErrMoneySyntax
		}
	}
	if i != len(s) {
		return d, ErrMoneySyntax
	}
	return d, nil
}

// scanDigits reads a run of digits at *i into d and returns how many there
// were. A digit of the fraction moves the exponent; zeros at its end are held
// back, so that any number of them is exact.
func scanDigits[S ~string | ~[]byte](d *decimal, s S, i *int, fraction bool) int {
	n, zeros := 0, 0
	for ; *i < len(s) && s[*i] >= '0' && s[*i] <= '9'; *i++ {
		n++
		if fraction && s[*i] == '0' {
			zeros++
			continue
		}
		for ; zeros > 0; zeros-- {
			d.push(0, true)
		}
		d.push(uint64(s[*i]-'0'), fraction)
	}
	return n
}

func (d *decimal) push(digit uint64, fraction bool) {
	if d.v.hi >= 1<<59 { // the next digit might not fit 128 bits
		d.tooFine = d.tooFine || fraction
		d.overflow = d.overflow || !fraction
		return
	}
	d.v = d.v.times10(digit)
	if fraction {
		d.exp--
	}
}

// scanExponent reads the exponent at *i into d; one beyond ±9999 cannot give an
// amount in range and is cut there.
func scanExponent[S ~string | ~[]byte](d *decimal, s S, i *int) bool {
	neg := false
	if *i < len(s) && (s[*i] == '+' || s[*i] == '-') {
		neg = s[*i] == '-'
		*i++
	}
	e, n := 0, 0
	for ; *i < len(s) && s[*i] >= '0' && s[*i] <= '9'; *i++ {
		e = min(e*10+int(s[*i]-'0'), 9999)
		n++
	}
	if neg {
		e = -e
	}
	d.exp += e
	return n > 0
}
