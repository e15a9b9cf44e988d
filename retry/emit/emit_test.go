package emit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/wire"
	"github.com/retrylens/retrylens/retry/emit"
)

func attempt(id string) *retrylens.Attempt {
	return &retrylens.Attempt{LogicalID: id, Provider: "openai", StartedAt: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Outcome: retrylens.OutcomeSuccess}
}

// sink records what it is given and fails as it is told.
type sink struct {
	mu     sync.Mutex
	lines  []string
	sizes  []int
	fail   func(n int) error // of the call with that number, from 0; nil = never
	calls  int
	times  []time.Time
	block  chan struct{} // nil = never
	closed bool
}

func (s *sink) Send(ctx context.Context, lines []byte, n int) (emit.Result, error) {
	if s.block != nil {
		select {
		case <-s.block:
		case <-ctx.Done():
			return emit.Result{}, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	call := s.calls
	s.calls++
	s.times = append(s.times, time.Now())
	if s.fail != nil {
		if err := s.fail(call); err != nil {
			return emit.Result{}, err
		}
	}
	s.sizes = append(s.sizes, n)
	for l := range strings.Lines(string(lines)) {
		s.lines = append(s.lines, strings.TrimSuffix(l, "\n"))
	}
	return emit.Result{}, ctx.Err()
}

func (s *sink) Close() error {
	s.closed = true
	return nil
}

// records decodes what came, and checks each line as the ingest service does.
func (s *sink) records(t *testing.T) []retrylens.Attempt {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	return decode(t, s.lines)
}

func decode(t *testing.T, lines []string) (out []retrylens.Attempt) {
	t.Helper()
	var d wire.Decoder
	for _, l := range lines {
		var a retrylens.Attempt
		if err := d.Decode([]byte(l), &a); err != nil {
			t.Fatalf("%v: %s", err, l)
		}
		if err := emit.Check(&a); err != nil {
			t.Fatalf("%v: %s", err, l)
		}
		out = append(out, a)
	}
	return out
}

func start(t *testing.T, o emit.Options) *emit.Emitter {
	t.Helper()
	e, err := emit.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func closeWithin(t *testing.T, e *emit.Emitter, d time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return e.Close(ctx)
}

func TestEverythingArrivesInOrder(t *testing.T) {
	s := &sink{}
	e := start(t, emit.Options{Sink: s, BatchSize: 10})
	for i := range 95 {
		e.Emit(attempt(fmt.Sprint(i)), nil)
	}
	if err := closeWithin(t, e, time.Minute); err != nil {
		t.Fatal(err)
	}
	got := s.records(t)
	for i, a := range got {
		if a.LogicalID != fmt.Sprint(i) || a.Seq.Value != int64(i) || a.Emitter != e.Name() || a.Emitter == "" {
			t.Errorf("record %d: %s", i, a.AppendJSON(nil))
		}
	}
	if len(got) != 95 || slices.Max(s.sizes) > 10 || !s.closed {
		t.Errorf("%d records in batches of %v", len(got), s.sizes)
	}
	if st := e.Stats(); st.Emitted != 95 || st.Sent != 95 || st.Dropped != 0 || st.Queued != 0 {
		t.Errorf("%+v", st)
	}
}

// TestNeverBlocks: with a sink that hangs, and full, Emit takes no time at all of a clock
// that only moves when everything is blocked. What is dropped is counted and uses up its
// numbers.
func TestNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{block: make(chan struct{})}
		e := start(t, emit.Options{Sink: s, MaxRecords: 1000, BatchSize: 100})
		before := time.Now()
		for i := range 50_000 {
			e.Emit(attempt(fmt.Sprint(i)), nil)
		}
		if d := time.Since(before); d != 0 {
			t.Errorf("Emit waited for %v", d)
		}
		st := e.Stats()
		if st.Emitted != 50_000 || st.Dropped < 48_000 || st.Queued > 1000 {
			t.Errorf("%+v", st)
		}
		close(s.block)
		err := closeWithin(t, e, time.Minute)
		got := s.records(t)
		if st = e.Stats(); err == nil || !strings.Contains(err.Error(), fmt.Sprint(st.Dropped)) || int64(len(got)) != 50_000-st.Dropped {
			t.Errorf("%v; %d records, %+v", err, len(got), st)
		}
	})
}

// TestBackoff: the sink is tried again with growing waits, at least as long as it asks for.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{fail: func(n int) error {
			switch {
			case n < 3:
				return errors.New("down")
			case n == 3:
				return &emit.RetryAfterError{After: 20 * time.Second, Err: errors.New("full")}
			}
			return nil
		}}
		var told []string
		e := start(t, emit.Options{Sink: s, Backoff: func(n int) time.Duration { return time.Duration(n) * time.Second }, OnError: func(err error) { told = append(told, err.Error()) }})
		e.Emit(attempt("a"), nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		var waits []time.Duration
		for i := 1; i < len(s.times); i++ {
			waits = append(waits, s.times[i].Sub(s.times[i-1]))
		}
		if want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 20 * time.Second}; !slices.Equal(waits, want) {
			t.Errorf("waits %v, want %v", waits, want)
		}
		s.mu.Unlock()
		defer s.mu.Lock()
		if err := e.Close(t.Context()); err != nil || len(told) != 4 || len(s.records(t)) != 1 {
			t.Errorf("%v; told %v", err, told)
		}
	})
}

// TestCloseGivesUp: a sink that stays away costs Close no more than its context, and the
// loss is told.
func TestCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{fail: func(int) error { return errors.New("down") }}
		e := start(t, emit.Options{Sink: s, BatchSize: 10})
		for range 25 {
			e.Emit(attempt("a"), nil)
		}
		before := time.Now()
		err := closeWithin(t, e, 5*time.Second)
		if d := time.Since(before); d > 6*time.Second || err == nil || !strings.Contains(err.Error(), "25 dropped") {
			t.Errorf("after %v: %v", d, err)
		}
		e.Emit(attempt("late"), nil)
		if st := e.Stats(); st.Dropped != 26 {
			t.Errorf("a record after Close is not counted: %+v", st)
		}
		if err := e.Close(t.Context()); err != nil {
			t.Errorf("a second Close: %v", err)
		}
	})
}

// TestCloseLeavesASinkThatHangs: a sink that does not heed its context does not keep the
// process from ending, whoever closes.
func TestCloseLeavesASinkThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		e := start(t, emit.Options{Sink: emit.Writer(w), BatchSize: 10})
		for range 25 {
			e.Emit(attempt("a"), nil)
		}
		for range 2 {
			before := time.Now()
			err := closeWithin(t, e, 5*time.Second)
			if d := time.Since(before); d > 7*time.Second || err == nil || !strings.Contains(err.Error(), "25 records are left behind") {
				t.Errorf("after %v: %v", d, err)
			}
		}
		r.Close() // its goroutine ends
	})
}

// TestAttributesThatDoNotFit are cut; they cost no record, and the caller's map stays.
func TestAttributesThatDoNotFit(t *testing.T) {
	many := map[string]string{}
	for i := range 40 {
		many[fmt.Sprint("k", i)] = "v"
	}
	long := strings.Repeat("ä", 200)
	for name, attributes := range map[string]map[string]string{
		"too many": many, "long value": {"a": long}, "long keys": {long + "1": "x", long + "2": "y"}, "no key": {"": "x", "a": "b"},
		"control characters": {"a\n": "b\x00", "a": "c"}, "no UTF-8": {"\xff": "\xfe", "b": "\xfe"}, "fits": {"a": "b"},
	} {
		s, before := &sink{}, len(attributes)
		e := start(t, emit.Options{Sink: s})
		a := attempt("a")
		a.Attributes = attributes
		e.Emit(a, nil)
		if err := closeWithin(t, e, time.Minute); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := s.records(t); len(got) != 1 || len(got[0].Attributes) == 0 || len(attributes) != before {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestEmitWhileClosed: records that come while the emitter closes and afterwards are dropped and
// counted; its second end has nothing to say.
func TestEmitWhileClosed(t *testing.T) {
	e := start(t, emit.Options{Sink: &sink{fail: func(int) error { return errors.New("away") }}})
	e.Emit(attempt("a"), nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	closed := make(chan struct{})
	var emitting sync.WaitGroup
	for range 4 {
		emitting.Go(func() {
			for {
				e.Emit(attempt("a"), nil)
				select {
				case <-closed:
					return
				default:
				}
			}
		})
	}
	if err := e.Close(ctx); err == nil {
		t.Error("lost records are not told")
	}
	if err := e.Close(ctx); err != nil {
		t.Error(err)
	}
	close(closed)
	emitting.Wait()
	if s := e.Stats(); s.Emitted != s.Sent+s.Dropped || s.Queued != 0 {
		t.Errorf("%+v", s)
	}
}

func TestRefusedAndTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		s.fail = func(int) error { return nil }
		e := start(t, emit.Options{Sink: splitting{s, 3}, BatchSize: 10})
		for i := range 10 {
			id := fmt.Sprint(i)
			if i == 4 {
				id = "poison"
			}
			e.Emit(attempt(id), nil)
		}
		err := closeWithin(t, e, time.Minute)
		st := e.Stats()
		if err == nil || st.Rejected != st.Emitted-int64(len(s.records(t))) || st.Rejected == 0 || st.Rejected > 3 {
			t.Errorf("%v %+v", err, st)
		}
	})
}

// splitting takes at most max records and refuses what holds poison.
type splitting struct {
	*sink
	max int
}

func (s splitting) Send(ctx context.Context, lines []byte, n int) (emit.Result, error) {
	switch {
	case n > s.max:
		return emit.Result{}, emit.ErrTooLarge
	case strings.Contains(string(lines), "poison"):
		return emit.Result{}, fmt.Errorf("%w: poison", emit.ErrRefused)
	}
	return s.sink.Send(ctx, lines, n)
}

type late struct{ size int }

func (l late) Size() int                     { return l.size }
func (l late) Complete(a *retrylens.Attempt) { a.Fingerprint = "sha256:x" }

// TestLate: late parts are bounded in bytes; a record goes without rather than not at all.
func TestLate(t *testing.T) {
	s := &sink{block: make(chan struct{})}
	e := start(t, emit.Options{Sink: s, MaxBytes: 1000})
	for range 5 {
		e.Emit(attempt("a"), late{300})
	}
	close(s.block)
	if err := closeWithin(t, e, time.Minute); err != nil {
		t.Fatal(err)
	}
	with := 0
	for _, a := range s.records(t) {
		if a.Fingerprint != "" {
			with++
		}
	}
	if st := e.Stats(); with != 3 || st.Bare != 2 || st.Sent != 5 {
		t.Errorf("%d with their late part, %+v", with, st)
	}
}

// TestRevision repeats the number of the record it replaces.
func TestRevision(t *testing.T) {
	s := &sink{}
	e := start(t, emit.Options{Sink: s})
	a := attempt("a")
	e.Emit(a, nil)
	a.Revision = 1
	e.Emit(a, nil)
	e.Emit(attempt("b"), nil)
	_ = closeWithin(t, e, time.Minute)
	got := s.records(t)
	if len(got) != 3 || got[0].Seq.Value != 0 || got[1].Seq.Value != 0 || got[1].Revision != 1 || got[2].Seq.Value != 1 {
		t.Errorf("%+v", got)
	}
}

// TestSpool: what cannot be sent lies on disk, survives the process and is sent by the
// next one; a file that cannot be read keeps nothing waiting.
func TestSpool(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	open := func(max int64) *emit.Spool {
		s, err := emit.OpenSpool(dir, max)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	down := &sink{fail: func(int) error { return errors.New("down") }}
	e := start(t, emit.Options{Sink: down, Spool: open(0), BatchSize: 10, Emitter: "../one"})
	for i := range 35 {
		e.Emit(attempt(fmt.Sprint(i)), nil)
	}
	if err := closeWithin(t, e, 30*time.Second); err != nil {
		t.Errorf("nothing is lost, yet Close says %v", err)
	}
	if st := e.Stats(); st.Spooled != 35 || st.Dropped != 0 || down.calls > 5 {
		t.Errorf("%+v, the sink was called %d times", st, down.calls)
	}
	if err := os.WriteFile(filepath.Join(dir, "00000000000000000000-x-0.ndjson.zst"), []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	up := &sink{}
	var told []string
	e = start(t, emit.Options{Sink: up, Spool: open(0), OnError: func(err error) { told = append(told, err.Error()) }})
	if err := closeWithin(t, e, 30*time.Second); err != nil {
		t.Error(err)
	}
	got := up.records(t)
	for i, a := range got {
		if a.LogicalID != fmt.Sprint(i) || a.Emitter != "../one" {
			t.Errorf("record %d: %s", i, a.AppendJSON(nil))
		}
	}
	left, _ := os.ReadDir(dir)
	if len(got) != 35 || len(left) != 1 || !strings.HasSuffix(left[0].Name(), ".bad") || len(told) != 1 {
		t.Errorf("%d records, %d files left, told %v", len(got), len(left), told)
	}

	e = start(t, emit.Options{Sink: down, Spool: open(10)}) // no room for anything
	e.Emit(attempt("a"), nil)
	if err := closeWithin(t, e, time.Second); err == nil || e.Stats().Dropped != 1 {
		t.Errorf("a full spool: %v %+v", err, e.Stats())
	}
}

// TestALongSpoolIsReadInOneGo: to send what waits on disk takes a listing for all of it, not
// one for each batch.
func TestALongSpoolIsReadInOneGo(t *testing.T) {
	dir := t.TempDir()
	spool, err := emit.OpenSpool(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	down := &sink{fail: func(int) error { return errors.New("down") }}
	const n = 300
	e := start(t, emit.Options{Sink: down, Spool: spool, BatchSize: 1})
	for i := range n {
		e.Emit(attempt(fmt.Sprint(i)), nil)
	}
	if err := closeWithin(t, e, time.Minute); err != nil {
		t.Fatal(err)
	}
	before := spool.Listings()
	up := &sink{}
	if err := closeWithin(t, start(t, emit.Options{Sink: up, Spool: spool}), time.Minute); err != nil {
		t.Fatal(err)
	}
	got := up.records(t)
	for i, a := range got {
		if a.LogicalID != fmt.Sprint(i) {
			t.Fatalf("batch %d holds record %s", i, a.LogicalID)
		}
	}
	if listings := spool.Listings() - before; len(got) != n || listings > 3 {
		t.Errorf("%d of %d records with %d listings", len(got), n, listings)
	}
}

// TestSpoolOfSeveral: what others put there or take away counts, the directory itself too.
func TestSpoolOfSeveral(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	open := func() *emit.Spool {
		s, err := emit.OpenSpool(dir, 4000)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	down := func() emit.Sink { return &sink{fail: func(int) error { return errors.New("down") }} }
	fill := func(s *emit.Spool) emit.Stats {
		e := start(t, emit.Options{Sink: down(), Spool: s, BatchSize: 5})
		for i := range 100 {
			e.Emit(attempt(fmt.Sprint(i)), nil)
		}
		_ = closeWithin(t, e, 100*time.Millisecond)
		return e.Stats()
	}
	one, two := open(), open()
	first := fill(one)
	if first.Spooled == 0 || first.Dropped == 0 {
		t.Fatalf("nothing to compare: %+v", first)
	}
	if st := fill(two); st.Spooled != 0 {
		t.Errorf("full of another's batches, yet %d records were put there", st.Spooled)
	}
	up := &sink{}
	if err := closeWithin(t, start(t, emit.Options{Sink: up, Spool: open()}), time.Minute); err != nil || len(up.records(t)) != int(first.Spooled) {
		t.Errorf("%v, %d of %d records", err, len(up.lines), first.Spooled)
	}
	enough := first.Spooled / 2 // batches are not cut at the same places each time
	if st := fill(two); st.Spooled < enough {
		t.Errorf("another has emptied it, yet %d records were put there, %d the first time", st.Spooled, first.Spooled)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if st := fill(one); st.Spooled < enough {
		t.Errorf("after it was removed %d records were put there, %d the first time", st.Spooled, first.Spooled)
	}
}

func TestOptions(t *testing.T) {
	for name, f := range map[string]func() error{
		"sink":        func() error { _, err := emit.New(emit.Options{}); return err },
		"batch":       func() error { _, err := emit.New(emit.Options{Sink: &sink{}, BatchSize: 50_001}); return err },
		"negative":    func() error { _, err := emit.New(emit.Options{Sink: &sink{}, MaxRecords: -1}); return err },
		"url":         func() error { _, err := emit.HTTP(emit.HTTPOptions{URL: "ingest:8480"}); return err },
		"compression": func() error { _, err := emit.HTTP(emit.HTTPOptions{URL: "http://x", Compression: "br"}); return err },
		"file":        func() error { _, err := emit.File(t.TempDir()); return err },
	} {
		if f() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "attempts.ndjson")
	for range 2 {
		s, err := emit.File(path)
		if err != nil {
			t.Fatal(err)
		}
		e := start(t, emit.Options{Sink: s})
		e.Emit(attempt("a"), nil)
		if err := closeWithin(t, e, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	text, _ := os.ReadFile(path)
	if a := decode(t, strings.Split(strings.TrimSpace(string(text)), "\n")); len(a) != 2 {
		t.Errorf("%s", text)
	}
}

// FuzzFit: whatever a header or a body holds, the record stays valid.
func FuzzFit(f *testing.F) {
	f.Add("gpt\x00", strings.Repeat("é", 300), "OpenAI", "\xff")
	f.Fuzz(func(t *testing.T, model, id, provider, reason string) {
		if id == "" || strings.ToValidUTF8(provider, "") == "" {
			return
		}
		a := attempt(id)
		a.Model, a.ResponseModel, a.Provider, a.Reason, a.ProviderRequestID, a.Endpoint, a.ProviderErrorType = model, model, "p"+provider, reason, reason, reason, model
		a.Operation, a.Service, a.Environment, a.IdempotencyKey = reason, model, id, id
		emit.Fit(a)
		if err := emit.Check(a); err != nil && !strings.Contains(err.Error(), "lower case") {
			t.Fatal(err)
		}
	})
}

func BenchmarkEmit(b *testing.B) {
	for _, c := range []struct {
		name string
		s    *sink
	}{{"good", &sink{}}, {"full", &sink{block: make(chan struct{})}}} {
		b.Run(c.name, func(b *testing.B) {
			e, _ := emit.New(emit.Options{Sink: c.s, Backoff: func(int) time.Duration { return time.Millisecond }})
			a := attempt("a")
			b.ReportAllocs()
			for b.Loop() {
				a.Seq = retrylens.Opt[int64]{}
				e.Emit(a, nil)
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = e.Close(ctx)
		})
	}
}
