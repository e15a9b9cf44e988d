package emit

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// HTTPOptions of a sink that posts to an ingest service.
type HTTPOptions struct {
	URL         string        // of the service, such as https://ingest.example:8480; /v1/attempts is added where there is no path
	Token       string        // sent as Authorization: Bearer; empty = none
	Compression string        // zstd (default), gzip or none
	Timeout     time.Duration // of one request; default 30 s
	Client      *http.Client  // default one of its own; it must not record its own calls
}

// HTTP returns a sink that posts batches to `ingest serve`, or an error that names an
// option that is out of range.
func HTTP(o HTTPOptions) (Sink, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("emit: HTTPOptions.URL must be an http or https address, got %q", o.URL)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/attempts"
	}
	s := &httpSink{o: o, url: u.String(), client: o.Client}
	s.o.Timeout = orDefault(o.Timeout, 30*time.Second)
	if s.client == nil {
		s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: 90 * time.Second, Proxy: http.ProxyFromEnvironment}}
	}
	return s, s.compressor(o.Compression)
}

type httpSink struct {
	o        HTTPOptions
	url      string
	client   *http.Client
	encoding string
	zstd     *zstd.Encoder
	gzip     *gzip.Writer
	buf      bytes.Buffer
}

func (s *httpSink) compressor(name string) (err error) {
	switch s.encoding = name; name {
	case "", "zstd":
		s.encoding = "zstd"
		s.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
	case "gzip":
		s.gzip, err = gzip.NewWriterLevel(nil, gzip.BestSpeed)
	case "none":
		s.encoding = ""
	default:
		err = fmt.Errorf("emit: HTTPOptions.Compression must be zstd, gzip or none, got %q", name)
	}
	return err
}

func (s *httpSink) compress(lines []byte) ([]byte, error) {
	switch {
	case s.zstd != nil:
		return s.zstd.EncodeAll(lines, s.buf.AvailableBuffer()[:0]), nil
	case s.gzip != nil:
		s.buf.Reset()
		s.gzip.Reset(&s.buf)
		_, err := s.gzip.Write(lines)
		err = errors.Join(err, s.gzip.Close())
		return s.buf.Bytes(), err
	}
	return lines, nil
}

func (s *httpSink) Send(ctx context.Context, lines []byte, n int) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	body, err := s.compress(lines)
	if err != nil {
		return Result{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return Result{}, err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	if s.encoding != "" {
		req.Header.Set("Content-Encoding", s.encoding)
	}
	if s.o.Token != "" {
		req.Header.Set("Authorization", "Bearer "+s.o.Token)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return Result{}, fmt.Errorf("emit: the ingest service cannot be reached: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return Result{}, fmt.Errorf("emit: the answer of the ingest service broke: %w", err)
	}
	return answered(resp, text, n)
}

const maxAnswer = 1 << 20

// answered reads the answer of docs/record.md, "Transport", to n records.
func answered(resp *http.Response, text []byte, n int) (Result, error) {
	switch resp.StatusCode {
	case http.StatusAccepted, http.StatusOK:
		return accepted(text, n)
	case http.StatusRequestEntityTooLarge:
		return Result{}, problem(resp, text, ErrTooLarge)
	case http.StatusBadRequest, http.StatusUnsupportedMediaType:
		return Result{}, problem(resp, text, ErrRefused)
	case http.StatusForbidden: // of a token for another tenant; a firewall's may be put right
		if bytes.Contains(text, []byte(`"foreign_tenant"`)) {
			return Result{}, problem(resp, text, ErrRefused)
		}
	}
	err := problem(resp, text, errNotTaken)
	if s, bad := strconv.Atoi(resp.Header.Get("Retry-After")); bad == nil && s >= 0 {
		return Result{}, &RetryAfterError{After: time.Duration(min(s, 3600)) * time.Second, Err: err}
	}
	return Result{}, err
}

var errNotTaken = errors.New("emit: not taken")

func accepted(text []byte, n int) (Result, error) {
	var a struct {
		Accepted      int `json:"accepted"`
		RejectedCount int `json:"rejected_count"`
		Rejected      []struct {
			Field string `json:"field"`
			Error string `json:"error"`
		} `json:"rejected"`
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return Result{}, fmt.Errorf("emit: not the answer of an ingest service (check the URL): %w", err)
	}
	res := Result{Rejected: min(max(a.RejectedCount, len(a.Rejected)), n)}
	if len(a.Rejected) > 0 {
		res.Reason = fmt.Errorf("emit: a record was rejected: %s: %s", a.Rejected[0].Field, a.Rejected[0].Error)
	} else if res.Rejected > 0 {
		res.Reason = errors.New("emit: records were rejected")
	}
	return res, nil
}

// problem names what the service says (RFC 9457) beside its status.
func problem(resp *http.Response, text []byte, kind error) error {
	var p struct{ Title, Detail string }
	_ = json.Unmarshal(text, &p)
	return fmt.Errorf("%w: the ingest service answered %s %s", kind, resp.Status, strings.TrimSpace(clip(p.Title+" "+p.Detail, 200)))
}

func (s *httpSink) Close() error {
	if s.o.Client == nil {
		s.client.CloseIdleConnections()
	}
	if s.zstd != nil {
		return s.zstd.Close()
	}
	return nil
}
