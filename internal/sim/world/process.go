package world

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry"
)

// operationsPerProcess is how many operations a minute one process serves: small
// workers, each with a retry budget of its own.
const operationsPerProcess = 4

// maxProcesses of one workload.
const maxProcesses = 256

// process is one start of a program: an engine, an emitter and its numbers.
type process struct {
	engine   *retry.Engine
	emitter  string
	service  string
	seq      int64
	buffer   []retrylens.Attempt // what could not be sent during an outage of the sink
	inOutage *sinkOutage         // that buffer belongs to
}

// pool is the processes that share a workload.
type pool struct {
	run       *run
	service   string
	limits    retry.Limits
	processes []*process
}

func newPool(r *run, service string, limits retry.Limits, n int) (*pool, error) {
	p := &pool{run: r, service: service, limits: limits, processes: make([]*process, n)}
	return p, p.start()
}

// processesFor a rate.
func processesFor(n int, perMinute float64) int {
	if n == 0 {
		n = int(perMinute/operationsPerProcess) + 1
	}
	return min(max(n, 1), maxProcesses)
}

// start all of them anew.
func (p *pool) start() error {
	for i := range p.processes {
		one, err := p.run.newProcess(p.service, &p.limits)
		if err != nil {
			return err
		}
		p.processes[i] = one
	}
	return nil
}

func (p *pool) any(r *rand.Rand) *process { return p.processes[r.IntN(len(p.processes))] }

// newProcess starts one. Its emitter's name is given once.
func (r *run) newProcess(service string, limits *retry.Limits) (*process, error) {
	r.started++
	engine, err := retry.New(retry.Options{Limits: limits, Clock: r, Rand: rand.NewPCG(r.world.Seed, streamEngines+uint64(r.started))})
	name := service + "-" + strconv.Itoa(r.started) + "-" + strconv.FormatInt(r.Now().Unix(), 36)
	return &process{engine: engine, emitter: name, service: service}, err
}

// sinkOutage is one on its way.
type sinkOutage struct {
	*SinkOutage
	run     *run
	holding []*process // in the order in which they began to
}

// Fire as in des.Handler: the outage is over, what was kept is sent.
func (s *sinkOutage) Fire(int) {
	for _, p := range s.holding {
		for i := range p.buffer {
			s.run.handOut(&p.buffer[i])
		}
		p.buffer, p.inOutage = nil, nil
	}
	s.holding = nil
}

// emit gives a record the emitter's next number and sends, keeps or drops it; false
// if it was dropped.
func (r *run) emit(p *process, a *retrylens.Attempt) bool {
	a.Emitter, a.Seq = p.emitter, retrylens.Some(p.seq)
	p.seq++
	if r.deliver(p, a) {
		return true
	}
	r.stats.Dropped[p.emitter]++
	return false
}

// deliver a numbered record; false if the emitter had no room for it.
func (r *run) deliver(p *process, a *retrylens.Attempt) bool {
	a.Normalize()
	o := r.outage(p.service)
	if o == nil {
		r.handOut(a)
		return true
	}
	if p.inOutage == nil {
		p.inOutage = o
		o.holding = append(o.holding, p)
	}
	if len(p.buffer) >= o.Buffer {
		return false
	}
	p.buffer = append(p.buffer, *a)
	return true
}

// outage of a service's sink now, nil for none.
func (r *run) outage(service string) *sinkOutage {
	for _, o := range r.outages {
		if (o.Service == "" || o.Service == service) && o.Contains(r.events.Now()) {
			return o
		}
	}
	return nil
}

// handOut a record; the first error is kept and ends the run.
func (r *run) handOut(a *retrylens.Attempt) {
	if r.err != nil {
		return
	}
	r.stats.Records++
	r.err = r.out(a)
}

// revision is a record that will be told again once its usage is known.
type revision struct {
	run     *run
	process *process
	record  retrylens.Attempt
}

// reviseAt tells a record again at a time.
func (r *run) reviseAt(at time.Duration, p *process, a *retrylens.Attempt, m *model, q *request, requestID uint64) {
	v := &revision{r, p, *a}
	v.record.Revision++
	v.record.ProviderRequestID = r.requestID(requestID)
	v.record.UsageSource, v.record.CostSource = "", ""
	bill(&v.record, m, q.usage())
	r.events.At(at, v, 0)
}

// Fire as in des.Handler. A revision that an emitter drops is lost; its number is
// that of the record before it, so nothing is missing.
func (v *revision) Fire(int) { v.run.deliver(v.process, &v.record) }
