package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/retrylens/retrylens/internal/metrics"
)

// group is a row with so many of each a thousand operations.
func group(failed, retried, retriesFailed uint64, p50, p99 int64) *metrics.Row {
	r := &metrics.Row{Key: metrics.Key{Dims: []string{"p", "m"}}}
	r.Operations, r.Succeeded, r.Failed = 1000, 1000-failed, failed
	r.Retries, r.RetrySuccesses = retried, retried-retriesFailed
	r.Attempts, r.UpstreamCalls = 1000+retried, 1000+retried
	r.FailedAttempts = retried + failed
	s := &metrics.Samples{}
	for i := range int64(100) {
		v := p50
		if i >= 98 {
			v = p99
		}
		s.Latency.Add(v)
	}
	r.Samples, r.Latency = s, s.Latency.Quantiles()
	return r
}

// TestJudge tells the states apart on figures before, at and after their edges.
func TestJudge(t *testing.T) {
	usual := group(1, 5, 0, 1000, 5000)
	few := group(0, 0, 0, 1000, 5000)
	few.Operations = fewest - 1
	for name, c := range map[string]struct {
		row   *metrics.Row
		usual *metrics.Row
		want  string
	}{
		"as ever":                               {group(1, 5, 0, 1000, 5000), usual, stateHealthy},
		"too few":                               {few, usual, stateUnknown},
		"retries help":                          {group(1, 60, 2, 1000, 5000), usual, stateFlaky},
		"masked":                                {group(1, 300, 60, 2000, 9000), usual, stateMasked},
		"masked, retries still succeed":         {group(1, 300, 0, 2000, 9000), usual, stateMasked},
		"amplified, but as fast and successful": {group(1, 300, 0, 1000, 5000), usual, stateFlaky},
		"slow, without a retry":                 {group(1, 5, 0, 3000, 15000), usual, stateHealthy},
		"error ratio at the edge":               {group(21, 25, 0, 1000, 5000), usual, stateFlaky},
		"error ratio over the edge":             {group(22, 300, 60, 2000, 9000), usual, stateOutage},
		"masked as ever":                        {group(1, 300, 60, 2000, 9000), group(1, 300, 60, 2000, 9000), stateHealthy},
		"no baseline, nothing but amplified":    {group(1, 300, 20, 2000, 9000), nil, stateFlaky},
	} {
		if got := judge(c.row, c.usual); got.State != c.want {
			t.Errorf("%s: %s %v, want %s", name, got.State, got.Votes, c.want)
		}
	}
}

// TestSince finds where the trouble that lasts began, quiet buckets between aside.
func TestSince(t *testing.T) {
	at := func(i int) time.Time { return time.Unix(int64(i)*60, 0).UTC() }
	b := band{Low: 1, High: 1.02, Middle: 1.01, Set: true}
	for pattern, want := range map[string]int{"....####": 4, ".##...##": 6, ".##..###": 1, "........": -1, "####....": -1, "...#.#.#": 3, "##.##.#.": 0} {
		var rows []metrics.Row
		for i, c := range pattern {
			r := metrics.Row{Key: metrics.Key{Bucket: at(i)}}
			r.Operations, r.UpstreamCalls = 100, 101
			if c == '#' {
				r.UpstreamCalls = 150
			}
			rows = append(rows, r)
		}
		got := since(rows, b, band{})
		if want < 0 && !got.IsZero() || want >= 0 && !got.Equal(at(want)) {
			t.Errorf("%s: since %v, want bucket %d", pattern, got, want)
		}
	}
}

// TestTextsToTakeAlong are one word of their language each, whatever the id holds: bash
// prints what it reads back.
func TestTextsToTakeAlong(t *testing.T) {
	for _, id := range []string{"plain", "it's", "$(rm -rf /)", "`x`", "a\\'b", "\u202eevil\x01", "ü", "\n", "'; DROP TABLE attempts; --"} {
		out, err := exec.CommandContext(t.Context(), "bash", "-c", "printf %s "+shellText(id)).Output()
		if err != nil || string(out) != id {
			t.Errorf("shell: %q became %q, %v", id, out, err)
		}
		if s := sqlText(id); strings.Trim(s[1:len(s)-1], "\x20\x21\x22\x23\x24\x25\x26\x28\x29\x2a\x2b\x2c\x2d\x2e\x2f0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~\\") != "" {
			t.Errorf("SQL: %q is %s", id, s)
		}
	}
}

// TestPathID: an id with slashes, dots and percent signs is found by its page.
func TestPathID(t *testing.T) {
	for _, id := range []string{"a/b", "../x", "a%2fb", "?#&", "ü\u202e", "a b+c"} {
		r := chi.NewRouter()
		got := ""
		r.Get("/op/{id}", func(_ http.ResponseWriter, req *http.Request) { got = pathID(req) })
		r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, (&state{}).op(id), nil))
		if got != id {
			t.Errorf("%q became %q", id, got)
		}
	}
}

// FuzzState reads any URL without a panic; what it links to reads back as the same question.
func FuzzState(f *testing.F) {
	for _, seed := range []string{"", "from=now-1h&to=now", "from=2026-01-01&provider=a&provider=b&var-model=x", "tz=Europe/Berlin&refresh=1s", "group=provider,model&sort=-amplification", "from=%ff&tz=../../etc/passwd", "as_of=1&from=9e9"} {
		f.Add(seed)
	}
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, raw string) {
		values, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		s, err := readState(&http.Request{URL: &url.URL{Path: "/errors", RawQuery: values.Encode()}}, now, "now-1h")
		if err != nil {
			if len(paramErrors(err)) == 0 {
				t.Fatalf("%q: %v names no parameter", raw, err)
			}
			return
		}
		link, err := url.Parse(s.frozen())
		if err != nil {
			t.Fatal(err)
		}
		again, err := readState(&http.Request{URL: link}, now.Add(time.Hour), "now-1h")
		if err != nil {
			t.Fatalf("%q: the permalink %s: %v", raw, link, err)
		}
		if a, b := fmt.Sprint(s.query), fmt.Sprint(again.query); a != b {
			t.Fatalf("%q: %s became %s", raw, a, b)
		}
	})
}

// TestGrafanasLinksAreRead: its names of variables, and its word for all of them.
func TestGrafanasLinksAreRead(t *testing.T) {
	raw := "var-provider=openai&var-provider=a%20b&var-tenant=%24__all&var-model=All&from=1764288000000&to=1764291600000&var-datasource=x"
	s, err := readState(&http.Request{URL: &url.URL{Path: "/", RawQuery: raw}}, time.Now(), "now-1h")
	if err != nil {
		t.Fatal(err)
	}
	if f := s.query.Filters; len(f) != 1 || fmt.Sprintf("%q", f[metrics.DimProvider]) != `["openai" "a b"]` || s.query.From.UnixMilli() != 1764288000000 {
		t.Errorf("%+v", s.query)
	}
}

// TestRefreshIsWithinWhatTimersCanDo of a browser, whatever is asked for.
func TestRefreshIsWithinWhatTimersCanDo(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "1ms": minRefresh, "30s": 30 * time.Second, "24h": maxRefresh, "30d": maxRefresh, "100000w": 0} {
		s, err := readState(&http.Request{URL: &url.URL{Path: "/", RawQuery: "refresh=" + text}}, time.Now(), "now-1h")
		if s.refresh != want || (err != nil) != (text == "100000w") {
			t.Errorf("%s: %s, %v", text, s.refresh, err)
		}
	}
}

// TestACurveBreaksWhereNothingStarted: every bucket of the window has a row, in order, and
// the sums stay.
func TestACurveBreaksWhereNothingStarted(t *testing.T) {
	from := time.Date(2026, 11, 28, 12, 0, 20, 0, time.UTC) // within a bucket
	for _, at := range [][]int{{}, {0}, {5}, {0, 5}, {2, 3, 9}, {10}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}} {
		r := &metrics.Report{From: from, To: from.Add(10 * time.Minute), Bucket: time.Minute}
		for _, minute := range at {
			row := metrics.Row{Key: metrics.Key{Bucket: from.Truncate(time.Minute).Add(time.Duration(minute) * time.Minute)}}
			row.Operations = uint64(minute + 1)
			r.Rows = append(r.Rows, row)
		}
		all := everyBucket(r)
		if want := min(len(at), 1) * 11; len(all.Rows) != want {
			t.Fatalf("%v: %d rows, want %d", at, len(all.Rows), want)
		}
		for i := range all.Rows {
			want := uint64(0)
			if slices.Contains(at, i) {
				want = uint64(i + 1)
			}
			if row := all.Rows[i]; !row.Bucket.Equal(from.Truncate(time.Minute).Add(time.Duration(i)*time.Minute)) || row.Operations != want {
				t.Errorf("%v: row %d is %s with %d operations, want %d", at, i, row.Bucket, row.Operations, want)
			}
		}
	}
}
