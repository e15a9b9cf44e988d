package engine

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b := backoff{min: 100 * time.Millisecond, max: time.Second}
	for i, want := range []time.Duration{0, 100, 200, 400, 800, 1000, 1000} {
		want *= time.Millisecond
		if got := b.next(now); got != want {
			t.Errorf("start %d: wait %v, want %v", i, got, want)
		}
		now = now.Add(want)
		b.started(now)
	}
	if got := b.next(now.Add(400 * time.Millisecond)); got != 600*time.Millisecond {
		t.Errorf("time that has passed is not counted: wait %v, want 600ms", got)
	}
	if got := b.next(now.Add(calm)); got != 0 {
		t.Errorf("at the edge of calm: wait %v, want 0: it is over already", got)
	}
	b.next(now.Add(calm + 1))
	if b.starts != 0 {
		t.Errorf("an engine that lived longer than calm still counts: %d starts", b.starts)
	}
}

func TestBackoffOfManyStartsDoesNotOverflow(t *testing.T) {
	b := backoff{min: time.Second, max: time.Hour, starts: 500, lastAt: time.Now()}
	if got := b.next(b.lastAt); got != time.Hour {
		t.Errorf("wait %v, want the maximum", got)
	}
}
