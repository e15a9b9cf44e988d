package classify

import (
	"strings"

	"github.com/retrylens/retrylens"
)

// classRule is one line of the class table.
type classRule struct{ retryable, needsKey bool }

// ruleOf is the class table of docs/classification.md; a class that is not in it is
// not retryable.
func ruleOf(c retrylens.ErrorClass) classRule {
	switch c {
	case retrylens.ClassRateLimited, retrylens.ClassOverloaded, retrylens.ClassTransportPresend:
		return classRule{retryable: true}
	case retrylens.ClassServerError, retrylens.ClassBadGateway, retrylens.ClassUnavailable,
		retrylens.ClassGatewayTimeout, retrylens.ClassTimeout, retrylens.ClassTransportUnknown:
		return classRule{retryable: true, needsKey: true}
	}
	return classRule{}
}

// verdict turns a finding into the answer: class table, conditions, wait, override.
func (a *analysis) verdict(d finding) Verdict {
	f := a.f
	rule := ruleOf(d.class)
	v := Verdict{
		Class:     d.class,
		Retryable: rule.retryable && d.flags&flagPermanent == 0 || d.flags&flagRetry != 0,
		PreSend:   d.flags&flagPreSend != 0,
		Reason:    d.reason,
	}
	v.NeedsKey = v.Retryable && (rule.needsKey || d.flags&flagKey != 0)
	v.Asked = a.asked(d.class)
	switch d.class {
	case retrylens.ClassRateLimited:
		if why := a.wall(v.Asked); why != "" {
			v.Class, v.Retryable, v.Reason = retrylens.ClassQuotaExhausted, false, why
		}
	case retrylens.ClassOverloaded:
		// A refusal for load did nothing, but a plain 5xx cannot prove that it was one.
		v.NeedsKey = v.Retryable && f.Status >= 500 && f.Status != 529
	case retrylens.ClassConflict:
		v.Retryable = a.lock || f.Status == 409 && v.Asked.Set
	}
	if retry, ok := a.shouldRetry(); ok && f.Status > 0 && overridable(d.class) {
		if retry && !v.Retryable {
			v.Reason = "provider says x-should-retry: true"
		}
		if !retry && v.Retryable {
			v.Reason = "provider says x-should-retry: false"
		}
		v.NeedsKey = v.NeedsKey && retry
		v.Retryable = retry
	}
	if v.Retryable {
		v.RetryAfter = v.Asked
	}
	v.ProviderErrorType = a.errorType()
	if f.Status == 500 {
		v.identity = a.identity()
	}
	return v
}

// overridable: a stream whose content was delivered is never replayed, and a caller
// that left wants nothing, whatever the provider says.
func overridable(c retrylens.ErrorClass) bool {
	return c != retrylens.ClassStreamInterrupted && c != retrylens.ClassCancelled
}

func (a *analysis) shouldRetry() (retry, ok bool) {
	h := header(a.f.Header, "X-Should-Retry")
	if h == "" {
		return false, false
	}
	h = strings.TrimSpace(h)
	switch {
	case strings.EqualFold(h, "true"):
		return true, true
	case strings.EqualFold(h, "false"):
		return false, true
	}
	return false, false
}

// statusFinding is rule 4; a status below 400 says nothing.
func statusFinding(status int) finding {
	if status < 400 || status > 999 {
		return finding{}
	}
	return finding{class: statusClass(status), reason: statusReason(status)}
}

func statusClass(status int) retrylens.ErrorClass {
	switch status {
	case 401:
		return retrylens.ClassAuth
	case 402: // Payment Required
		return retrylens.ClassQuotaExhausted
	case 403:
		return retrylens.ClassPermission
	case 404:
		return retrylens.ClassNotFound
	case 408:
		return retrylens.ClassTimeout
	case 409:
		return retrylens.ClassConflict
	case 413:
		return retrylens.ClassPayloadTooLarge
	case 429:
		return retrylens.ClassRateLimited
	case 502:
		return retrylens.ClassBadGateway
	case 503:
		return retrylens.ClassUnavailable
	case 504, 524:
		return retrylens.ClassGatewayTimeout
	case 529:
		return retrylens.ClassOverloaded
	}
	if status >= 500 {
		return retrylens.ClassServerError
	}
	return retrylens.ClassInvalidRequest
}

// statusReasons spares an allocation per verdict.
var statusReasons = func() (out [600]string) {
	for i := 400; i < 600; i++ {
		out[i] = "HTTP status " + string([]byte{byte('0' + i/100), byte('0' + i/10%10), byte('0' + i%10)})
	}
	return out
}()

func statusReason(status int) string {
	if status < len(statusReasons) {
		return statusReasons[status]
	}
	return "HTTP status above 599"
}
