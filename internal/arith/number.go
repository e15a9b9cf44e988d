package arith

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/retrylens/retrylens"
)

// NumberError is a number that cannot be reckoned with. Name is that of the option
// as a command line writes it: "failure-rate".
type NumberError struct {
	Name string
	Must string // what it must be, and what it is
}

func (e *NumberError) Error() string { return e.Name + " must be " + e.Must }

// within wants lo ≤ v ≤ hi; NaN is not.
func within[T cmp.Ordered](name string, v, lo, hi T) error {
	if v >= lo && v <= hi {
		return nil
	}
	return &NumberError{name, fmt.Sprintf("within %v..%v, got %v", lo, hi, v)}
}

// first returns the first error of some.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Share is an exact share of a whole in 10^-12: 5 % are 50,000,000,000.
type Share uint64

// Whole is the share of all.
const Whole Share = 1_000_000_000_000

var errShare = errors.New("must be a share within 0..1 or 0%..100%, with at most 12 decimals")

// ParseShare reads "0.05" or "5%".
func ParseShare(s string) (Share, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	m, err := retrylens.ParseMoney(strings.TrimSpace(number))
	if err != nil {
		return 0, errShare
	}
	hi, v := m.Words()
	if percent {
		if v%100 != 0 {
			return 0, errShare
		}
		v /= 100
	}
	if hi != 0 || v > uint64(Whole) {
		return 0, errShare
	}
	return Share(v), nil
}

// Of is the share of n, rounded down.
func (s Share) Of(n uint64) uint64 {
	whole := n / uint64(Whole) * uint64(s)
	rest := retrylens.PicoUSD(n % uint64(Whole)).Pico()
	rest.Mul(rest, retrylens.PicoUSD(uint64(s)).Pico())
	return whole + rest.Div(rest, retrylens.PicoUSD(uint64(Whole)).Pico()).Uint64()
}

// Percent writes it as "5%".
func (s Share) Percent() string {
	hundred := retrylens.PicoUSD(uint64(s) * 100).String()
	return strings.TrimSuffix(strings.TrimRight(hundred, "0"), ".") + "%"
}
