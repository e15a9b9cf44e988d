package emit

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/keys"
)

// run is the emitter's goroutine: it waits for a batch, sends it, waits again.
func (e *Emitter) run() {
	defer close(e.done)
	b := batch{taken: make([]*chunk, 0, chunks(e.o.MaxRecords))}
	for closing := false; !closing; {
		closing = e.await()
		for e.take(&b) {
			e.deliver(&b)
		}
		if e.o.Spool != nil {
			e.drain(closing)
		}
	}
}

// await returns when a batch is full, after FlushEvery, or when the emitter is closing.
func (e *Emitter) await() (closing bool) {
	timer := e.clock.NewTimer(e.o.FlushEvery)
	defer timer.Stop()
	for {
		select {
		case <-e.closing:
			return true
		case <-timer.C():
			return false
		case <-e.wake:
		}
		if e.queued.Load() >= int64(e.o.BatchSize) {
			return false
		}
	}
}

// batch is records on their way, encoded.
type batch struct {
	taken []*chunk // what is not yet encoded, from the record at on
	next  int      // of the first chunk
	at    int
	lines []byte
	ends  []int // of each line
}

// take encodes the next batch; false if there is nothing.
func (e *Emitter) take(b *batch) bool {
	if b.next == len(b.taken) {
		e.swap(b)
	}
	b.lines, b.ends = b.lines[:0], b.ends[:0]
	if cap(b.lines) > keepLines {
		b.lines = nil
	}
	n := int64(0)
	for b.next < len(b.taken) && len(b.ends) < e.o.BatchSize && len(b.lines) < maxLines {
		c := b.taken[b.next]
		e.encode(b, &c.records[b.at])
		c.records[b.at] = record{}
		n++
		if b.at++; b.at == c.n {
			e.recycle(c)
			b.next, b.at = b.next+1, 0
		}
	}
	e.queued.Add(-n)
	return n > 0
}

const (
	maxLines  = 16 << 20 // a request holds at most 32 MiB (docs/record.md)
	keepLines = 4 << 20
)

// swap takes the whole queue at once, so that Emit is kept for a moment only.
func (e *Emitter) swap(b *batch) {
	e.mu.Lock()
	e.queue, b.taken = b.taken[:0], e.queue
	e.mu.Unlock()
	b.next, b.at = 0, 0
}

func (e *Emitter) recycle(c *chunk) {
	c.n = 0
	e.mu.Lock()
	if len(e.free) < cap(e.free) {
		e.free = append(e.free, c)
	}
	e.mu.Unlock()
}

func (e *Emitter) encode(b *batch, r *record) {
	if r.late != nil {
		e.bytes.Add(-int64(r.late.Size()))
		r.late.Complete(&r.a)
	}
	a := &r.a
	if a.Tenant == "" {
		a.Tenant = e.o.Tenant
	}
	Fit(a)
	if err := Check(a); err != nil {
		e.refused(1, err)
		return
	}
	b.lines = append(a.AppendJSON(b.lines), '\n')
	b.ends = append(b.ends, len(b.lines))
}

// deliver sends the batch. It returns once the batch is gone: taken or refused by the
// sink, put on disk, or, without a spool, dropped because time ran out.
func (e *Emitter) deliver(b *batch) {
	for n := len(b.ends); n > 0; {
		if e.resting() && e.spool(b.lines, n) {
			return
		}
		err := e.send(b.lines, n)
		switch {
		case err == nil:
			return
		case errors.Is(err, ErrTooLarge) && n > 1:
			e.halves(b)
			return
		case errors.Is(err, ErrTooLarge), errors.Is(err, ErrRefused):
			e.rejected.Add(int64(n))
			return
		case e.o.Spool != nil && e.spool(b.lines, n):
			return
		case !e.pause():
			e.dropped.Add(int64(n))
			return
		}
	}
}

// send gives lines to the sink once.
func (e *Emitter) send(lines []byte, n int) error {
	e.underway.Store(int64(n))
	res, err := e.o.Sink.Send(e.ctx, lines, n)
	e.underway.Store(0)
	if err == nil {
		e.failures, e.retryAt = 0, time.Time{}
		e.sent.Add(int64(n - res.Rejected))
		if res.Rejected > 0 {
			e.refused(res.Rejected, res.Reason)
		}
		return nil
	}
	e.failed(err)
	if !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrRefused) {
		e.failures++
		e.retryAt = e.clock.Now().Add(e.backoff(err))
	}
	return err
}

// backoff after the last failure: at least what the sink asked for, up to a minute.
func (e *Emitter) backoff(err error) time.Duration {
	d := e.o.Backoff(e.failures)
	var asked *RetryAfterError
	if errors.As(err, &asked) {
		d = max(d, min(asked.After, time.Minute))
	}
	return d
}

// resting: with a spool, a sink that failed is left alone for its backoff.
func (e *Emitter) resting() bool {
	return e.o.Spool != nil && e.failures > 0 && e.clock.Now().Before(e.retryAt)
}

// halves delivers a batch that is too large as two.
func (e *Emitter) halves(b *batch) {
	mid := len(b.ends) / 2
	at := b.ends[mid-1]
	second := batch{lines: b.lines[at:], ends: make([]int, 0, len(b.ends)-mid)}
	for _, end := range b.ends[mid:] {
		second.ends = append(second.ends, end-at)
	}
	e.deliver(&batch{lines: b.lines[:at], ends: b.ends[:mid]})
	e.deliver(&second)
}

// pause waits for the end of the backoff; false if the emitter's time is over. Closing
// cuts the wait short: the end of its context is near.
func (e *Emitter) pause() bool {
	closing := e.closing
	wait := e.retryAt.Sub(e.clock.Now())
	select {
	case <-closing:
		closing, wait = nil, min(wait, closingPause)
	default:
	}
	timer := e.clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-closing:
	case <-e.ctx.Done():
	}
	return e.ctx.Err() == nil
}

const closingPause = 250 * time.Millisecond

func (e *Emitter) spool(lines []byte, n int) bool {
	if err := e.o.Spool.put(e.o.Emitter, lines); err != nil {
		e.failed(err)
		return false
	}
	e.spooled.Add(int64(n))
	return true
}

// drain sends what waits on disk, oldest first, until the sink fails or nothing is left.
func (e *Emitter) drain(closing bool) {
	for e.ctx.Err() == nil && (closing || !e.resting()) {
		name, lines, err := e.o.Spool.oldest()
		if err != nil {
			e.failed(err)
		}
		if name == "" {
			return
		}
		n := bytes.Count(lines, []byte("\n"))
		err = e.send(lines, n)
		if errors.Is(err, ErrRefused) || errors.Is(err, ErrTooLarge) {
			e.rejected.Add(int64(n))
		} else if err != nil {
			return
		}
		if err := e.o.Spool.remove(name); err != nil {
			e.failed(err)
			return
		}
	}
}

func (e *Emitter) failed(err error) {
	text := err.Error()
	e.lastErr.Store(&text)
	if e.o.OnError != nil {
		e.o.OnError(err)
	}
}

func (e *Emitter) refused(n int, err error) {
	e.rejected.Add(int64(n))
	e.failed(err)
}

// Check is the record's own rules, the tenant aside, which the ingest token may tell.
func Check(a *retrylens.Attempt) error {
	tenant := a.Tenant
	if tenant == "" {
		a.Tenant = "-"
	}
	err := a.Validate(retrylens.Limits{Now: a.StartedAt})
	a.Tenant = tenant
	if err != nil {
		return err
	}
	return nil
}

// Fit fills in the defaults of a and cuts texts that are too long or hold what a record
// must not hold: a header that a provider sends must not cost the record.
func Fit(a *retrylens.Attempt) {
	for _, t := range []struct {
		text *string
		max  int
	}{
		{&a.Service, 128}, {&a.Environment, 128}, {&a.Operation, 128}, {&a.Model, 128}, {&a.ResponseModel, 128}, {&a.Endpoint, 256},
		{&a.ProviderErrorType, 128}, {&a.ProviderRequestID, 256}, {&a.Reason, 256}, {&a.IdempotencyKey, 255},
	} {
		*t.text = clip(*t.text, t.max)
	}
	if id := clip(a.LogicalID, 256); id != a.LogicalID {
		a.LogicalID = keys.Derive(a.LogicalID) // cut ones might be the same
	}
	a.Provider = clip(strings.ToLower(a.Provider), 64)
	a.Attributes = fitAttributes(a.Attributes)
	a.Normalize()
}

const (
	maxAttributeKey   = 64 // bytes, docs/record.md
	maxAttributeValue = 256
)

// fitAttributes returns all itself if a record may hold it: the caller goes on using the map.
func fitAttributes(all map[string]string) map[string]string {
	fits := len(all) <= retrylens.MaxAttributes
	for k, v := range all {
		fits = fits && k != "" && clip(k, maxAttributeKey) == k && clip(v, maxAttributeValue) == v
	}
	if fits {
		return all
	}
	cut := make(map[string]string, retrylens.MaxAttributes)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		name := clip(k, maxAttributeKey)
		if _, taken := cut[name]; name != "" && !taken && len(cut) < retrylens.MaxAttributes {
			cut[name] = clip(all[k], maxAttributeValue)
		}
	}
	return cut
}

// clip cuts s to limit bytes and takes out control characters and bad UTF-8.
func clip(s string, limit int) string {
	if len(s) <= limit && clean(s) {
		return s
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

func clean(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}
