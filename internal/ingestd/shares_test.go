package ingestd_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/ingestd"
	"github.com/retrylens/retrylens/internal/ingestd/tokens"
	"github.com/retrylens/retrylens/internal/spool"
)

// stalled begins bodies of a token that hold what they have until the test ends,
// and tells how many were refused.
func (s *service) stalled(t *testing.T, token, begun string, n int) (refused int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	answers := make(chan int, n)
	for range n {
		r, w := io.Pipe()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/attempts", r)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/x-ndjson")
		go func() {
			resp, err := s.Client().Do(req)
			if err != nil {
				return // at the end
			}
			answers <- resp.StatusCode
			resp.Body.Close()
			r.Close()
		}()
		taken := make(chan struct{})
		go func() { _, _ = io.WriteString(w, begun); close(taken) }()
		select {
		case <-taken:
		case status := <-answers:
			if refused++; status != http.StatusServiceUnavailable {
				t.Errorf("refused with %d", status)
			}
		}
	}
	for { // a body may be refused after its first bytes were sent, which are awaited for a second
		select {
		case <-answers:
			refused++
		case <-time.After(1500 * time.Millisecond):
			return refused
		}
	}
}

// However many bodies some tokens begin and never end, another token finds room:
// a slot and memory.
func TestStalledBodiesOfSomeTokensLeaveRoomForOthers(t *testing.T) {
	body := ndjson(0, 3000)
	for name, c := range map[string]struct {
		begun  string
		greedy []string
		each   int
	}{
		"slots of one":    {"\n", []string{"any"}, 60},
		"slots of two":    {"\n", []string{"any", "two"}, 60},
		"slots of three":  {"\n", []string{"any", "two", "3"}, 40},
		"memory of one":   {body, []string{"any"}, 30},
		"memory of three": {body, []string{"any", "two", "3"}, 30},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, func(o *ingestd.Options) {
				o.MaxRequests, o.InFlightBytes = 40, 16<<20
				known := o.Authenticate
				o.Authenticate = func(token string) (tokens.Principal, bool) {
					if p, ok := known(token); ok {
						return p, true
					}
					return tokens.NewPrincipal("*"), len(token) == 1
				}
			})
			for _, token := range c.greedy {
				if refused := s.stalled(t, token, c.begun, c.each); refused == 0 || refused == c.each {
					t.Errorf("%d of %d bodies of %q were refused", refused, c.each, token)
				}
			}
			if a := s.request(t, strings.NewReader(ndjson(0, 100))); a.Status != http.StatusAccepted || a.Accepted != 100 {
				t.Errorf("the other token: %+v", a)
			}
		})
	}
}

// A body that is more than the whole spool would never fit: its sender is not told
// to try again.
func TestABodyLargerThanTheSpool(t *testing.T) {
	s := startOn(t, spool.Options{Dir: t.TempDir(), LimitBytes: 10_000}, nil)
	a := s.request(t, strings.NewReader(ndjson(0, 1000)))
	if a.Status != http.StatusRequestEntityTooLarge || a.Code != "too_large" || a.Header.Get("Retry-After") != "" {
		t.Errorf("%+v", a)
	}
	if a := s.request(t, strings.NewReader(ndjson(0, 10))); a.Status != http.StatusAccepted {
		t.Errorf("%+v", a)
	}
}
