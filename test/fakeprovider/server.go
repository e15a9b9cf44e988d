package fakeprovider

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// Step is how one request is served. The zero Step is a complete answer.
type Step struct {
	Status int         // of an error; 0 = an answer
	Header http.Header // added to the response
	Body   string      // of the error, or in place of an answer with Status 200

	Prompt, Completion, Cached, Reasoning int64 // tokens; zero ones get small defaults
	Tool                                  bool  // the answer is a tool call
	Chunks                                int   // of a stream's content; default 3
	Finish                                string
	NoUsage                               bool // a stream that does not report usage

	Break      Break
	AfterChunk int           // of BreakStream: after so many chunks of content
	Delay      time.Duration // before the answer
	ChunkDelay time.Duration // between chunks
	KeepAlive  bool          // comments, or pings, between chunks while they are delayed
}

// Break is where a connection breaks.
type Break uint8

// Breaks.
const (
	BreakNone    Break = iota
	BreakRequest       // reset after the request was read
	BreakStream        // reset inside the answer
	BreakClean         // the stream ends in order, but without its last events
	Hang               // no answer until the client leaves
)

// Served is what the server knows of one request.
type Served struct {
	Method, Path string
	Header       http.Header
	Body         []byte
	Stream       bool
	Step         Step
	// Prompt and Completion are the last figures that went onto the wire; -1 = none did.
	Prompt, Completion int64
}

// Server is a simulated provider.
type Server struct {
	URL string
	srv *httptest.Server

	mu     sync.Mutex
	script func(n int, r *Served) Step
	served []*Served
}

// Start starts a server on loopback whose n-th request, from 0, is served as script says;
// a nil script serves all of them well. Close it.
func Start(script func(n int, r *Served) Step) *Server {
	s := &Server{script: script}
	s.srv = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.srv.Config.ErrorLog = discardLog
	s.srv.Start()
	s.URL = s.srv.URL
	return s
}

// Script is one for Start: the steps in their order, the last one for all further requests.
func Script(steps ...Step) func(int, *Served) Step {
	return func(n int, _ *Served) Step { return steps[min(n, len(steps)-1)] }
}

// Close ends the server and what hangs in it.
func (s *Server) Close() {
	s.srv.CloseClientConnections()
	s.srv.Close()
}

// Served are the requests that were read to their end so far, in the order of arrival.
func (s *Server) Served() []Served {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Served, len(s.served))
	for i, v := range s.served {
		out[i] = *v
	}
	return out
}

// Tokens are the sums of what was reported on the wire.
func (s *Server) Tokens() (prompt, completion int64) {
	for _, v := range s.Served() {
		prompt += max(0, v.Prompt)
		completion += max(0, v.Completion)
	}
	return prompt, completion
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	v := &Served{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body, Prompt: -1, Completion: -1}
	v.Stream = asksForStream(r, body)
	s.mu.Lock()
	n := len(s.served)
	s.served = append(s.served, v)
	if s.script != nil {
		v.Step = s.script(n, v)
	}
	v.Step.defaults()
	s.mu.Unlock()
	s.answer(w, r, v)
}

func (p *Step) defaults() {
	if p.Prompt == 0 {
		p.Prompt = 100
	}
	if p.Completion == 0 {
		p.Completion = 20
	}
	if p.Chunks == 0 {
		p.Chunks = 3
	}
}

func asksForStream(r *http.Request, body []byte) bool {
	var b struct{ Stream bool }
	_ = json.Unmarshal(body, &b)
	return b.Stream || strings.Contains(r.URL.Path, ":streamGenerateContent") || strings.HasSuffix(r.URL.Path, "-stream")
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, v *Served) {
	p := v.Step
	for k, values := range p.Header {
		w.Header()[k] = values
	}
	if p.Delay > 0 && !wait(r, p.Delay) {
		return
	}
	switch {
	case p.Break == Hang:
		<-r.Context().Done()
	case p.Break == BreakRequest:
		reset(w)
	case p.Status != 0:
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(p.Status)
		_, _ = io.WriteString(w, p.Body)
	default:
		d := dialectOf(r.URL.Path)
		out := &writer{w: w, r: r, s: s, v: v}
		if v.Stream {
			d.stream(out)
		} else {
			d.whole(out)
		}
	}
}

func wait(r *http.Request, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// reset breaks the connection as a crash does.
func reset(w http.ResponseWriter) {
	h, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	conn, _, err := h.Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
