package ingest_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/ingest"
)

var now = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

func limits() retrylens.Limits { return retrylens.Limits{Now: now} }

// memorySink keeps what it is given.
type memorySink struct {
	got     []retrylens.Attempt
	batches []int
	before  func() error // may fail or block a Write
}

func (s *memorySink) Write(ctx context.Context, batch []retrylens.Attempt) error {
	if s.before != nil {
		if err := s.before(); err != nil {
			return err
		}
	}
	s.got = append(s.got, batch...)
	s.batches = append(s.batches, len(batch))
	return ctx.Err()
}

func (s *memorySink) ids() string {
	var ids []string
	for _, a := range s.got {
		ids = append(ids, a.LogicalID)
	}
	return strings.Join(ids, " ")
}

func good(id string) string {
	return `{"tenant":"acme","logical_id":"` + id + `","attempt":0,"provider":"openai","started_at":"2026-11-28T02:59:10Z","outcome":"success"}`
}

func with(id, members string) string { return strings.TrimSuffix(good(id), "}") + "," + members + "}" }

func lines(l ...string) string { return strings.Join(l, "\n") + "\n" }

type result struct {
	sink    memorySink
	sum     ingest.Summary
	rejects []ingest.Reject
}

func run(t *testing.T, text string) *result {
	t.Helper()
	r := &result{}
	im, err := ingest.New(ingest.Options{Sink: &r.sink, Limits: limits, DefaultTenant: "default", OnReject: func(j ingest.Reject) { r.rejects = append(r.rejects, j) }})
	if err != nil {
		t.Fatal(err)
	}
	if r.sum, err = im.Run(t.Context(), ingest.ReaderSource("test", strings.NewReader(text))); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestBadLinesAreNamedAndNothingElseIsLost(t *testing.T) {
	deep := strings.Repeat("[", 20_000)
	for name, c := range map[string]struct{ line, field, reason string }{
		"wrong type":          {with("x", `"prompt_tokens":"12"`), "prompt_tokens", "wrong type: want an integer, got a string"},
		"NaN cost":            {with("x", `"cost_usd":NaN`), "cost_usd", "invalid JSON: not a value"},
		"NaN cost as text":    {with("x", `"cost_usd":"NaN"`), "cost_usd", "not a decimal number"},
		"negative tokens":     {with("x", `"completion_tokens":-5`), "completion_tokens", "must be within 0..1000000000000, got -5"},
		"unknown key":         {with("x", `"promt_tokens":1`), "promt_tokens", "unknown key"},
		"future time":         {strings.Replace(good("x"), "2026-11-28T02:59", "2026-12-28T02:59", 1), "started_at", "more than 10 minutes in the future"},
		"invalid UTF-8":       {with("x", `"model":"`+"\xff"+`"`), "model", "invalid JSON: not UTF-8"},
		"deep nesting":        {with("x", `"attributes":{"a":`+deep), "attributes", "wrong type: want texts, got an array"},
		"10 MB line":          {with("x", `"reason":"`+strings.Repeat("y", 10<<20)+`"`), "", "longer than 65536 bytes"},
		"NUL bytes":           {"\x00\x00\x00", "", "not a JSON object"},
		"lone surrogate":      {with("x", `"model":"\ud83d"`), "model", "invalid JSON: lone surrogate in a string"},
		"cut line":            {good("x")[:32], "logical_id", "invalid JSON: unexpected end of the line"},
		"two objects":         {good("x") + good("y"), "", "more data after the object"},
		"logical_id missing":  {`{"attempt":0,"provider":"openai","started_at":"2026-11-28T02:59:10Z","outcome":"success"}`, "logical_id", "missing"},
		"second line a list":  {"[" + good("x") + "]", "", "not a JSON object: got an array"},
		"broken rule":         {with("x", `"cause":"policy"`), "cause", "must be first exactly when attempt is 0, got policy with attempt 0"},
		"line of exact limit": {with("x", `"reason":"`+strings.Repeat("y", 64<<10-len(with("x", `"reason":""`)))+`"`), "reason", "longer than 256 bytes: 65402"},
		"line one beyond":     {with("x", `"reason":"`+strings.Repeat("y", 64<<10-len(with("x", `"reason":""`))+1)+`"`), "", "longer than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, lines(good("a"), c.line, good("b"), good("c")))
			if got := r.sink.ids(); got != "a b c" {
				t.Errorf("stored %q", got)
			}
			if len(r.rejects) != 1 {
				t.Fatalf("rejects: %+v", r.rejects)
			}
			j := r.rejects[0]
			if j.Source != "test" || j.Line != 2 || j.Field != c.field || j.Reason != c.reason {
				t.Errorf("got %s:%d %q: %q, want test:2 %q: %q", j.Source, j.Line, j.Field, j.Reason, c.field, c.reason)
			}
			if want := c.line[:min(len(c.line), 64<<10)]; string(j.Raw) != want {
				t.Errorf("raw: %d bytes, want the %d first ones of the line", len(j.Raw), len(want))
			}
		})
	}
}

func TestLineEndsAndBlankLines(t *testing.T) {
	for name, text := range map[string]string{
		"LF":               lines(good("a"), good("b")),
		"CRLF":             good("a") + "\r\n" + good("b") + "\r\n",
		"no final newline": good("a") + "\n" + good("b"),
		"BOM":              "\ufeff" + lines(good("a"), good("b")),
		"blank lines":      "\n\n" + good("a") + "\n \t\r\n" + good("b") + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, text)
			if got := r.sink.ids(); got != "a b" || len(r.rejects) != 0 {
				t.Errorf("stored %q, rejects %+v", got, r.rejects)
			}
		})
	}
	r := run(t, "\r\n"+good("a")+"\r\n\r\nx\r\n")
	if len(r.rejects) != 1 || r.rejects[0].Line != 4 || string(r.rejects[0].Raw) != "x" {
		t.Errorf("blank lines are not counted: %+v", r.rejects)
	}
}

func TestEmptyFileIsNoError(t *testing.T) {
	for _, text := range []string{"", "\ufeff", "\n", gzipped(t, "")} {
		if r := run(t, text); r.sum.Accepted != 0 || r.sum.Rejected != 0 || r.sink.batches != nil {
			t.Errorf("%q: %+v", text, r.sum)
		}
	}
}

func TestJSONThatIsNotNDJSONIsSaid(t *testing.T) {
	for text, want := range map[string]string{
		"[" + good("a") + "," + good("b") + "]":                     "the file is a JSON array, not one object a line: convert it with jq -c '.[]'",
		"\n[\n" + good("a") + "\n]":                                 "the file is a JSON array, not one object a line: convert it with jq -c '.[]'",
		"[" + strings.Repeat(good("a")+",", 1000) + "{}]":           "the file is a JSON array, not one object a line: convert it with jq -c '.[]'",
		"{\n  \"logical_id\": \"a\",\n  \"attempt\": 0\n}\n":        "the file is pretty-printed JSON, not one object a line: convert it with jq -c .",
		"{ \r\n  \"logical_id\": \"a\",\r\n  \"attempt\": 0\r\n}\n": "the file is pretty-printed JSON, not one object a line: convert it with jq -c .",
	} {
		if r := run(t, text); len(r.rejects) == 0 || r.rejects[0].Reason != want {
			t.Errorf("%.40q: %.1000v", text, r.rejects)
		}
	}
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zstandard(t *testing.T, text string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(w.EncodeAll([]byte(text), nil))
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(good(fmt.Sprintf("op-%06d", i)))
		b.WriteByte('\n')
	}
	return b.String()
}

func TestCompressionIsToldByTheFirstBytes(t *testing.T) {
	text := many(3000)
	for name, packed := range map[string]string{
		"plain": text, "gzip": gzipped(t, text), "two gzip members": gzipped(t, text[:len(text)/2]) + gzipped(t, text[len(text)/2:]), "zstd": zstandard(t, text),
	} {
		t.Run(name, func(t *testing.T) {
			if r := run(t, packed); r.sum.Accepted != 3000 || r.sum.Rejected != 0 {
				t.Errorf("%+v", r.sum)
			}
		})
	}
}

func TestTruncatedGzipLosesNothingBeforeTheCut(t *testing.T) {
	text := many(3000)
	packed := gzipped(t, text)
	for _, cut := range []int{3, 9, len(packed) / 2, len(packed) - 9, len(packed) - 4} {
		r := run(t, packed[:cut])
		if r.sum.Rejected != 1 || r.sum.RejectedByReason["truncated"] != 1 {
			t.Fatalf("cut at %d: %+v", cut, r.sum)
		}
		if j := r.rejects[0]; j.Line != int(r.sum.Accepted)+1 {
			t.Errorf("cut at %d: line %d rejected after %d good ones", cut, j.Line, r.sum.Accepted)
		}
		// What compress/gzip gets out of the same bytes is the measure.
		var want int
		if z, err := gzip.NewReader(strings.NewReader(packed[:cut])); err == nil {
			plain, _ := io.ReadAll(z)
			want = bytes.Count(plain, []byte("}"))
		}
		if int(r.sum.Accepted) != want {
			t.Errorf("cut at %d: %d accepted, want %d", cut, r.sum.Accepted, want)
		}
	}
}

func TestTruncatedAndCorruptInputIsRejected(t *testing.T) {
	text := many(3000)
	z, g := zstandard(t, text), []byte(gzipped(t, text))
	g[len(g)-6]++ // the checksum
	for name, c := range map[string]struct{ packed, kind string }{
		"zstd cut":      {z[:len(z)-5], "truncated"},
		"gzip checksum": {string(g), "corrupt"},
	} {
		if r := run(t, c.packed); r.sum.RejectedByReason[c.kind] != 1 {
			t.Errorf("%s: %+v", name, r.sum)
		}
	}
}

func TestASourceThatFailsInTheMiddleIsARejectedLine(t *testing.T) {
	for text, id := range map[string]string{good("a") + "\n" + good("b"): "a b", good("a") + "\n" + good("b")[:50]: "a", good("a") + "\n": "a"} {
		var sink memorySink
		var rejects []ingest.Reject
		im, _ := ingest.New(ingest.Options{Sink: &sink, Limits: limits, OnReject: func(j ingest.Reject) { rejects = append(rejects, j) }})
		broken := io.MultiReader(strings.NewReader(text), &failingReader{})
		if _, err := im.Run(t.Context(), ingest.ReaderSource("disk", broken), ingest.ReaderSource("next", strings.NewReader(good("z")))); err != nil {
			t.Fatal(err)
		}
		if sink.ids() != id+" z" || len(rejects) != 1 || rejects[0].Reason != "unreadable from here on: disk on fire" {
			t.Errorf("stored %q, rejects %+v", sink.ids(), rejects)
		}
	}
}

type failingReader struct{}

func (*failingReader) Read([]byte) (int, error) { return 0, errors.New("disk on fire") }

func TestFilesAndStdin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.ndjson")
	if err := os.WriteFile(path, []byte(gzipped(t, lines(good("a")))), 0o600); err != nil {
		t.Fatal(err)
	}
	sources, err := ingest.FileSources(strings.NewReader(good("b")), path, "-")
	if err != nil {
		t.Fatal(err)
	}
	var sink memorySink
	im, _ := ingest.New(ingest.Options{Sink: &sink, Limits: limits})
	if _, err := im.Run(t.Context(), sources...); err != nil || sink.ids() != "a b" {
		t.Errorf("stored %q, %v", sink.ids(), err)
	}
	for _, bad := range []string{filepath.Join(t.TempDir(), "missing"), t.TempDir()} {
		if _, err := ingest.FileSources(nil, path, bad); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestASourceThatCannotBeOpenedEndsTheImport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.ndjson")
	if err := os.WriteFile(path, []byte(good("a")), 0o600); err != nil {
		t.Fatal(err)
	}
	sources, err := ingest.FileSources(nil, path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	im, _ := ingest.New(ingest.Options{Sink: discard{}, Limits: limits})
	if _, err := im.Run(t.Context(), sources...); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "open "+path) {
		t.Errorf("got %v", err)
	}
}

func TestBatchesHaveTheirSizeAndOrder(t *testing.T) {
	var sink memorySink
	var last ingest.Progress
	text := many(2500)
	im, _ := ingest.New(ingest.Options{Sink: &sink, Limits: limits, BatchRows: 1000, Workers: 4, Progress: func(p ingest.Progress) { last = p }})
	sum, err := im.Run(t.Context(), ingest.ReaderSource("a", strings.NewReader(text)))
	if err != nil || !reflect.DeepEqual(sink.batches, []int{1000, 1000, 500}) || sum.Accepted != 2500 {
		t.Fatalf("batches %v, %+v, %v", sink.batches, sum, err)
	}
	for i, a := range sink.got {
		if want := fmt.Sprintf("op-%06d", i); a.LogicalID != want {
			t.Fatalf("record %d is %s", i, a.LogicalID)
		}
	}
	if last.Accepted != 2500 || last.BytesRead != int64(len(text)) {
		t.Errorf("progress ends at %+v", last)
	}
}

func TestTenantIsTheLinesOwnOrTheDefault(t *testing.T) {
	text := lines(good("a"), strings.Replace(good("b"), `"tenant":"acme",`, "", 1))
	if r := run(t, text); len(r.sink.got) != 2 || r.sink.got[0].Tenant != "acme" || r.sink.got[1].Tenant != "default" {
		t.Errorf("%+v", r.sink.got)
	}
}

func TestSinkErrorTellsHowManyWereStored(t *testing.T) {
	full := errors.New("disk full")
	n := 0
	sink := memorySink{before: func() error {
		if n++; n == 3 {
			return full
		}
		return nil
	}}
	im, _ := ingest.New(ingest.Options{Sink: &sink, Limits: limits, BatchRows: 100})
	sum, err := im.Run(t.Context(), ingest.ReaderSource("a", strings.NewReader(many(5000))))
	if !errors.Is(err, full) || sum.Accepted != 200 || !strings.Contains(err.Error(), "200 records were stored") {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestCancelStopsEvenWhileTheSourceBlocks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stdin, w := io.Pipe()
	defer w.Close()
	sink := memorySink{before: func() error { cancel(); return nil }}
	im, _ := ingest.New(ingest.Options{Sink: &sink, Limits: limits, BatchRows: 1000})
	go io.WriteString(w, many(5000))
	sum, err := im.Run(ctx, ingest.ReaderSource("stdin", stdin))
	if !errors.Is(err, context.Canceled) || sum.Accepted > 1000 {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestSummaryHasFewReasons(t *testing.T) {
	var text strings.Builder
	for i := range 500 {
		for _, members := range []string{
			`"key_%d":1`, `"prompt_tokens":-%d1`, `"hop":"x%d"`, `"seq":1.5%d`, `"attributes":{"k%d":"\u0000"}`, `"attributes":{"k\"%d":"\u0000"}`,
			`"cause":"policy","model":"%d"`, `"operation_started_at":"x, got : \"%d"`, `"status":6%d`, `"revision":"%d"`, `"cost_usd":"x%d"`,
		} {
			text.WriteString(with("x", fmt.Sprintf(members, i+100)) + "\n")
		}
	}
	r := run(t, text.String())
	want := map[string]int64{
		"unknown key": 500, "prompt_tokens: must be within 0..1000000000000": 500, "hop: not one of its values": 500,
		"seq: must be an integer without fraction or exponent": 500, "attributes: value of … has a control character": 1000,
		"cause: must be first exactly when attempt is 0": 500, "operation_started_at: not an RFC 3339 time": 500,
		"status: must be 0 or within 100..599": 500, "revision: wrong type": 500, "cost_usd: not a decimal number": 500,
	}
	if !reflect.DeepEqual(r.sum.RejectedByReason, want) {
		t.Errorf("got %v", r.sum.RejectedByReason)
	}
	b, err := json.Marshal(ingest.Summary{Accepted: 2, Rejected: 1, RejectedByReason: map[string]int64{"hop: x": 1}})
	if want := `{"accepted":2,"rejected":1,"rejected_by_reason":{"hop: x":1}}`; err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
}

func TestOptionsAreNamedWhenBad(t *testing.T) {
	ok := ingest.Options{Sink: &memorySink{}, Limits: limits}
	for field, spoil := range map[string]func(*ingest.Options){
		"Sink":      func(o *ingest.Options) { o.Sink = nil },
		"Limits":    func(o *ingest.Options) { o.Limits = nil },
		"BatchRows": func(o *ingest.Options) { o.BatchRows = -1 },
		"Workers":   func(o *ingest.Options) { o.Workers = -1 },
	} {
		o := ok
		spoil(&o)
		if _, err := ingest.New(o); err == nil || !strings.Contains(err.Error(), "Options."+field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestRejectsAreWrittenAsNDJSON(t *testing.T) {
	var b strings.Builder
	w := ingest.NewRejectWriter(&b)
	w.Write(ingest.Reject{Source: "a.ndjson", Line: 7, Field: "model", Reason: "is <bad>", Raw: []byte("{\xff\"\n")})
	if want := `{"source":"a.ndjson","line":7,"field":"model","error":"is <bad>","raw":"{` + "\ufffd" + `\"\n"}` + "\n"; b.String() != want || w.Err() != nil {
		t.Errorf("got %s, %v", b.String(), w.Err())
	}
}

// endless gives lines that are far too long, many times.
type endless struct{ left int }

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.left)
	for i := range p[:n] {
		p[i] = 'x'
	}
	if e.left%(10<<20) < n {
		p[n-1] = '\n'
	}
	e.left -= n
	return n, nil
}

func TestMemoryDoesNotGrowWithTheInput(t *testing.T) {
	const limit = 32 << 20
	var peak, calls atomic.Uint64
	watch := func(ingest.Progress) {
		if calls.Add(1)%16 != 0 {
			return
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak.Store(max(peak.Load(), m.HeapInuse))
	}
	im, _ := ingest.New(ingest.Options{Sink: discard{}, Limits: limits, BatchRows: 1000, Progress: watch, OnReject: func(ingest.Reject) {}})
	hundred := func() io.Reader { return strings.NewReader(many(20_000)) }
	sum, err := im.Run(t.Context(), ingest.ReaderSource("long lines", &endless{100 << 20}), ingest.ReaderSource("a", hundred()), ingest.ReaderSource("b", hundred()))
	if err != nil || sum.Accepted != 40_000 || sum.Rejected < 10 {
		t.Fatalf("%+v, %v", sum, err)
	}
	t.Logf("peak heap %d MiB", peak.Load()>>20)
	if peak.Load() > limit {
		t.Errorf("peak heap %d MiB, limit %d MiB", peak.Load()>>20, limit>>20)
	}
}

type discard struct{}

func (discard) Write(context.Context, []retrylens.Attempt) error { return nil }

// BenchmarkImport reads many lines into a sink that does nothing.
func BenchmarkImport(b *testing.B) {
	text := many(100_000)
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			im, _ := ingest.New(ingest.Options{Sink: discard{}, Limits: limits, Workers: workers})
			for b.Loop() {
				if _, err := im.Run(b.Context(), ingest.ReaderSource("a", strings.NewReader(text))); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(100_000*b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
