package retrylens

import "testing"

// TestMoneySub borrows over 64 bits and ends at 0.
func TestMoneySub(t *testing.T) {
	large := Money{hi: 1} // 2^64 pico-dollars
	for _, c := range []struct{ m, n, want Money }{
		{large, PicoUSD(1), PicoUSD(1<<64 - 1)},
		{PicoUSD(5), PicoUSD(3), PicoUSD(2)},
		{PicoUSD(3), PicoUSD(5), Money{}},
		{large, large, Money{}},
		{PicoUSD(9), large, Money{}},
		{Money{hi: 3, lo: 1}, Money{hi: 1, lo: 2}, Money{hi: 1, lo: 1<<64 - 1}},
	} {
		if got := c.m.Sub(c.n); got != c.want {
			t.Errorf("%v - %v = %v, want %v", c.m, c.n, got, c.want)
		}
	}
}
