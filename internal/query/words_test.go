package query_test

import (
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/query"
)

var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func TestParseTime(t *testing.T) {
	for in, want := range map[string]string{
		"2026-11-28T00:30:00Z":         "2026-11-28T00:30:00Z",
		"2026-11-28T01:30:00.25+02:00": "2026-11-27T23:30:00.25Z",
		"2026-11-28":                   "2026-11-28T00:00:00Z",
		"1764288000":                   "2025-11-28T00:00:00Z",
		"1764288000250":                "2025-11-28T00:00:00.25Z",
		"0":                            "1970-01-01T00:00:00Z",
		"now":                          "2026-11-28T12:00:00Z",
		"now-1h":                       "2026-11-28T11:00:00Z",
		"now+90s":                      "2026-11-28T12:01:30Z",
		"now-7d":                       "2026-11-21T12:00:00Z",
		"now-1.5d":                     "2026-11-27T00:00:00Z",
		"now-2w":                       "2026-11-14T12:00:00Z",
		"99999999999":                  "5138-11-16T09:46:39Z", // still seconds
		"100000000000":                 "1973-03-03T09:46:40Z", // milliseconds
	} {
		got, err := query.ParseTime(in, now)
		if err != nil || got.Format(time.RFC3339Nano) != want {
			t.Errorf("ParseTime(%s) = %v, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "yesterday", "now-", "now1h", "now--1h", "now-1", "now-0s", "now*2h", "-5", "2026-13-01", "2026-11-28 00:00", "1e9",
		"100000000000000", "99999999999999999999", "now-99999999999d", "NaN", "now-NaNd", "now-Infd",
	} {
		if got, err := query.ParseTime(in, now); err == nil {
			t.Errorf("ParseTime(%q) = %v, want an error", in, got)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "5m": 5 * time.Minute, "1h30m": 90 * time.Minute, "1d": 24 * time.Hour, "0.5w": 84 * time.Hour, "250ms": 250 * time.Millisecond,
	} {
		if got, err := query.ParseDuration(in); err != nil || got != want {
			t.Errorf("ParseDuration(%s) = %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "0", "0s", "-5m", "5", "d", "-1d", "1e99d", "5 m", "NaNw"} {
		if got, err := query.ParseDuration(in); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", in, got)
		}
	}
}

func FuzzParseTime(f *testing.F) {
	for _, s := range []string{"now-1h", "2026-11-28", "1764288000", "now-1e3d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, err := query.ParseTime(s, now); err == nil && got.Location() != time.UTC {
			t.Errorf("%q is not UTC", s)
		}
	})
}
