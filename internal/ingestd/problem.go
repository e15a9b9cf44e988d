package ingestd

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"
)

// problem is an error answer: application/problem+json of RFC 9457. Code is for
// programs, Detail for people.
type problem struct {
	Type          string   `json:"type"`
	Title         string   `json:"title"`
	Status        int      `json:"status"`
	Code          string   `json:"code"`
	Detail        string   `json:"detail,omitempty"`
	Rejected      []reject `json:"rejected,omitempty"`
	RejectedCount int      `json:"rejected_count,omitempty"`

	retryAfter time.Duration
}

// The kinds of problems: one table from code to status.
var problems = map[string]struct {
	status int
	title  string
}{
	"no_good_line":           {http.StatusBadRequest, "No line of the body is a valid record"},
	"unreadable":             {http.StatusBadRequest, "The body cannot be read"},
	"bad_parameter":          {http.StatusBadRequest, "A parameter is wrong"},
	"unauthorized":           {http.StatusUnauthorized, "A valid bearer token is needed"},
	"foreign_tenant":         {http.StatusForbidden, "The token is not for this tenant"},
	"not_found":              {http.StatusNotFound, "There is no such path"},
	"method_not_allowed":     {http.StatusMethodNotAllowed, "The method is not allowed here"},
	"too_slow":               {http.StatusRequestTimeout, "The body came too slowly"},
	"too_large":              {http.StatusRequestEntityTooLarge, "The body is too large"},
	"unsupported_media_type": {http.StatusUnsupportedMediaType, "The media type or encoding is not supported"},
	"rate_limited":           {http.StatusTooManyRequests, "The tenant sends too much"},
	"spool_full":             {http.StatusServiceUnavailable, "The spool is full"},
	"spool_failed":           {http.StatusServiceUnavailable, "The records could not be made durable"},
	"busy":                   {http.StatusServiceUnavailable, "Too many requests are under way"},
	"stopping":               {http.StatusServiceUnavailable, "The service is stopping"},
}

func newProblem(code, detail string) *problem {
	p := problems[code]
	return &problem{Type: "about:blank", Title: p.title, Status: p.status, Code: code, Detail: detail}
}

// after says when to try again.
func (p *problem) after(d time.Duration) *problem {
	p.retryAfter = d
	return p
}

func (p *problem) write(w http.ResponseWriter) {
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64(math.Ceil(p.retryAfter.Seconds())), 10))
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="retrylens"`)
	}
	writeJSON(w, p.Status, "application/problem+json", p)
}

func writeJSON(w http.ResponseWriter, status int, mediaType string, v any) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // the client has gone: nobody is left to tell
}
