package classify

import "github.com/retrylens/retrylens"

// concept is a set of ideas that words stand for. Providers reword their messages
// all the time; the ideas in them stay.
type concept uint64

const (
	cRate concept = 1 << iota
	cLimit
	cRequest
	cToo
	cMany
	cThrottle
	cQuota
	cCredit
	cBilling
	cSpend
	cBudget
	cLack
	cExceed
	cMore
	cMax
	cContext
	cLength
	cSize
	cToken
	cPrompt
	cLong
	cLarge
	cOverload
	cCapacity
	cAccess
	cHigh
	cDemand
	cKey
	cAPI
	cAuthn
	cInvalid
	cExpired
	cFail
	cPermission
	cModel
	cFound
	cNot
	cGone
	cSupport
	cAvailable
	cFilter
	cBlocked
	cContent
	cPolicy
	cViolate
	cSafety
	cHarmful
	cDay
	cMinute
	cTimeout
	cLock
	cActive
	cRun
	cSuspended
	cUsage
	cExtra
	cRegion
	cParam
	cFlight
	cCredential
	cID
	cServer
	cPayload
	cRetry
)

// entry is everything that one word of a message can mean.
type entry struct {
	ideas  concept
	period concept // after "per"
	pair   pairing
	wait   waitWord
}

var lexicon = buildLexicon()

func buildLexicon() *wordMap[entry] {
	m := make(map[string]entry, 768)
	for _, l := range wordLists {
		for _, w := range splitSpace(l.words) {
			e := m[w]
			e.ideas |= l.c
			m[w] = e
		}
	}
	for w, c := range periods {
		e := m[w]
		e.period = c
		m[w] = e
	}
	for w, p := range pairs {
		e := m[w]
		e.pair = p
		m[w] = e
	}
	for w, k := range waitWords {
		e := m[w]
		e.wait = k
		m[w] = e
	}
	return newWordMap(m)
}

var wordLists = []struct {
	c     concept
	words string
}{
	{cRate, "rate rates ratelimit ratelimits ratelimited rps qps tps concurrency"},
	{cLimit, "limit limits limited limiting limiter limitation cap caps ceiling ratelimit ratelimits ratelimited threshold"},
	{cRequest, "request requests call calls queries"},
	{cToo, "too overly"},
	{cMany, "many much often frequent frequently fast quickly"},
	{cThrottle, "throttle throttled throttling throttles"},
	{cQuota, "quota quotas allowance allotment entitlement"},
	{cCredit, "credit credits balance funds prepaid"},
	{cBilling, "billing billed payment payments pay paid invoice invoices unpaid subscription plan plans recharge topup"},
	{cSpend, "spend spending spent expenditure"},
	{cBudget, "budget budgets"},
	{cLack, `insufficient insufficiently enough low depleted exhausted exhaust negative empty no zero afford ran lack lacks lacking
		needs need needed requires require required without outstanding drained minimum`},
	{cExceed, `exceed exceeds exceeded exceeding over above reached hit surpass surpasses surpassed surpassing crossed beyond
		overrun full past overflow overflows overflowed outgrown`},
	{cMore, "more greater larger bigger longer fewer >"},
	{cMax, "max maximum most maximal upto range fit fits"},
	{cContext, "context ctx n_ctx"},
	{cLength, "length window lengths len"},
	{cSize, "size sizes bytes mb megabytes mib kb gb"},
	{cToken, "token tokens"},
	{cPrompt, "prompt prompts input inputs messages conversation query document"},
	{cLong, "long longer lengthy"},
	{cLarge, "large larger big bigger huge"},
	{cOverload, "overload overloaded overloading overloads saturated oversubscribed overwhelmed busy"},
	{cCapacity, "capacity capacities"},
	{cAccess, "access accessible"},
	{cHigh, "high heavy peak heavily unusually increased elevated"},
	{cDemand, "demand traffic load volume"},
	{cKey, "key keys apikey api_key x-api-key"},
	{cAPI, "api apikey api_key x-api-key subscription"},
	{cAuthn, "authentication authenticate authenticated unauthenticated authenticating unauthorized unauthorised login"},
	{cInvalid, "invalid incorrect malformed missing bad valid illegal validation"},
	{cExpired, "expired revoked deactivated leaked disabled rotated expire inactive compromised"},
	{cFail, "failed failure fails unsuccessful provide provided didn't unknown unrecognized unrecognised wrong"},
	{cPermission, `permission permissions scope scopes authorization authorisation authorized authorised privilege privileges entitled`},
	{cModel, "model models deployment deployments entity engine checkpoint endpoint adapter lora"},
	{cFound, "found exist exists"},
	{cNot, `not no cannot can't doesn't isn't don't didn't without never wasn't couldn't unable nor neither doesn isn didn couldn
		aren't wouldn't won't nonexistent`},
	{cGone, "decommissioned deprecated retired sunset discontinued removed nonexistent shutdown"},
	{cSupport, "support supported supports unsupported"},
	{cAvailable, "available unavailable"},
	{cFilter, "filter filtered filters filtering flagged moderation moderated moderator inspection guardrail guardrails screened"},
	{cBlocked, "blocked rejected refused stopped denied forbidden refuses disallowed denies"},
	{cContent, "content text image output response completion"},
	{cPolicy, "policy policies guidelines terms"},
	{cViolate, "violate violates violated violating violation violations breach breaches against"},
	{cSafety, "safety safe"},
	{cHarmful, `inappropriate harmful sensitive risk unsafe offensive abusive explicit nsfw objectionable harm jailbreak unlawful`},
	{cDay, "daily today today's weekly monthly tpd rpd hpd perday permonth"},
	{cMinute, "minute tpm rpm second perminute qpm tps rps qps ipm"},
	{cTimeout, "timeout timeouts timed time-out"},
	{cLock, `lock locked locks concurrent concurrently progress simultaneous simultaneously in_progress locking conflicting
		processed updating`},
	{cActive, "active running"},
	{cRun, "run runs"},
	{cSuspended, "suspended suspension overdue arrears delinquent unpaid inactive frozen blocked deactivated hold"},
	{cUsage, "usage"},
	{cExtra, "extra turned enable enabled"},
	{cRegion, "country region location territory geography countries regions locations"},
	{cParam, `argument arguments parameter parameters field fields json schema validation param properties property`},
	{cFlight, "flight inflight in_flight"},
	{cCredential, "credential credentials oauth bearer jwt"},
	{cID, "id ids identifier identifiers"},
	{cServer, "server servers service services system systems backend cluster database lookup pool crashed"},
	{cPayload, "payload body entity upload"},
	{cRetry, "retry again retrying resubmit"},
}

// textRule is one way to say one thing: every idea of all, one of any (if it is not
// zero), one of also, none of none.
type textRule struct {
	class textClass
	all   concept
	any   concept
	also  concept
	none  concept
}

// textClass is a class that words can tell, as a bit, in the order in which they
// are believed when several are told.
type textClass uint32

const (
	tInFlight textClass = 1 << iota
	tQuota
	tSoftQuota // words of billing that a per-minute limit uses as well
	tExpired   // the credential itself is dead
	tAuth
	tFilter
	tContext
	tPayload
	tNotFound
	tRegion
	tPermission
	tOverload
	tDemand // high demand: an overload unless the code says rate limit
	tRate
	tTimeout
	tConflict
	tInvalid
	textClasses = iota
)

// textVerdicts is indexed by the bit number of a textClass.
var textVerdicts = [textClasses]finding{
	{retrylens.ClassRateLimited, "spending in flight, clears by itself", flagText},
	{retrylens.ClassQuotaExhausted, "words of a quota or billing wall", flagText},
	{retrylens.ClassQuotaExhausted, "words of plan and billing, and no shorter limit named", flagText},
	{retrylens.ClassAuth, "words of a dead credential", flagText},
	{retrylens.ClassAuth, "words of a bad credential", flagText},
	{retrylens.ClassContentFilter, "words of a content filter", flagText},
	{retrylens.ClassContextLength, "words of an input longer than the context", flagText},
	{retrylens.ClassPayloadTooLarge, "words of a request that is too large", flagText},
	{retrylens.ClassNotFound, "words of an unknown model", flagText},
	{retrylens.ClassPermission, "words of a region that is not served", flagText},
	{retrylens.ClassPermission, "words of a missing permission", flagText},
	{retrylens.ClassOverloaded, "words of an overload", flagText},
	{retrylens.ClassOverloaded, "words of high demand", flagText},
	{retrylens.ClassRateLimited, "words of a rate limit", flagText},
	{retrylens.ClassTimeout, "words of a timeout", flagText},
	{retrylens.ClassConflict, "words of a state conflict", flagText},
	{retrylens.ClassInvalidRequest, "words of an invalid request", flagText},
}

var textRules = []textRule{
	{class: tInFlight, all: cFlight, any: cBudget | cSpend | cCredit | cLimit},
	{class: tQuota, all: cCredit, any: cLack | cNot | cSuspended, none: cFlight},
	{class: tQuota, all: cCredit | cLimit | cExceed, none: cRate | cFlight},
	{class: tQuota, all: cBudget, any: cExceed | cLack, none: cFlight},
	{class: tQuota, all: cSpend, any: cLimit | cExceed | cBudget, none: cFlight},
	{class: tQuota, all: cBilling | cSuspended},
	{class: tQuota, all: cBilling | cLimit, any: cExceed, none: cRate | cMinute | cThrottle | cRequest},
	{class: tQuota, all: cBilling | cNot | cActive},
	{class: tQuota, all: cBilling | cExtra, any: cLack | cNot},
	{class: tQuota, all: cUsage | cLimit | cExceed, none: cRate | cMinute},
	{class: tQuota, all: cUsage | cExtra},
	{class: tQuota, all: cKey | cLimit | cExceed, none: cRate | cMinute | cThrottle},
	{class: tQuota, all: cDay, any: cLimit | cQuota | cExceed | cToo | cLack},
	{class: tQuota, all: cQuota | cLack, any: cBilling | cCredit},
	{class: tSoftQuota, all: cQuota | cBilling, any: cExceed | cLack},
	{class: tExpired, all: cExpired, any: cKey | cCredential | cAuthn},
	{class: tExpired, all: cExpired | cToken, none: cContext | cPrompt},
	{class: tAuth, all: cKey | cAPI, any: cInvalid | cFail | cNot | cLack},
	{class: tAuth, all: cCredential, any: cInvalid | cFail | cNot | cLack},
	{class: tAuth, all: cAuthn, any: cInvalid | cFail | cNot | cLack},
	{class: tFilter, all: cContent, any: cFilter | cHarmful},
	{class: tFilter, all: cPrompt, any: cFilter | cHarmful},
	{class: tFilter, all: cContent | cPolicy, any: cViolate | cBlocked | cFilter | cNot},
	{class: tFilter, all: cPolicy | cViolate, any: cUsage | cPrompt | cContent | cRequest | cSafety, none: cRegion | cRate},
	{class: tFilter, all: cSafety, any: cBlocked | cFilter | cViolate},
	{class: tFilter, all: cBlocked | cPrompt, any: cContent | cPolicy | cSafety, none: cRate | cMany | cMinute | cInvalid},
	{class: tFilter, all: cFilter | cViolate},
	{class: tFilter, all: cFilter | cRequest, any: cBlocked | cPolicy},
	{class: tContext, all: cContext, any: cExceed | cLong | cMore | cMax | cLarge | cSize, also: cLength | cToken | cLimit | cSize | cMax},
	{class: tContext, all: cContext | cLength, any: cNot | cExceed | cLong},
	{class: tContext, all: cPrompt | cLong, any: cToo | cLength | cToken | cMax},
	{class: tContext, all: cPrompt | cToken, any: cExceed | cMax | cLong | cLimit | cSupport, none: cRate | cMinute | cDay | cThrottle},
	{class: tContext, all: cPrompt | cToken | cMany},
	{class: tContext, all: cPrompt | cLength, any: cExceed | cMax | cLong, none: cSize},
	{class: tPayload, all: cRequest | cLarge, any: cToo | cMax | cExceed},
	{class: tPayload, all: cPayload, any: cLarge | cExceed, also: cToo | cSize | cMax},
	{class: tPayload, all: cRequest | cSize, any: cExceed | cLarge | cMax},
	{class: tNotFound, all: cModel | cFound | cNot},
	{class: tNotFound, all: cModel | cID | cInvalid, none: cParam},
	{class: tNotFound, all: cModel | cGone},
	{class: tRegion, all: cRegion, any: cNot | cSupport | cBlocked | cBlocked, also: cSupport | cAvailable | cPermission},
	{class: tPermission, all: cPermission, any: cBlocked | cNot | cLack | cInvalid},
	{class: tPermission, all: cAccess | cBlocked},
	{class: tPermission, all: cAccess | cNot | cModel},
	{class: tOverload, all: cOverload},
	{class: tOverload, all: cCapacity, any: cExceed | cNot | cLack | cHigh | cLimit | cServer, none: cContext},
	{class: tDemand, all: cHigh | cDemand},
	{class: tRate, all: cRate | cLimit},
	{class: tRate, all: cThrottle},
	{class: tRate, all: cToo | cMany | cRequest},
	{class: tRate, all: cMinute, any: cLimit | cExceed, also: cLimit | cQuota | cRequest | cToken},
	{class: tRate, all: cQuota | cExceed},
	{class: tTimeout, all: cTimeout},
	{class: tConflict, all: cRun | cActive},
	{class: tConflict, all: cLock, any: cNot | cRequest | cRetry},
	{class: tInvalid, all: cInvalid | cParam},
	{class: tInvalid, all: cParam | cNot | cSupport},
}

// tell returns everything that a message with these ideas says.
func tell(c concept) (t textClass) {
	for i := range textRules {
		r := &textRules[i]
		if c&r.all == r.all && (r.any == 0 || c&r.any != 0) && (r.also == 0 || c&r.also != 0) && c&r.none == 0 {
			t |= r.class
		}
	}
	return t
}

// foreign are the same ideas in Chinese, found as they stand.
var foreign = []struct {
	text string
	t    textClass
}{
	{"余额", tQuota}, {"欠费", tQuota}, {"充值", tQuota}, {"资源包", tQuota}, {"额度", tQuota}, {"配额已用", tQuota},
	{"频率", tRate}, {"限流", tRate}, {"并发", tRate}, {"请求过多", tRate}, {"速率", tRate}, {"访问量过大", tOverload},
	{"过载", tOverload}, {"繁忙", tOverload}, {"负载", tOverload},
	{"敏感", tFilter}, {"违规", tFilter}, {"不合规", tFilter}, {"安全审核", tFilter}, {"不安全", tFilter},
	{"过长", tContext}, {"超长", tContext}, {"上下文", tContext},
	{"模型不存在", tNotFound}, {"不存在的模型", tNotFound}, {"密钥", tAuth}, {"鉴权", tAuth}, {"令牌", tAuth}, {"身份验证", tAuth},
	{"权限", tPermission}, {"超时", tTimeout},
}
