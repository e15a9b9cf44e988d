package retry_test

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/classify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// manual is a simulator's clock: it tells the time and nothing else.
type manual struct{ t time.Time }

func (m *manual) Now() time.Time          { return m.t }
func (m *manual) advance(d time.Duration) { m.t = m.t.Add(d) }

// seen is a decision as its observer saw it.
type seen struct {
	at retry.Attempt
	d  retry.Decision
}

// log is an observer.
type log struct {
	mu  sync.Mutex
	all []seen
}

func (l *log) Observe(_ *retry.Op, at retry.Attempt, d retry.Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, seen{at, d})
}

func (l *log) events() []seen {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]seen(nil), l.all...)
}

// world is an engine on a manual clock, with a log.
type world struct {
	*manual
	*log
	e *retry.Engine
}

func newWorld(t testing.TB, set func(*retry.Options)) *world {
	t.Helper()
	w := &world{manual: &manual{start}, log: &log{}}
	o := retry.Options{Clock: w.manual, Observer: w.log, Rand: rand.NewPCG(1, 2)}
	if set != nil {
		set(&o)
	}
	e, err := retry.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.e = e
	return w
}

// send starts the run's next attempt and ends it with res after d.
func (w *world) send(t testing.TB, r *retry.Run, d time.Duration, res retry.Result) retry.Decision {
	t.Helper()
	_, dec := r.Start(nil)
	if !dec.Send {
		t.Fatalf("not sent: %+v", dec)
	}
	w.advance(d)
	return r.Next(res)
}

// drive runs op to its end in virtual time, each try taking d.
func (w *world) drive(op retry.Op, d time.Duration, try func(at retry.Attempt) retry.Result) retry.Decision {
	r := w.e.Begin(op)
	for {
		at, dec := r.Start(nil)
		if dec.Send {
			res := try(at)
			w.advance(d)
			dec = r.Next(res)
		}
		if !dec.Retry {
			return dec
		}
		w.advance(dec.Delay)
	}
}

var ok = retry.Result{Delivered: true}

var classifier = classify.New()

// status is the classified answer of a provider.
func status(code int, body string, header ...string) retry.Result {
	f := classify.Failure{Provider: "openai", Status: code, Body: []byte(body), Header: http.Header{}, Now: start}
	for i := 0; i < len(header); i += 2 {
		f.Header.Set(header[i], header[i+1])
	}
	return retry.Result{Verdict: classifier.Classify(&f)}
}

// class is a failure of that class, retryable by the class table.
func class(c retrylens.ErrorClass) retry.Result {
	v := classify.Verdict{Class: c, Reason: string(c)}
	switch c {
	case retrylens.ClassTransportPresend:
		v.Retryable, v.PreSend = true, true
	case retrylens.ClassRateLimited, retrylens.ClassOverloaded:
		v.Retryable = true
	case retrylens.ClassServerError, retrylens.ClassBadGateway, retrylens.ClassUnavailable,
		retrylens.ClassGatewayTimeout, retrylens.ClassTimeout, retrylens.ClassTransportUnknown:
		v.Retryable, v.NeedsKey = true, true
	}
	return retry.Result{Verdict: v}
}

// asking is a rate limit that asks for a wait.
func asking(d time.Duration) retry.Result {
	res := class(retrylens.ClassRateLimited)
	res.Verdict.RetryAfter = retrylens.Some(d)
	res.Verdict.Asked = retrylens.Some(d)
	return res
}

func keyed() retry.Op   { return retry.Op{Provider: "openai", Keyed: true} }
func unkeyed() retry.Op { return retry.Op{Provider: "openai"} }

func policy(set func(*retry.Policy)) *retry.Policy {
	p := retry.Interactive()
	if set != nil {
		set(&p)
	}
	return &p
}

func limits(set func(*retry.Limits)) *retry.Limits {
	l := retry.DefaultLimits()
	set(&l)
	return &l
}
