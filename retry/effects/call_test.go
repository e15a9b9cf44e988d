package effects_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrylens/retrylens/retry/effects"
	"github.com/retrylens/retrylens/retry/op"
)

// bank is the receiver of a tool's calls. Its answers are set by the tests.
type bank struct {
	mu       sync.Mutex
	keys     []string // of calls that took effect
	asked    int
	undone   []string
	lost     bool                  // the effect happens, its answer is lost
	refuses  bool                  // no effect, and it says so
	finding  *effects.Finding      // of lookups; nil = by the keys
	mute     error                 // of lookups and compensations
	during   func(context.Context) // a call
	operates []string
}

var errLost = errors.New("connection reset")

func (k *bank) tool(may effects.Permission) effects.Tool {
	t := effects.Tool{Name: "transfer", Retry: may, Call: k.call}
	if may == effects.AfterLookup {
		t.Lookup = k.lookup
	}
	return t
}

func (k *bank) compensable() effects.Tool {
	t := k.tool(effects.Never)
	t.Compensate = k.undo
	return t
}

func (k *bank) call(ctx context.Context, c effects.Call) ([]byte, error) {
	if k.during != nil {
		k.during(ctx)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.operates = append(k.operates, op.From(ctx).Operation().Key)
	if k.refuses {
		return nil, effects.NotHappened(errors.New("refused"))
	}
	k.keys = append(k.keys, c.Key)
	if k.lost {
		return nil, errLost
	}
	return fmt.Appendf(nil, "%s by call %d", c.Args, c.Attempt), nil
}

func (k *bank) lookup(_ context.Context, c effects.Call) (effects.Finding, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	if k.finding != nil || k.mute != nil {
		return *cmpOr(k.finding), k.mute
	}
	if slices.Contains(k.keys, c.Key) {
		return effects.Finding{Outcome: effects.Happened, Result: []byte("looked up")}, nil
	}
	return effects.Finding{Outcome: effects.DidNotHappen}, nil
}

func cmpOr(f *effects.Finding) *effects.Finding {
	if f == nil {
		return &effects.Finding{}
	}
	return f
}

func (k *bank) undo(_ context.Context, c effects.Call) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.undone = append(k.undone, c.Key)
	return k.mute
}

func (b *bench) do(t effects.Tool) (effects.Result, error) {
	return b.Do(b.t.Context(), t, "k", []byte(`{"amount":5}`))
}

// pend leaves a call whose outcome is not known, or, if it did not take effect, whose
// process died before it was made.
func (b *bench) pend(k *bank, t effects.Tool, happened bool) {
	b.t.Helper()
	b.pendAt(k, t, happened)
	b.records.want(b.t, 0)
}

func (b *bench) pendAt(k *bank, t effects.Tool, happened bool) {
	b.t.Helper()
	call := t.Call
	t.Call = func(ctx context.Context, c effects.Call) ([]byte, error) {
		if happened {
			_, _ = call(ctx, c)
		}
		return nil, errLost
	}
	_, err := b.do(t)
	wantError(b.t, err, effects.ErrUnknown)
	wantError(b.t, err, errLost)
}

func TestDoOnce(t *testing.T) {
	for _, may := range []effects.Permission{effects.Repeatable, effects.Keyed, effects.AfterLookup, effects.Never} {
		t.Run(may.String(), func(t *testing.T) {
			onBench(t, func(t *testing.T, b *bench) {
				k := &bank{}
				for i := range 3 {
					res, err := b.do(k.tool(may))
					if err != nil || string(res.Value) != `{"amount":5} by call 1` || res.Replayed != (i > 0) {
						t.Fatalf("%q, %v, %v", res.Value, res.Replayed, err)
					}
				}
				if len(k.keys) != 1 || k.operates[0] != "k" {
					t.Errorf("%d calls, operations %q", len(k.keys), k.operates)
				}
				if a := b.records.want(t, 2)[0]; a.Operation != "transfer" || a.IdempotencyKey != "k" {
					t.Errorf("%+v", a)
				}
				_, err := b.Do(t.Context(), k.tool(may), "k", []byte("other"))
				wantError(t, err, effects.ErrConflict)
				renamed := k.tool(may)
				renamed.Name = "another"
				_, err = b.do(renamed)
				wantError(t, err, effects.ErrConflict)
			})
		})
	}
}

func TestDoAmongMany(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		k := &bank{}
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				if _, err := b.do(k.tool(effects.Never)); err != nil && !errors.Is(err, effects.ErrInFlight) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if _, err := b.do(k.tool(effects.Never)); err != nil || len(k.keys) != 1 {
			t.Errorf("%d calls, %v", len(k.keys), err)
		}
	})
}

// TestDoAgain: what a Do does with a call that may have happened, by permission.
func TestDoAgain(t *testing.T) {
	for name, c := range map[string]struct {
		tool     func(k *bank) effects.Tool
		happened bool
		passed   time.Duration // since the call ended
		bank     func(k *bank)
		err      error
		value    string
		calls    int // that took effect, all told
		replayed bool
		unsolved bool // set aside
		after    time.Duration
	}{
		"repeatable is called again":               {tool: tool(effects.Repeatable), happened: true, value: `{"amount":5} by call 2`, calls: 2},
		"keyed is called again":                    {tool: tool(effects.Keyed), happened: true, value: `{"amount":5} by call 2`, calls: 2},
		"keyed, as long as its receiver remembers": {tool: tool(effects.Keyed), happened: true, passed: 24 * time.Hour, value: `{"amount":5} by call 2`, calls: 2},
		"keyed, its receiver may have forgotten":   {tool: tool(effects.Keyed), happened: true, passed: 24*time.Hour + time.Millisecond, err: effects.ErrUnknown, calls: 1, unsolved: true},
		"looked up: it happened":                   {tool: tool(effects.AfterLookup), happened: true, value: "looked up", calls: 1, replayed: true},
		"looked up: it did not":                    {tool: tool(effects.AfterLookup), passed: time.Minute, value: `{"amount":5} by call 2`, calls: 1},
		"looked up: it still may":                  {tool: tool(effects.AfterLookup), passed: time.Minute - time.Millisecond, err: effects.ErrUnknown, after: time.Millisecond},
		"looked up: the receiver cannot tell":      {tool: tool(effects.AfterLookup), passed: time.Hour, bank: func(k *bank) { k.finding = &effects.Finding{Outcome: effects.Unknown} }, err: effects.ErrUnknown},
		"looked up: no outcome":                    {tool: tool(effects.AfterLookup), passed: time.Hour, bank: func(k *bank) { k.finding = &effects.Finding{} }, err: effects.ErrUnknown},
		"looked up: the receiver is down":          {tool: tool(effects.AfterLookup), passed: time.Hour, bank: func(k *bank) { k.mute = errLost }, err: errLost},
		"never":                                    {tool: tool(effects.Never), happened: true, passed: time.Hour, err: effects.ErrUnknown, calls: 1, unsolved: true},
		"compensated":                              {tool: (*bank).compensable, happened: true, passed: time.Minute, value: `{"amount":5} by call 2`, calls: 2},
		"compensated later: it still may happen":   {tool: (*bank).compensable, happened: true, passed: time.Second, err: effects.ErrUnknown, calls: 1, after: 59 * time.Second},
		"the compensation fails":                   {tool: (*bank).compensable, happened: true, passed: time.Minute, bank: func(k *bank) { k.mute = errLost }, err: errLost, calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			onBench(t, func(t *testing.T, b *bench) {
				k := &bank{}
				b.pend(k, c.tool(k), c.happened)
				b.clock.Advance(c.passed)
				if c.bank != nil {
					c.bank(k)
				}
				for i := range 2 { // asking twice makes no difference
					res, err := b.do(c.tool(k))
					if !errors.Is(err, c.err) || string(res.Value) != c.value || res.Replayed != (c.replayed || c.err == nil && i > 0) {
						t.Fatalf("%q, %v, %v", res.Value, res.Replayed, err)
					}
					var e *effects.KeyError
					if c.err != nil && (!errors.As(err, &e) || e.Key != "k" || e.Tool != "transfer" || e.After != c.after || !errors.Is(err, effects.ErrUnknown)) {
						t.Errorf("%#v", err)
					}
				}
				if len(k.keys) != c.calls {
					t.Errorf("%d calls took effect, want %d", len(k.keys), c.calls)
				}
				if s := b.stats(); s.Unresolved == 1 != c.unsolved || s.Committed == 1 != (c.err == nil) || s.Pending == 1 != (c.err != nil && !c.unsolved) {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

func tool(may effects.Permission) func(*bank) effects.Tool {
	return func(k *bank) effects.Tool { return k.tool(may) }
}

// TestCompensatedCallsHaveKeysOfTheirOwn: the receiver may remember the first one.
func TestCompensatedCallsHaveKeysOfTheirOwn(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		k := &bank{lost: true}
		for range 3 {
			_, err := b.do(k.compensable())
			wantError(t, err, effects.ErrUnknown)
			b.clock.Advance(time.Hour)
		}
		k.lost = false
		if _, err := b.do(k.compensable()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(k.undone, k.keys[:3]) || !slices.Equal(k.operates, k.keys) {
			t.Errorf("undone %q of %q, operations %q", k.undone, k.keys, k.operates)
		}
		slices.Sort(k.keys)
		if len(slices.Compact(k.keys)) != 4 {
			t.Errorf("keys %q", k.keys)
		}
	})
}

// TestDoAfterACallThatSurelyDidNotHappen: any permission lets it be called again.
func TestDoAfterACallThatSurelyDidNotHappen(t *testing.T) {
	for _, may := range []effects.Permission{effects.Repeatable, effects.Keyed, effects.AfterLookup, effects.Never} {
		t.Run(may.String(), func(t *testing.T) {
			onBench(t, func(t *testing.T, b *bench) {
				k := &bank{refuses: true}
				for range 2 {
					if _, err := b.do(k.tool(may)); err == nil || err.Error() != "refused" {
						t.Fatal(err)
					}
				}
				if s := b.stats(); s.NotHappened != 1 || s.Pending != 0 {
					t.Errorf("%+v", s)
				}
				k.refuses = false
				b.clock.Advance(48 * time.Hour) // what did not happen cannot be forgotten
				res, err := b.do(k.tool(may))
				if err != nil || res.Replayed || k.asked != 0 {
					t.Errorf("%+v, %v, %d lookups", res, err, k.asked)
				}
			})
		})
	}
}

// TestDoWhileInFlight: another process is told how long the lease lasts, and gets no further
// until it has ended.
func TestDoWhileInFlight(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		k := &bank{}
		k.during = func(context.Context) {
			for range 9 {
				b.renewal()
			}
			k.during = nil
			_, err := b.another(effects.Options{}).Do(t.Context(), k.tool(effects.Keyed), "k", []byte(`{"amount":5}`))
			wantError(t, err, effects.ErrInFlight)
			var e *effects.KeyError
			if !errors.As(err, &e) || e.After != lease {
				t.Errorf("%#v", err)
			}
		}
		if _, err := b.do(k.tool(effects.Keyed)); err != nil || len(k.keys) != 1 {
			t.Errorf("%d calls, %v", len(k.keys), err)
		}
	})
}

// TestDoThatLostItsLease: it is told to end; that it happened all the same is written
// down, unless another has called meanwhile.
func TestDoThatLostItsLease(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile string
		err       error
		replayed  bool
	}{
		"somebody looks":                        {"UPDATE retrylens_calls SET lease = 'another'", nil, true},
		"somebody found that it did not happen": {"UPDATE retrylens_calls SET lease = '', state = 'not_happened'", nil, true},
		"somebody set it aside":                 {"UPDATE retrylens_calls SET lease = '', state = 'unresolved'", nil, true},
		"somebody calls":                        {"UPDATE retrylens_calls SET lease = 'another', attempts = 2", effects.ErrUnknown, false},
	} {
		t.Run(name, func(t *testing.T) {
			onBench(t, func(t *testing.T, b *bench) {
				k := &bank{during: func(ctx context.Context) {
					if _, err := b.db.ExecContext(ctx, c.meanwhile); err != nil {
						t.Fatal(err)
					}
					b.third()
					<-ctx.Done()
					wantError(t, context.Cause(ctx), effects.ErrLeaseLost)
				}}
				_, err := b.do(k.tool(effects.Keyed))
				wantError(t, err, c.err)
				k.during = nil
				if c.replayed {
					if res, err := b.do(k.tool(effects.Keyed)); err != nil || !res.Replayed {
						t.Errorf("%+v, %v", res, err)
					}
				}
			})
		})
	}
}

func TestDoWritesDownWhatHappenedThoughItsCallerLeft(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		ctx, cancel := context.WithCancel(t.Context())
		k := &bank{during: func(context.Context) { cancel() }}
		if res, err := b.Do(ctx, k.tool(effects.Never), "k", nil); err != nil || res.Replayed {
			t.Fatalf("%+v, %v", res, err)
		}
		if s := b.stats(); s.Committed != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestReconcile(t *testing.T) {
	for name, c := range map[string]struct {
		tool     func(k *bank) effects.Tool
		happened bool
		passed   time.Duration
		bank     func(k *bank)
		want     effects.Reconciled
		calls    int
	}{
		"repeatable is called again":        {tool: tool(effects.Repeatable), happened: true, want: effects.Reconciled{Committed: 1}, calls: 2},
		"keyed is called again":             {tool: tool(effects.Keyed), happened: true, want: effects.Reconciled{Committed: 1}, calls: 2},
		"keyed fails again":                 {tool: tool(effects.Keyed), happened: true, bank: func(k *bank) { k.lost = true }, want: effects.Reconciled{Waiting: 1}, calls: 2},
		"keyed is refused":                  {tool: tool(effects.Keyed), happened: true, bank: func(k *bank) { k.refuses = true }, want: effects.Reconciled{NotHappened: 1}, calls: 1},
		"keyed, forgotten":                  {tool: tool(effects.Keyed), happened: true, passed: 25 * time.Hour, want: effects.Reconciled{SetAside: 1}, calls: 1},
		"it happened":                       {tool: tool(effects.AfterLookup), happened: true, want: effects.Reconciled{Committed: 1}, calls: 1},
		"it did not happen":                 {tool: tool(effects.AfterLookup), passed: time.Minute, want: effects.Reconciled{NotHappened: 1}},
		"it still may":                      {tool: tool(effects.AfterLookup), passed: time.Second, want: effects.Reconciled{Waiting: 1}},
		"the receiver cannot tell":          {tool: tool(effects.AfterLookup), passed: time.Hour, bank: func(k *bank) { k.mute = errLost }, want: effects.Reconciled{Waiting: 1}},
		"the receiver cannot tell for long": {tool: tool(effects.AfterLookup), passed: 24*time.Hour + time.Millisecond, bank: func(k *bank) { k.mute = errLost }, want: effects.Reconciled{SetAside: 1}},
		"nobody to ask":                     {tool: tool(effects.Never), want: effects.Reconciled{SetAside: 1}},
		"compensated":                       {tool: (*bank).compensable, happened: true, passed: time.Hour, want: effects.Reconciled{NotHappened: 1}, calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			onBench(t, func(t *testing.T, b *bench) {
				k := &bank{}
				b.pend(k, c.tool(k), c.happened)
				b.clock.Advance(c.passed)
				if c.bank != nil {
					c.bank(k)
				}
				o := effects.ReconcileOptions{Tools: []effects.Tool{c.tool(k)}}
				if got, err := b.Reconcile(t.Context(), o); err != nil || got != c.want {
					t.Fatalf("%+v, %v, want %+v", got, err, c.want)
				}
				if len(k.keys) != c.calls {
					t.Errorf("%d calls took effect, want %d", len(k.keys), c.calls)
				}
				if got, err := b.Reconcile(t.Context(), o); err != nil || got != (effects.Reconciled{}) {
					t.Errorf("at once again: %+v, %v", got, err)
				}
				b.records.want(t, 0)
			})
		})
	}
}

// TestReconcileLeavesAlone what is leased, too young, of other tools, or backing off.
func TestReconcileLeavesAlone(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		k := &bank{}
		none := effects.Reconciled{}
		reconcile := func(o effects.ReconcileOptions, want effects.Reconciled) {
			t.Helper()
			o.Backoff = func(failures int) time.Duration { return time.Duration(failures) * time.Minute }
			if got, err := b.Reconcile(t.Context(), o); err != nil || got != want {
				t.Fatalf("%+v, %v, want %+v", got, err, want)
			}
		}
		mine := effects.ReconcileOptions{Tools: []effects.Tool{k.tool(effects.AfterLookup)}}
		k.during = func(context.Context) { reconcile(mine, none) }
		k.lost = true
		_, err := b.do(k.tool(effects.AfterLookup))
		wantError(t, err, effects.ErrUnknown)
		k.during = nil
		other := k.tool(effects.AfterLookup)
		other.Name = "another"
		reconcile(effects.ReconcileOptions{Tools: []effects.Tool{other}}, none)
		young := mine
		young.MinAge = time.Minute
		reconcile(young, none)
		k.mute = errLost
		b.clock.Advance(time.Minute)
		reconcile(young, effects.Reconciled{Waiting: 1})
		b.clock.Advance(time.Minute - time.Millisecond)
		reconcile(mine, none)
		b.clock.Advance(time.Millisecond)
		reconcile(mine, effects.Reconciled{Waiting: 1})
		b.clock.Advance(time.Minute)
		reconcile(mine, none) // two failures in a row
		k.mute = nil
		b.clock.Advance(time.Minute)
		reconcile(mine, effects.Reconciled{Committed: 1})
	})
}

func TestSettle(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		k := &bank{}
		never := k.tool(effects.Never)
		aside := func() {
			t.Helper()
			if got, err := b.Reconcile(t.Context(), effects.ReconcileOptions{Tools: []effects.Tool{never}}); err != nil || got.SetAside != 1 {
				t.Fatalf("%+v, %v", got, err)
			}
		}
		b.pend(k, never, false)
		aside()
		open, err := b.Unresolved(t.Context(), 10)
		if err != nil || len(open) != 1 || open[0].Key != "k" || open[0].Tool != "transfer" || string(open[0].Args) != `{"amount":5}` || open[0].LastError == "" {
			t.Fatalf("%+v, %v", open, err)
		}
		for _, f := range []effects.Finding{{}, {Outcome: effects.Unknown}} {
			if err := b.Settle(t.Context(), "k", f); err == nil {
				t.Errorf("%+v was taken", f)
			}
		}
		if err := b.Settle(t.Context(), "k", effects.Finding{Outcome: effects.DidNotHappen}); err != nil {
			t.Fatal(err)
		}
		b.pend(k, never, true)
		aside()
		if err := b.Settle(t.Context(), "k", effects.Finding{Outcome: effects.Happened, Result: []byte("seen")}); err != nil {
			t.Fatal(err)
		}
		if res, err := b.do(never); err != nil || !res.Replayed || string(res.Value) != "seen" || len(k.keys) != 1 {
			t.Errorf("%+v, %v", res, err)
		}
		if err := b.Settle(t.Context(), "k", effects.Finding{Outcome: effects.Happened}); err == nil {
			t.Error("settled what is not set aside")
		}
	})
}

func TestToolsThatAreRefused(t *testing.T) {
	b := newBench(t, source{effects.SQLite, sqliteDSN(t.TempDir() + "/test.db")})
	for name, c := range map[string]struct {
		change func(t *effects.Tool)
		want   string
	}{
		"no name":                {func(t *effects.Tool) { t.Name = "" }, "Tool.Name"},
		"no permission":          {func(t *effects.Tool) { t.Retry = 0 }, "says whether it may be repeated"},
		"in transaction":         {func(t *effects.Tool) { t.Retry = effects.InTransaction }, "in_transaction"},
		"no call":                {func(t *effects.Tool) { t.Call = nil }, "Call is missing"},
		"no lookup":              {func(t *effects.Tool) { t.Retry = effects.AfterLookup }, "Lookup goes with"},
		"a lookup nobody asks":   {func(t *effects.Tool) { t.Lookup = (&bank{}).lookup }, "Lookup goes with"},
		"a needless compensator": {func(t *effects.Tool) { t.Compensate = (&bank{}).undo }, "Compensate goes only with"},
		"negative":               {func(t *effects.Tool) { t.KeyTTL = -1 }, "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			tool := (&bank{}).tool(effects.Keyed)
			c.change(&tool)
			_, do := b.do(tool)
			_, reconcile := b.Reconcile(t.Context(), effects.ReconcileOptions{Tools: []effects.Tool{tool}})
			_, run := b.Run(t.Context(), "run", []effects.Step{{Tool: tool}})
			for _, err := range []error{do, reconcile, run} {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
			}
		})
	}
	twice := (&bank{}).tool(effects.Keyed)
	for _, o := range []effects.ReconcileOptions{{}, {Tools: []effects.Tool{twice, twice}}, {Tools: []effects.Tool{twice}, MaxAge: -1}} {
		if _, err := b.Reconcile(t.Context(), o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}
