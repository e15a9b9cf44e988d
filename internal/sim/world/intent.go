package world

import (
	"time"
)

// intent is what one caller wants, however often it is submitted: a logical operation.
type intent struct {
	request
	run       *run
	work      *work
	id        string
	keyText   string        // as sent; "" = unkeyed
	startedAt time.Duration // of the first attempt
	runs      int32         // submissions and deliveries so far
	asked     int32         // requests that a gateway had for it
	delivered bool
}

// Events of an intent.
const (
	resubmit = iota // it is submitted once more
	overdue         // its message is visible again
)

// begin an operation now.
func (r *run) begin(k *work, a Arrival) {
	r.intents++
	r.stats.Operations++
	in := &intent{run: r, work: k, id: r.newID(), startedAt: r.events.Now()}
	in.model, in.prompt, in.completion, in.stream = k.Model, a.PromptTokens, a.CompletionTokens, k.Stream
	if k.Keyed {
		in.key, in.keyText = r.intents, "k-"+in.id
	}
	r.expect(in)
	in.submit()
}

// expect sets what else happens to an operation that begins now.
func (r *run) expect(in *intent) {
	now := r.events.Now()
	for i := range r.world.Resubmissions {
		s := &r.world.Resubmissions[i]
		if !s.Contains(now) || !s.matches(in.work.Workload) || r.rand.Float64() >= s.Share {
			continue
		}
		for range 1 + r.rand.IntN(s.Times) {
			r.events.After(time.Duration(r.rand.Float64()*float64(s.Within)), in, resubmit)
		}
	}
	if q := in.work.Queue; q != nil {
		r.events.After(q.Visibility, in, overdue)
	}
}

// Fire as in des.Handler.
func (in *intent) Fire(what int) {
	if what == resubmit {
		in.submit()
		return
	}
	if q := in.work.Queue; !in.delivered && int(in.runs) < q.MaxDeliveries {
		in.run.events.After(q.Visibility, in, overdue)
		in.submit()
	}
}

// submit has a process make the operation: the first run, or another one that does
// not know of those before but by its number, 100 × the deliveries before it.
func (in *intent) submit() {
	op := in.run.newOperation(in, in.work.pool.any(in.run.rand))
	op.first = 100 * in.runs
	in.runs++
	op.begin(&in.work.Policy)
}

// newID returns a UUIDv7 of the virtual time.
func (r *run) newID() string {
	ms := uint64(r.Now().UnixMilli())
	a, b := r.rand.Uint64(), r.rand.Uint64()
	var out [36]byte
	hex(out[0:8], ms>>16)
	out[8] = '-'
	hex(out[9:13], ms)
	out[13], out[14] = '-', '7'
	hex(out[15:18], a)
	out[18] = '-'
	hex(out[19:23], 0x8000|a>>12&0x3fff)
	out[23] = '-'
	hex(out[24:36], b)
	return string(out[:])
}

// requestID of a provider; 0 = none.
func (r *run) requestID(n uint64) string {
	if n == 0 {
		return ""
	}
	out := [20]byte{'r', 'e', 'q', '_'}
	hex(out[4:], n)
	return string(out[:])
}

// hex fills b with the last digits of v.
func hex(b []byte, v uint64) {
	for i := len(b) - 1; i >= 0; i, v = i-1, v>>4 {
		b[i] = "0123456789abcdef"[v&15]
	}
}
