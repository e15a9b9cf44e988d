package ingestd

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/ingest"
	"github.com/retrylens/retrylens/internal/ingestd/tokens"
	"github.com/retrylens/retrylens/internal/spool"
	"github.com/retrylens/retrylens/internal/wire"
)

const (
	maxShownRejects = 100
	baseMemory      = 192 << 10 // of a request: buffers of the splitter, the first chunk of the batch
	foreignTenant   = "the token is not for this tenant"
)

// reject is a refused line in an answer.
type reject struct {
	Line  int    `json:"line"`
	Field string `json:"field"`
	Error string `json:"error"`
}

// accepted is the answer to a body of which something was kept.
type accepted struct {
	Accepted      int      `json:"accepted"`
	Rejected      []reject `json:"rejected"`
	RejectedCount int      `json:"rejected_count"`
}

// post is one body on its way.
type post struct {
	h         *Handler
	who       tokens.Principal
	limits    retrylens.Limits
	memory    lease
	fixed     int64 // of memory: what the body needs whatever it holds
	batch     spool.Batch
	attempt   retrylens.Attempt
	decoder   *wire.Decoder
	lines     int
	rejects   []reject
	rejected  int
	foreign   int
	byKind    map[string]int
	byTenant  map[string]*usage
	lastUsage *usage
	last      string
}

// decoders are kept: they know the texts that come again.
var decoders = sync.Pool{New: func() any { return new(wire.Decoder) }}

// postAttempts takes a body of records: POST /v1/attempts.
func (h *Handler) postAttempts(w http.ResponseWriter, r *http.Request) {
	p := &post{h: h, memory: lease{b: h.budget}}
	answer, problem := p.take(w, r)
	h.o.Metrics.reject(p.byKind)
	if problem != nil {
		h.o.Metrics.requests.WithLabelValues(problem.Code).Inc()
		h.logProblem(r, problem)
		problem.write(w)
		return
	}
	h.o.Metrics.requests.WithLabelValues("accepted").Inc()
	h.o.Metrics.accepted.Add(float64(answer.Accepted))
	writeJSON(w, http.StatusAccepted, "application/json", answer)
}

// logProblem never logs what a sender wrote: neither token nor body.
func (h *Handler) logProblem(r *http.Request, p *problem) {
	level := h.o.Logger.Debug
	if p.Code == "spool_failed" {
		level = h.o.Logger.Error
	}
	level("refused a body", "code", p.Code, "status", p.Status, "from", r.RemoteAddr, "rejected", p.RejectedCount)
}

// take does everything but answer.
func (p *post) take(w http.ResponseWriter, r *http.Request) (*accepted, *problem) {
	array, problem := p.admit(r)
	if problem != nil {
		return nil, problem
	}
	slot := lease{b: p.h.slots, token: p.memory.token}
	if !slot.hold(1) {
		return nil, newProblem("busy", "").after(retrySoon)
	}
	defer slot.release()
	defer p.memory.release()
	defer p.batch.Reset()
	if problem := p.read(w, r, array); problem != nil {
		return nil, problem
	}
	if p.batch.Rows() == 0 {
		return nil, p.nothingGood()
	}
	if wait := p.h.limiter.take(time.Now(), p.byTenant); wait > 0 {
		return nil, newProblem("rate_limited", "nothing of the body was kept").after(wait)
	}
	if err := p.h.o.Spool.Append(&p.batch); err != nil {
		return nil, p.spoolProblem(err)
	}
	return &accepted{Accepted: p.batch.Rows(), Rejected: append([]reject{}, p.rejects...), RejectedCount: p.rejected}, nil
}

// admit looks at everything before the body, so that none is asked for in vain.
func (p *post) admit(r *http.Request) (document bool, _ *problem) {
	if p.h.stopping.Load() {
		return false, newProblem("stopping", "").after(retrySoon)
	}
	var ok bool
	p.memory.token = bearer(r)
	if p.who, ok = p.h.o.Authenticate(p.memory.token); !ok {
		return false, newProblem("unauthorized", "")
	}
	document, problem := mediaType(r)
	switch {
	case problem != nil:
		return false, problem
	case r.ContentLength > p.h.o.MaxBodyBytes:
		return false, newProblem("too_large", fmt.Sprintf("at most %d bytes", p.h.o.MaxBodyBytes))
	case p.h.o.Spool.Full():
		return false, newProblem("spool_full", "").after(retryLater)
	}
	if p.who.Default != "" {
		if wait := p.h.limiter.wait(time.Now(), p.who.Default); wait > 0 {
			return false, newProblem("rate_limited", "").after(wait)
		}
	}
	return document, nil
}

// bearer is the token of a request, "" without one or with several.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(only(r, "Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// mediaType tells whether the body is one JSON text.
func mediaType(r *http.Request) (document bool, _ *problem) {
	switch contentEncoding(r) {
	case "", "identity", "gzip", "zstd":
	default:
		return false, newProblem("unsupported_media_type", "Content-Encoding must be gzip or zstd, or missing")
	}
	media, params, err := mime.ParseMediaType(only(r, "Content-Type"))
	charset, given := params["charset"]
	if err == nil && (!given || strings.EqualFold(charset, "utf-8")) {
		switch media {
		case "application/x-ndjson":
			return false, nil
		case "application/json":
			return true, nil
		}
	}
	return false, newProblem("unsupported_media_type", "Content-Type must be application/x-ndjson or application/json, in UTF-8")
}

// only is a field that may be given once, "" without it or with several.
func only(r *http.Request, field string) string {
	if values := r.Header.Values(field); len(values) == 1 {
		return values[0]
	}
	return ""
}

// contentEncoding is the whole list, so that several are never taken for one.
func contentEncoding(r *http.Request) string {
	return strings.ToLower(strings.TrimSpace(strings.Join(r.Header.Values("Content-Encoding"), ",")))
}

// read decodes the body into the batch.
func (p *post) read(w http.ResponseWriter, r *http.Request, document bool) *problem {
	if !p.memory.hold(baseMemory) {
		return newProblem("busy", "").after(retrySoon)
	}
	wired := &wireReader{
		r: r.Body, control: http.NewResponseController(w), began: time.Now(), pace: p.h.o.Pace, limit: p.h.o.MaxBodyBytes,
	}
	plain, done, err := p.h.decompressor.open(wired, contentEncoding(r), r.ContentLength, &p.memory)
	if err != nil {
		return bodyProblem(err, wired)
	}
	defer done()
	p.fixed = p.memory.held
	if !p.memory.hold(p.fixed + expected(r)) {
		return newProblem("busy", "").after(retrySoon)
	}
	body := &plainReader{r: plain, n: p.h.o.MaxBodyBytes}
	p.limits = p.h.o.Limits()
	p.decoder = decoders.Get().(*wire.Decoder)
	defer decoders.Put(p.decoder)
	if document {
		return p.readAll(newDocument(body), wired)
	}
	return p.readAll(newNDJSON(body), wired)
}

// expected is about what the records of a body will take, 0 when its length is not
// known. It is held from the beginning: when memory is short some large bodies are
// taken as a whole then, instead of all being refused in their middle.
func expected(r *http.Request) int64 {
	const packed = 3 // how much smaller records are in a batch; compressed bodies about as small as that
	switch size := max(0, r.ContentLength); contentEncoding(r) {
	case "", "identity":
		return size / packed
	default:
		return size
	}
}

func (p *post) readAll(records splitter, wired *wireReader) *problem {
	for {
		record, number, reason, err := records.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return bodyProblem(err, wired)
		}
		if p.lines++; p.lines > p.h.o.MaxLines {
			return bodyProblem(errTooManyLines, wired)
		}
		if reason != "" {
			p.reject(number, "", reason)
			continue
		}
		p.add(record, number)
		if !p.memory.hold(p.fixed + p.batch.Held()) {
			return newProblem("busy", "nothing of the body was kept").after(retrySoon)
		}
	}
}

// add decodes one record and keeps it, or the reason why not.
func (p *post) add(record []byte, number int) {
	a := &p.attempt
	if err := p.decoder.Decode(record, a); err != nil {
		var fe *retrylens.FieldError
		if !errors.As(err, &fe) {
			fe = &retrylens.FieldError{Reason: err.Error()}
		}
		p.reject(number, fe.Field, fe.Reason)
		return
	}
	if a.Tenant == "" {
		a.Tenant = p.who.Default
	} else if !p.who.May(a.Tenant) {
		p.foreign++
		p.reject(number, "tenant", foreignTenant)
		return
	}
	a.Normalize()
	if fe := a.Validate(p.limits); fe != nil {
		p.reject(number, fe.Field, fe.Reason)
		return
	}
	p.batch.Add(a)
	p.charge(a.Tenant, len(record))
}

func (p *post) charge(tenant string, bytes int) {
	if p.h.limiter.off() {
		return
	}
	if p.lastUsage == nil || p.last != tenant {
		if p.byTenant == nil {
			p.byTenant = map[string]*usage{}
		}
		if p.byTenant[tenant] == nil {
			p.byTenant[tenant] = &usage{}
		}
		p.last, p.lastUsage = tenant, p.byTenant[tenant]
	}
	p.lastUsage.records++
	p.lastUsage.bytes += bytes
}

func (p *post) reject(number int, field, reason string) {
	if p.rejected++; len(p.rejects) < maxShownRejects {
		p.rejects = append(p.rejects, reject{number, field, reason})
	}
	if p.byKind == nil {
		p.byKind = map[string]int{}
	}
	p.byKind[ingest.Reject{Field: field, Reason: reason}.Kind()]++
}

// nothingGood is the answer to a body of which nothing was kept: 403 when every
// line is of a tenant that the token is not for.
func (p *post) nothingGood() *problem {
	code := "no_good_line"
	if p.foreign > 0 && p.foreign == p.rejected {
		code = "foreign_tenant"
	}
	problem := newProblem(code, "")
	if p.lines == 0 {
		problem.Detail = "the body is empty"
	}
	problem.Rejected, problem.RejectedCount = p.rejects, p.rejected
	return problem
}

func (p *post) spoolProblem(err error) *problem {
	switch {
	case errors.Is(err, spool.ErrTooLarge):
		return newProblem("too_large", "it is more than the whole spool holds: send less at once; nothing of it was kept")
	case errors.Is(err, spool.ErrFull):
		return newProblem("spool_full", "nothing of the body was kept").after(retryLater)
	case errors.Is(err, spool.ErrClosed):
		return newProblem("stopping", "").after(retrySoon)
	}
	return newProblem("spool_failed", "send the body again").after(retrySoon)
}
