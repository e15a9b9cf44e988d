package clickhouse

import (
	"context"
	"sync"
	"time"
)

// Together returns a context whose reports are made of one look at the store: how far
// rollups are, which buckets they hold and what has arrived is read once for all. It is
// for questions that are asked at once, as those of a page are; after a second they look anew.
func Together(ctx context.Context) context.Context {
	return context.WithValue(ctx, momentKey{}, newMoment())
}

// moment is one look at the store: answers that reports share. It is safe for
// concurrent use.
type moment struct {
	began   time.Time
	lock    sync.Mutex
	answers map[momentQuestion]*momentAnswer
}

type (
	momentKey      struct{}
	momentQuestion struct {
		store *Store
		name  string
	}
)

type momentAnswer struct {
	done  chan struct{}
	value any
	err   error
}

func newMoment() *moment {
	return &moment{began: time.Now(), answers: map[momentQuestion]*momentAnswer{}}
}

// sharedFor is how long a look is shared: what is read from attempts is of later.
const sharedFor = time.Second

// momentOf is the look that the questions of ctx share, or a new one.
func momentOf(ctx context.Context) *moment {
	if m, ok := ctx.Value(momentKey{}).(*moment); ok && time.Since(m.began) < sharedFor {
		return m
	}
	return newMoment()
}

// once asks unless somebody has; who asks meanwhile waits for that answer. An error is
// not kept: it may be that of a caller who went away.
func once[T any](ctx context.Context, m *moment, s *Store, name string, ask func(context.Context) (T, error)) (T, error) {
	question := momentQuestion{s, name}
	for {
		m.lock.Lock()
		a, asked := m.answers[question]
		if !asked {
			a = &momentAnswer{done: make(chan struct{})}
			m.answers[question] = a
		}
		m.lock.Unlock()
		if !asked {
			v, err := ask(ctx)
			if err != nil {
				m.lock.Lock()
				delete(m.answers, question)
				m.lock.Unlock()
			}
			a.value, a.err = v, err
			close(a.done)
			return v, err
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
		if a.err == nil {
			return a.value.(T), nil
		}
	}
}
