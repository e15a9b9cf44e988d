package emit_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens/retry/emit"
)

// answers is an http.RoundTripper that gives one answer.
type answers struct {
	status     int
	retryAfter string
	body       string
}

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return &http.Response{StatusCode: a.status, Status: http.StatusText(a.status), Header: http.Header{"Retry-After": {a.retryAfter}},
		Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

// FuzzAnswer: whatever answers in the ingest service's place, a batch is taken, refused or
// to be sent again, with counts that can be.
func FuzzAnswer(f *testing.F) {
	for _, a := range []answers{
		{202, "", `{"accepted":2,"rejected":[{"line":2,"field":"model","error":"too long"}],"rejected_count":1}`},
		{202, "", `{"accepted":-1,"rejected_count":-9223372036854775808}`},
		{202, "", `{"rejected_count":9223372036854775807}`},
		{202, "", `{"rejected":[{},{},{},{}]}`},
		{200, "", "<html>"},
		{503, "99999999999999999999", "{}"},
		{429, "-1", `{"title":"` + strings.Repeat("x", 300) + `\u0000"}`},
		{403, "", `{"type":"foreign_tenant"}`},
		{413, "", ""}, {400, "", "null"}, {415, "", "[]"}, {307, "1", ""},
	} {
		f.Add(a.status, a.retryAfter, a.body)
	}
	f.Fuzz(func(t *testing.T, status int, retryAfter, body string) {
		s, err := emit.HTTP(emit.HTTPOptions{URL: "http://ingest.example", Client: &http.Client{Transport: answers{status, retryAfter, body}}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		const n = 3
		res, err := s.Send(t.Context(), []byte("{}\n{}\n{}\n"), n)
		var later *emit.RetryAfterError
		switch {
		case res.Rejected < 0 || res.Rejected > n:
			t.Errorf("%d of %d records were rejected", res.Rejected, n)
		case res.Rejected > 0 && res.Reason == nil:
			t.Error("records were rejected without a reason")
		case err == nil && status != http.StatusOK && status != http.StatusAccepted:
			t.Errorf("status %d is taken for an acknowledgement", status)
		case err != nil && res.Rejected != 0:
			t.Error("an error with records rejected")
		case errors.As(err, &later) && (later.After < 0 || later.After > time.Hour):
			t.Errorf("wait %v", later.After)
		}
	})
}
