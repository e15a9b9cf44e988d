package classify

import (
	"bytes"
	"math/bits"

	"github.com/retrylens/retrylens"
)

// analysis gathers what a failure's body and headers say. It is pooled: no slice in
// it outlives Classify.
type analysis struct {
	f     *Failure
	p     *Provider
	body  []byte // decoded
	shape shape
	arena []byte // unescaped strings

	inBand bool // an error stands inside an answer of status 200

	// Errors.
	best       [Exact + 1]Rule   // the best code of each strength
	bestCode   [Exact + 1][]byte // and its spelling
	firstType  []byte            // first type or code seen at all
	bodyStatus int               // 400..599: a status told by the body, the innermost
	textStatus int               // the same in prose
	told       textClass
	server     bool // words of the server's own parts: a service, a backend, a pool
	failing    bool // words of something that failed
	model      bool // words of a model, and of no bill
	nesting    int
	bodyWait   wait
	textWait   wait
	day        bool // an allowance per day or longer
	minute     bool // an allowance per minute
	limitZero  bool
	edge       int  // Cloudflare code
	lock       bool // a conflict that waiting clears

	// Answers of status 200.
	answer
}

const keepArena = 64 << 10

func (a *analysis) reset(f *Failure, p *Provider) {
	a.f, a.p = f, p
}

// release leaves a as new, but for the arena.
func (a *analysis) release() {
	arena := a.arena
	if cap(arena) > keepArena {
		arena = nil
	}
	*a = analysis{arena: arena[:0]}
}

// lookup finds a code or type: the provider's own table first, then the general
// one; of a name with dots or a namespace, the last part as well.
func (a *analysis) lookup(code []byte) (Rule, bool) {
	if i := bytes.LastIndexByte(code, '#'); i >= 0 { // com.amazonaws.x#ThrottlingException
		code = code[i+1:]
	}
	if i := bytes.IndexByte(code, ':'); i > 0 { // ThrottlingException:http://...
		code = code[:i]
	}
	if r, ok := a.spelled(code); ok {
		return r, true
	}
	if i := bytes.LastIndexByte(code, '.'); i >= 0 {
		return a.spelled(code[i+1:])
	}
	return Rule{}, false
}

func (a *analysis) spelled(code []byte) (Rule, bool) {
	var buf [maxCode]byte
	k := squash(buf[:], code)
	if len(k) == 0 {
		return Rule{}, false
	}
	if r, ok := a.p.Codes[string(k)]; ok {
		return r, r.Class != ""
	}
	return codes.get(k)
}

// spoke keeps a code if it is the most telling one of its strength.
func (a *analysis) spoke(r Rule, code []byte) {
	if r.Class == "" {
		return
	}
	if r.Lock {
		a.lock = true
	}
	if best := a.best[r.Strength]; best.Class == "" || rank(r.Class) < rank(best.Class) {
		a.best[r.Strength], a.bestCode[r.Strength] = r, code
	}
}

// ranks order the classes by how much they tell: of two codes in one body the more
// telling one wins, whichever comes first.
var ranks = func() map[retrylens.ErrorClass]int {
	m := make(map[retrylens.ErrorClass]int)
	for i, c := range []retrylens.ErrorClass{
		retrylens.ClassQuotaExhausted, retrylens.ClassContentFilter, retrylens.ClassContextLength, retrylens.ClassAuth,
		retrylens.ClassPayloadTooLarge, retrylens.ClassNotFound, retrylens.ClassPermission, retrylens.ClassRefusal,
		retrylens.ClassOverloaded, retrylens.ClassRateLimited, retrylens.ClassConflict, retrylens.ClassInvalidRequest,
		retrylens.ClassCancelled, retrylens.ClassTimeout, retrylens.ClassGatewayTimeout, retrylens.ClassBadGateway,
		retrylens.ClassUnavailable, retrylens.ClassServerError,
	} {
		m[c] = i
	}
	return m
}()

func rank(c retrylens.ErrorClass) int { return ranks[c] }

// errorType is the code or type to show: the one that decided, else the first.
func (a *analysis) errorType() string {
	for s := Exact; s >= Vague; s-- {
		if len(a.bestCode[s]) > 0 {
			return show(a.bestCode[s])
		}
	}
	return show(a.firstType)
}

const maxType = 128

// show copies a code; control characters and bad UTF-8 have no place in a record.
func show(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > maxType {
		b = b[:maxType]
	}
	if printable(b) {
		return string(b)
	}
	b = bytes.ToValidUTF8(b, nil)
	if bytes.IndexFunc(b, func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 }) >= 0 {
		return ""
	}
	return string(b)
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// inFlight is a budget that clears as soon as calls in flight end.
func (a *analysis) inFlight() bool { return a.told&tInFlight != 0 }

// resolve is rule 3: what the body says, whatever the status; without a body that
// says something it returns nothing and the status decides.
func (a *analysis) resolve() finding {
	f := a.f
	if r, ok := edgeCodes[a.edge]; ok {
		return finding{r.Class, "error page of the edge", flagBody}
	}
	if a.inFlight() && a.best[Exact].Class == "" {
		return textVerdicts[0]
	}
	if r := a.best[Exact]; r.Class != "" {
		return a.exact(r)
	}
	if r := a.best[Firm]; r.Class != "" {
		return a.refine(r)
	}
	if d := a.text(f.Status); d.class != "" {
		return d
	}
	if r, ok := a.p.ModelStatus[f.Status]; ok && a.model {
		return finding{r.Class, "a status of this provider's own meaning", flagBody}
	}
	if r, ok := a.p.Status[f.Status]; ok {
		return finding{r.Class, "a status of this provider's own meaning", flagBody}
	}
	return a.vague(f.Status)
}

// exact takes a code at its word, but an inner code that only says invalid does not
// hide a firm one that says more.
func (a *analysis) exact(r Rule) finding {
	d := finding{r.Class, "the error's own code", flagBody}
	if r.Class == retrylens.ClassQuotaExhausted && a.inFlight() {
		d.class = retrylens.ClassRateLimited
	}
	return d
}

// refinable tells which words may refine which firm code.
func (a *analysis) refinable(c retrylens.ErrorClass) textClass {
	switch c {
	case retrylens.ClassRateLimited:
		t := tInFlight | tQuota | tOverload
		if !a.anyWait() {
			t |= tPayload
		}
		if !a.anyWait() && !a.minute {
			t |= tSoftQuota
		}
		if a.f.Status == 413 {
			t |= tPayload | tContext
		}
		return t
	case retrylens.ClassPermission:
		return tQuota | tExpired | tFilter | tContext
	case retrylens.ClassAuth:
		return tQuota
	case retrylens.ClassUnavailable, retrylens.ClassBadGateway:
		return tOverload | tDemand | tQuota | tContext | tFilter | tNotFound | tRate
	case retrylens.ClassServerError:
		return tOverload | tDemand | tQuota | tContext | tFilter | tNotFound | tRate | tAuth | tPermission
	}
	return 0
}

func (a *analysis) anyWait() bool {
	return a.bodyWait.Set || a.textWait.Set || a.retryAfter().Set
}

func (a *analysis) refine(r Rule) finding {
	if d := first(a.told & a.refinable(r.Class) &^ a.ownFault()); d.class != "" {
		return d
	}
	if s, ok := a.p.Status[a.f.Status]; ok && r.Class == statusClass(a.f.Status) {
		return finding{s.Class, "a status of this provider's own meaning", flagBody}
	}
	return finding{r.Class, "the error's own type", flagBody}
}

// first is the most believed of several things told.
func first(t textClass) finding {
	if t == 0 {
		return finding{}
	}
	return textVerdicts[bits.TrailingZeros32(uint32(t))]
}

const (
	tClient = tInFlight | tQuota | tSoftQuota | tExpired | tAuth | tFilter | tContext | tPayload | tNotFound | tRegion | tPermission
	tLoad   = tOverload | tDemand | tRate
)

// listened tells which words are listened to under a status: a precise status needs
// no words, and words in passing ("try again") are bait.
func (a *analysis) listened(status int) textClass {
	switch {
	case status < 400:
		return tClient | tLoad | tTimeout | tInvalid
	case status == 401:
		return tQuota
	case status == 402:
		return tInFlight | tQuota
	case status == 403:
		return tQuota | tExpired | tAuth | tFilter | tContext | tRegion | tRate
	case status == 404 || status == 408 || status == 409 || status == 504 || status == 524 || status == 529:
		return 0
	case status == 405 || status == 406 || status == 410 || status == 411 || status >= 414 && status <= 417:
		return 0
	case status == 413:
		return tContext
	case status == 429:
		t := tInFlight | tQuota | tFilter | tLoad
		if !a.anyWait() {
			t |= tPayload
		}
		if !a.anyWait() && !a.minute {
			t |= tSoftQuota
		}
		return t
	case status == 500 || status > 504:
		return tClient | tLoad | tTimeout | tInvalid
	case status >= 502:
		return tClient | tLoad
	}
	return tClient | tLoad | tConflict // 400, 422 and the rest of our faults
}

func (a *analysis) text(status int) finding {
	return first(a.told & a.listened(status) &^ a.ownFault())
}

// ownFault are words that are not believed of a 5xx in which the server speaks of parts of
// its own: "the content filter service is unavailable" is no filtered content. That an
// input is too long is believed all the same.
func (a *analysis) ownFault() (t textClass) {
	if a.f.Status < 500 {
		return 0
	}
	t = tRegion // of a server that has a fault, not of a caller's place
	if a.server {
		t |= tExpired | tAuth | tFilter | tNotFound | tRate | tInvalid
	}
	if a.failing {
		t |= tQuota | tSoftQuota
	}
	return t
}

// vague is what is left: a family name, or a status told by the body.
func (a *analysis) vague(status int) finding {
	inner := a.bodyStatus
	if inner == 0 && (status < 400 || status >= 500) && a.textStatus != status {
		inner = a.textStatus
	}
	if inner != 0 && inner != status && !precise(status) {
		d := statusFinding(inner)
		d.reason, d.flags = "a status told by the body", flagBody
		return d
	}
	r := a.best[Vague]
	switch {
	case r.Class == "" && a.inBand && status < 400:
		return finding{retrylens.ClassServerError, "an error event that names nothing", flagBody}
	case r.Class == "":
		return finding{}
	case r.Class == retrylens.ClassServerError && (status < 400 || status == 429 || status == 400 || status == 500):
		return finding{r.Class, "the error's own type", flagBody}
	case r.Class == retrylens.ClassInvalidRequest && (status < 400 || status == 400 || status >= 500):
		return finding{r.Class, "the error's own type is a fault of the request", flagBody}
	}
	return finding{}
}

// precise statuses say more than a number that the body repeats.
func precise(status int) bool {
	return status == 401 || status == 402 || status == 413
}
