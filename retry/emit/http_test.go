package emit_test

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/retrylens/retrylens/retry/emit"
)

// service answers as the ingest service does.
func service(t *testing.T, answer func(http.ResponseWriter, *http.Request, []string)) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in io.Reader = r.Body
		var err error
		switch r.Header.Get("Content-Encoding") {
		case "zstd":
			in, err = zstd.NewReader(in)
		case "gzip":
			in, err = gzip.NewReader(in)
		}
		if err != nil {
			t.Error(err)
			return
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Error(err)
		}
		answer(w, r, strings.Split(strings.TrimSpace(string(text)), "\n"))
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestHTTP(t *testing.T) {
	for _, compression := range []string{"", "gzip", "none"} {
		var got []string
		url := service(t, func(w http.ResponseWriter, r *http.Request, lines []string) {
			if r.URL.Path != "/v1/attempts" || r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("Content-Type") != "application/x-ndjson" {
				t.Errorf("%s %v", r.URL, r.Header)
			}
			got = append(got, lines...)
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, `{"accepted":2,"rejected":[{"line":2,"field":"model","error":"too long"}],"rejected_count":1}`)
		})
		s, err := emit.HTTP(emit.HTTPOptions{URL: url, Token: "secret", Compression: compression})
		if err != nil {
			t.Fatal(err)
		}
		e := start(t, emit.Options{Sink: s, Tenant: "acme"})
		for range 3 {
			e.Emit(attempt("a"), nil)
		}
		err = closeWithin(t, e, time.Minute)
		st := e.Stats()
		if err == nil || st.Sent != 2 || st.Rejected != 1 || !strings.Contains(st.LastErr, "model: too long") {
			t.Errorf("%v %+v", err, st)
		}
		if a := decode(t, got); len(a) != 3 || a[0].Tenant != "acme" {
			t.Errorf("%+v", a)
		}
	}
}

func TestHTTPAnswers(t *testing.T) {
	for _, c := range []struct {
		status  int
		header  string
		body    string
		refused bool
		large   bool
		after   time.Duration
	}{
		{400, "", `{"title":"No line of the body is a valid record"}`, true, false, 0},
		{401, "", `{"title":"A valid bearer token is needed"}`, false, false, 0},
		{403, "", `{"code":"foreign_tenant","title":"no"}`, true, false, 0},
		{403, "", `<html>firewall</html>`, false, false, 0},
		{404, "", ``, false, false, 0},
		{413, "", ``, false, true, 0},
		{429, "7", ``, false, false, 7 * time.Second},
		{503, "-1", ``, false, false, 0},
		{200, "", `<html>login</html>`, false, false, 0},
	} {
		url := service(t, func(w http.ResponseWriter, _ *http.Request, _ []string) {
			if c.header != "" {
				w.Header().Set("Retry-After", c.header)
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		s, _ := emit.HTTP(emit.HTTPOptions{URL: url})
		_, err := s.Send(t.Context(), []byte("{}\n"), 1)
		var asked *emit.RetryAfterError
		if err == nil || errors.Is(err, emit.ErrRefused) != c.refused || errors.Is(err, emit.ErrTooLarge) != c.large || errors.As(err, &asked) != (c.after > 0) || asked != nil && asked.After != c.after {
			t.Errorf("%d %s: %v", c.status, c.body, err)
		}
		_ = s.Close()
	}
}
