package format_test

import (
	"testing"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/format"
)

func TestUSD(t *testing.T) {
	for in, want := range map[string]string{
		"0":               "0.00",
		"0.000000000001":  "<0.000001",
		"0.000001":        "0.000001",
		"0.0081":          "0.008100",
		"0.0099999":       "0.010000",
		"0.01":            "0.01",
		"0.125":           "0.12", // half to even
		"0.135":           "0.14",
		"1":               "1.00",
		"1234.5":          "1,234.50",
		"99999999999999":  "99,999,999,999,999.00",
		"1234567.8999999": "1,234,567.90",
	} {
		m, err := retrylens.ParseMoney(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := format.USD(m); got != want {
			t.Errorf("USD(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestTokens(t *testing.T) {
	for in, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1.0k", 12_345: "12.3k", 999_949: "999.9k", 999_950: "1.0M",
		12_300_000: "12.3M", 999_999_999: "1.0B", 5_000_000_000_000: "5.0T", 5_000_000_000_000_000: "5000.0T",
	} {
		if got := format.Tokens(in); got != want {
			t.Errorf("Tokens(%d) = %s, want %s", in, got, want)
		}
	}
}

func TestMS(t *testing.T) {
	for in, want := range map[int64]string{
		0: "0 ms", 999: "999 ms", 1000: "1.00 s", 9_994: "9.99 s", 9_995: "10.0 s", 35_000: "35.0 s",
		59_949: "59.9 s", 59_950: "1m00s", 123_000: "2m03s", 3_599_499: "59m59s", 3_599_500: "1h00m", 7_380_000: "2h03m", -250: "-250 ms",
	} {
		if got := format.MS(in); got != want {
			t.Errorf("MS(%d) = %s, want %s", in, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for in, want := range map[float64]string{0: "0.00 %", 0.00001: "<0.01 %", 0.0231: "2.31 %", 1: "100.00 %"} {
		if got := format.Percent(in); got != want {
			t.Errorf("Percent(%v) = %s, want %s", in, got, want)
		}
	}
}

func TestGrouped(t *testing.T) {
	for in, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234", -123: "-123"} {
		if got := format.Grouped(in); got != want {
			t.Errorf("Grouped(%d) = %s, want %s", in, got, want)
		}
	}
}

func TestSafe(t *testing.T) {
	for in, want := range map[string]string{
		"plain – ünïcode 漢字": "plain – ünïcode 漢字",
		"\x1b[31mred":        `\x1b[31mred`,
		"a\u202eb":           `a\u202eb`,
		"\u200b":             `\u200b`,
		"line\nend\x00\x7f":  `line\nend\x00\x7f`,
		"\x9b31m":            `\x9b31m`, // no UTF-8
		"\u009b":             `\u009b`,
		"\ufffd":             "\ufffd",
	} {
		if got := format.Safe(in); got != want {
			t.Errorf("Safe(%q) = %s, want %s", in, got, want)
		}
	}
}
