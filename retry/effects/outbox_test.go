package effects_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrylens/retrylens/retry/effects"
	"github.com/retrylens/retrylens/retry/op"
)

func (b *bench) enqueue(key, topic, payload string) (enqueued bool, err error) {
	err = b.tx(func(tx *sql.Tx) (err error) {
		enqueued, err = b.Enqueue(b.t.Context(), tx, effects.Message{Key: key, Topic: topic, Payload: []byte(payload)})
		return err
	})
	return enqueued, err
}

func (b *bench) mustEnqueue(keys ...string) {
	b.t.Helper()
	for _, k := range keys {
		if ok, err := b.enqueue(k, "mail", "to "+k); err != nil || !ok {
			b.t.Fatalf("enqueue %s: %v, %v", k, ok, err)
		}
	}
}

// mailbox is a handler's receiver.
type mailbox struct {
	mu     sync.Mutex
	got    []effects.Message
	answer func(m effects.Message) error
}

func (m *mailbox) handler() effects.Handler {
	return effects.Handler{Retry: effects.Keyed, Dispatch: func(_ context.Context, msg effects.Message) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.got = append(m.got, msg)
		if m.answer != nil {
			return m.answer(msg)
		}
		return nil
	}}
}

func mail(h effects.Handler) effects.DrainOptions {
	return effects.DrainOptions{Handlers: map[string]effects.Handler{"mail": h}, MaxAttempts: 3, Workers: 2,
		Backoff: func(failures int) time.Duration { return time.Duration(failures) * time.Minute }}
}

func (b *bench) drain(o effects.DrainOptions, want effects.Drained) {
	b.t.Helper()
	got, err := b.Drain(b.t.Context(), o)
	if err != nil || got != want {
		b.t.Fatalf("drained %+v, %v, want %+v", got, err, want)
	}
}

func TestEnqueueIsOfItsTransaction(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		no := errors.New("no")
		wantError(t, b.tx(func(tx *sql.Tx) error {
			_, err := b.Enqueue(t.Context(), tx, effects.Message{Key: "a", Topic: "mail"})
			return errors.Join(err, no)
		}), no)
		b.mustEnqueue("a", "b")
		if ok, err := b.enqueue("a", "mail", "to a"); err != nil || ok {
			t.Errorf("a repeat: %v, %v", ok, err)
		}
		_, err := b.enqueue("a", "mail", "to somebody else")
		wantError(t, err, effects.ErrConflict)
		_, err = b.enqueue("a", "other", "to a")
		wantError(t, err, effects.ErrConflict)
		a := b.records.want(t, 1)[0]
		if a.IdempotencyKey != "a" || a.Operation != "mail" || !strings.HasPrefix(a.Fingerprint, "sha256:") {
			t.Errorf("%+v", a)
		}
		box := &mailbox{}
		b.drain(mail(box.handler()), effects.Drained{Dispatched: 2})
		b.drain(mail(box.handler()), effects.Drained{})
		for _, m := range box.got {
			if string(m.Payload) != "to "+m.Key || m.Topic != "mail" || m.Attempt != 1 || !m.CreatedAt.Equal(b.clock.Now()) {
				t.Errorf("%+v", m)
			}
		}
		if ok, err := b.enqueue("a", "mail", "to a"); err != nil || ok {
			t.Errorf("a repeat after the dispatch: %v, %v", ok, err)
		}
		if s := b.stats(); s.Done != 2 || s.Ready != 0 {
			t.Errorf("%+v", s)
		}
		for _, m := range []effects.Message{{Topic: "mail"}, {Key: "k"}, {Key: "k", Topic: "a\n"}} {
			err := b.tx(func(tx *sql.Tx) error {
				_, err := b.Enqueue(t.Context(), tx, m)
				return err
			})
			if err == nil {
				t.Errorf("%+v was taken", m)
			}
		}
	})
}

func TestDrainBacksOffAndSetsAside(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.mustEnqueue("bad", "good")
		box := &mailbox{answer: func(m effects.Message) error {
			if m.Key == "bad" {
				return fmt.Errorf("no %d\nfor you", m.Attempt)
			}
			return nil
		}}
		o := mail(box.handler())
		b.drain(o, effects.Drained{Dispatched: 1, Failed: 1})
		b.clock.Advance(time.Minute - time.Millisecond)
		b.drain(o, effects.Drained{})
		b.clock.Advance(time.Millisecond)
		b.drain(o, effects.Drained{Failed: 1})
		b.clock.Advance(2 * time.Minute)
		if s := b.stats(); s.Ready != 1 || s.OldestReady != 3*time.Minute {
			t.Errorf("%+v", s)
		}
		b.drain(o, effects.Drained{SetAside: 1})
		b.clock.Advance(24 * time.Hour)
		b.drain(o, effects.Drained{})
		aside, err := b.SetAside(t.Context(), 10)
		if err != nil || len(aside) != 1 || aside[0].Key != "bad" || aside[0].LastError != "no 3 for you" || aside[0].Attempt != 3 {
			t.Fatalf("%+v, %v", aside, err)
		}
		if s := b.stats(); s.SetAside != 1 || s.Done != 1 {
			t.Errorf("%+v", s)
		}
		if err := b.Requeue(t.Context(), "good"); err == nil {
			t.Error("requeued what is not set aside")
		}
		if err := b.Requeue(t.Context(), "bad"); err != nil {
			t.Fatal(err)
		}
		b.drain(o, effects.Drained{Failed: 1})
		box.answer = nil
		b.clock.Advance(time.Hour)
		b.drain(o, effects.Drained{Dispatched: 1})
		if last := box.got[len(box.got)-1]; last.Attempt != 5 {
			t.Errorf("attempt %d, want 5", last.Attempt)
		}
	})
}

func TestDrainSetsPoisonAsideAtOnce(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.mustEnqueue("bad")
		broken := errors.New("no such address")
		box := &mailbox{answer: func(effects.Message) error { return fmt.Errorf("mail: %w", effects.Poison(broken)) }}
		b.drain(mail(box.handler()), effects.Drained{SetAside: 1})
		wantError(t, effects.Poison(broken), broken)
		if effects.Poison(nil) != nil || effects.NotHappened(nil) != nil {
			t.Error("nil is an error")
		}
	})
}

// TestDrainSetsAsideWhatKillsItsProcess: a message whose dispatch never ends is not tried for ever.
func TestDrainSetsAsideWhatKillsItsProcess(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.mustEnqueue("k")
		for range 3 {
			b.claimAndDie()
			b.drain(mail((&mailbox{}).handler()), effects.Drained{}) // the lease holds
			b.clock.Advance(lease)
		}
		b.drain(mail((&mailbox{}).handler()), effects.Drained{SetAside: 1})
		if aside, err := b.SetAside(t.Context(), 10); err != nil || !strings.Contains(aside[0].LastError, "3 times") {
			t.Errorf("%+v, %v", aside, err)
		}
	})
}

// claimAndDie leaves the state of a process that died with a message in its hands.
func (b *bench) claimAndDie() {
	b.t.Helper()
	_, err := b.db.ExecContext(b.t.Context(), fmt.Sprintf("UPDATE retrylens_outbox SET attempts = attempts + 1, lease = 'dead', called_ms = %d, due_ms = %d", b.clock.Now().UnixMilli(), b.clock.Now().Add(lease).UnixMilli()))
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestDrainDoesNotOutliveTheReceiversMemory(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.mustEnqueue("old", "young")
		fail := &mailbox{answer: func(effects.Message) error { return errors.New("down") }}
		h := fail.handler()
		h.KeyTTL = time.Hour
		b.drain(mail(h), effects.Drained{Failed: 2})
		b.clock.Advance(time.Hour)
		b.drain(mail(h), effects.Drained{Failed: 2}) // just remembered
		b.clock.Advance(2 * time.Minute)
		b.drain(mail(h), effects.Drained{SetAside: 2})
		if err := b.Requeue(t.Context(), "old"); err != nil {
			t.Fatal(err)
		}
		b.drain(mail((&mailbox{}).handler()), effects.Drained{Dispatched: 1})
		h.Retry = effects.Repeatable
		if err := b.Requeue(t.Context(), "young"); err != nil {
			t.Fatal(err)
		}
		b.drain(mail(h), effects.Drained{Failed: 1})
		b.clock.Advance(24 * time.Hour)
		b.drain(mail(h), effects.Drained{Failed: 1})
	})
}

// TestDrainRenewsItsLease: a dispatch of many leases stays its process's own; one whose
// lease another process has taken is told to end, and is counted as lost.
func TestDrainRenewsItsLease(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.mustEnqueue("k")
		var other effects.Drained
		h := effects.Handler{Retry: effects.Keyed, Dispatch: func(ctx context.Context, m effects.Message) error {
			for range 9 {
				b.renewal()
			}
			var err error
			if other, err = b.another(effects.Options{}).Drain(t.Context(), mail((&mailbox{}).handler())); err != nil {
				return err
			}
			if _, err := b.db.ExecContext(ctx, "UPDATE retrylens_outbox SET lease = 'another'"); err != nil {
				return err
			}
			b.third()
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		o := mail(h)
		o.Workers = 1
		b.drain(o, effects.Drained{Lost: 1})
		if other != (effects.Drained{}) {
			t.Errorf("another drainer had it: %+v", other)
		}
	})
}

// third lets a third of a lease pass once its owner waits for that.
func (b *bench) third() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := b.clock.BlockUntil(ctx, 1); err != nil {
		b.t.Error(err)
	}
	b.clock.Advance(lease / 3)
}

// renewal lets a third of the lease pass and waits until the lease was renewed.
func (b *bench) renewal() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Minute)
	defer cancel()
	b.third()
	want := b.clock.Now().Add(lease).UnixMilli()
	for {
		var n int
		err := b.db.QueryRowContext(ctx, fmt.Sprintf("SELECT (SELECT count(*) FROM retrylens_outbox WHERE due_ms = %d) + (SELECT count(*) FROM retrylens_calls WHERE due_ms = %d)", want, want)).Scan(&n)
		if err != nil {
			b.t.Fatal(err)
		}
		if n == 1 {
			return
		}
	}
}

// TestLeaseThatCannotBeRenewed: the action is told to end before its lease does.
func TestLeaseThatCannotBeRenewed(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.mustEnqueue("k")
		broken, err := b.source.open()
		if err != nil {
			t.Fatal(err)
		}
		s, err := effects.New(effects.Options{DB: broken, Dialect: b.source.Dialect, Clock: b.clock, Lease: lease})
		if err != nil {
			t.Fatal(err)
		}
		o := mail(effects.Handler{Retry: effects.Keyed, Dispatch: func(ctx context.Context, _ effects.Message) error {
			_ = broken.Close()
			began := b.clock.Now()
			wait, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			for ctx.Err() == nil {
				if err := b.clock.BlockUntil(ctx, 1); err == nil {
					b.clock.Advance(lease / 3)
				}
				if wait.Err() != nil {
					return wait.Err()
				}
			}
			wantError(t, context.Cause(ctx), effects.ErrLeaseLost)
			if took := b.clock.Now().Sub(began); took >= lease {
				t.Errorf("told after %v of %v", took, lease)
			}
			return nil
		}})
		o.Workers = 1
		if _, err := s.Drain(t.Context(), o); err == nil {
			t.Error("a database that is closed is no error")
		}
	})
}

func TestDrainersShareTheWork(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		const n = 60
		for i := range n {
			b.mustEnqueue(fmt.Sprint("k", i))
		}
		var mu sync.Mutex
		under, sent := map[string]bool{}, map[string]int{}
		o := mail(effects.Handler{Retry: effects.Keyed, Dispatch: func(ctx context.Context, m effects.Message) error {
			mu.Lock()
			if under[m.Key] {
				t.Errorf("two dispatches of %s at once", m.Key)
			}
			under[m.Key] = true
			sent[m.Key]++
			mu.Unlock()
			if o := op.From(ctx).Operation(); o.Key != m.Key || o.Name != "mail" {
				t.Errorf("operation %+v", o)
			}
			mu.Lock()
			defer mu.Unlock()
			under[m.Key] = false
			return nil
		}})
		o.Workers = 8
		total := 0
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				d, err := b.another(effects.Options{}).Drain(t.Context(), o)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				total += d.Dispatched
			})
		}
		wg.Wait()
		if total != n || len(sent) != n {
			t.Errorf("%d dispatches of %d messages, want %d of each once", total, len(sent), n)
		}
	})
}

func TestDrainEndsWithItsContext(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.mustEnqueue("a", "b", "c")
		ctx, cancel := context.WithCancel(t.Context())
		o := mail(effects.Handler{Retry: effects.Repeatable, Dispatch: func(context.Context, effects.Message) error {
			cancel()
			return nil
		}})
		o.Workers = 1
		d, err := b.Drain(ctx, o)
		wantError(t, err, context.Canceled)
		if d.Dispatched != 1 || b.stats().Done != 1 {
			t.Errorf("%+v: what was taken is written down though the caller has left", d)
		}
	})
}

func TestDrainRefuses(t *testing.T) {
	b := newBench(t, source{effects.SQLite, sqliteDSN(t.TempDir() + "/test.db")})
	ok := (&mailbox{}).handler()
	for name, c := range map[string]struct {
		change func(o *effects.DrainOptions, h *effects.Handler)
		want   string
	}{
		"no permission":     {func(_ *effects.DrainOptions, h *effects.Handler) { h.Retry = 0 }, "no fitting retry permission"},
		"never":             {func(_ *effects.DrainOptions, h *effects.Handler) { h.Retry = effects.Never }, "see Do"},
		"in transaction":    {func(_ *effects.DrainOptions, h *effects.Handler) { h.Retry = effects.InTransaction }, "see Do"},
		"no dispatch":       {func(_ *effects.DrainOptions, h *effects.Handler) { h.Dispatch = nil }, "needs a Dispatch"},
		"negative timeout":  {func(_ *effects.DrainOptions, h *effects.Handler) { h.Timeout = -1 }, "Timeout"},
		"negative workers":  {func(o *effects.DrainOptions, _ *effects.Handler) { o.Workers = -1 }, "Workers"},
		"no handlers":       {func(o *effects.DrainOptions, _ *effects.Handler) { o.Handlers = nil }, "Handlers is empty"},
		"negative attempts": {func(o *effects.DrainOptions, _ *effects.Handler) { o.MaxAttempts = -1 }, "MaxAttempts"},
	} {
		t.Run(name, func(t *testing.T) {
			h := ok
			o := effects.DrainOptions{Handlers: map[string]effects.Handler{}}
			c.change(&o, &h)
			if o.Handlers != nil {
				o.Handlers["mail"] = h
			}
			if _, err := b.Drain(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestLeaseThatEndedBeforeTheAction: a process that stood still between taking a lease and
// acting under it does not act: another one has gone on.
func TestLeaseThatEndedBeforeTheAction(t *testing.T) {
	defer effects.SetGap(func(string) {})
	// still has the process stand still at the gap while another does all that is due.
	still := func(b *bench, gap string, another func(*effects.Store)) {
		effects.SetGap(func(name string) {
			if name == gap {
				effects.SetGap(func(string) {})
				b.clock.Advance(lease + time.Minute)
				another(b.another(effects.Options{}))
			}
		})
	}
	onBench(t, func(t *testing.T, b *bench) {
		b.mustEnqueue("k")
		box := &mailbox{}
		still(b, "drain.claimed", func(s *effects.Store) {
			if got, err := s.Drain(t.Context(), mail(box.handler())); err != nil || got.Dispatched != 1 {
				t.Errorf("%+v, %v", got, err)
			}
		})
		o := mail(effects.Handler{Retry: effects.Keyed, Dispatch: func(context.Context, effects.Message) error {
			t.Error("dispatched by two")
			return nil
		}})
		o.Workers = 1
		b.drain(o, effects.Drained{Lost: 1})
	})
	for _, may := range []effects.Permission{effects.Keyed, effects.AfterLookup, effects.Never} {
		t.Run(may.String(), func(t *testing.T) {
			onBench(t, func(t *testing.T, b *bench) {
				k := &bank{}
				tool := k.tool(may)
				if may == effects.Never {
					tool = k.compensable()
				}
				still(b, "call.pending", func(s *effects.Store) {
					if _, err := s.Do(t.Context(), tool, "k", []byte(`{"amount":5}`)); err != nil {
						t.Error(err)
					}
				})
				_, err := b.do(tool)
				wantError(t, err, effects.ErrInFlight)
				wantError(t, err, effects.ErrLeaseLost)
				if res, err := b.do(tool); err != nil || !res.Replayed || len(k.keys) != 1 {
					t.Errorf("%d calls, %+v, %v", len(k.keys), res, err)
				}
			})
		})
	}
	for _, gap := range []string{"again.taken", "reconcile.claimed"} {
		t.Run(gap, func(t *testing.T) {
			onBench(t, func(t *testing.T, b *bench) {
				k := &bank{}
				tool := k.compensable()
				b.pend(k, tool, true)
				b.clock.Advance(time.Minute)
				still(b, gap, func(s *effects.Store) {
					if _, err := s.Do(t.Context(), tool, "k", []byte(`{"amount":5}`)); err != nil {
						t.Error(err)
					}
				})
				if gap == "again.taken" {
					_, err := b.do(tool)
					wantError(t, err, effects.ErrLeaseLost)
				} else if _, err := b.Reconcile(t.Context(), effects.ReconcileOptions{Tools: []effects.Tool{tool}}); err != nil {
					t.Error(err)
				}
				if len(k.undone) != 1 || len(k.keys) != 2 {
					t.Errorf("undone %q, called %q", k.undone, k.keys)
				}
			})
		})
	}
}
