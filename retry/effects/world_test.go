package effects_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/retrylens/retrylens/retry/effects"
)

// world is where effects happen: a server that outlives the processes that are killed. It
// counts effects by what they are for (ref), and by the key of the call that made them.
type world struct {
	*httptest.Server

	mu      sync.Mutex
	effects map[string]int            // by ref, undone ones taken off
	byKey   map[string]int            // calls that took effect
	under   map[string]string         // the process whose call under that key is being served
	overlap []string                  // calls under one key at once, by one process
	open    map[string]http.ConnState // connections, by remote address
}

func newWorld(t *testing.T) *world {
	w := &world{effects: map[string]int{}, byKey: map[string]int{}, under: map[string]string{}, open: map[string]http.ConnState{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /effect", w.effect)
	mux.HandleFunc("POST /undo", w.undo)
	mux.HandleFunc("GET /lookup", w.lookup)
	w.Server = httptest.NewUnstartedServer(mux)
	track := w.Config.ConnState
	w.Config.ConnState = func(c net.Conn, s http.ConnState) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.open[c.RemoteAddr().String()] = s; s == http.StateClosed {
			delete(w.open, c.RemoteAddr().String())
		}
		if track != nil {
			track(c, s)
		}
	}
	w.Start()
	t.Cleanup(w.Close)
	return w
}

// effect happens once per key if the receiver honours keys, else each time.
func (w *world) effect(_ http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	key, process := q.Get("key"), q.Get("process")
	w.mu.Lock()
	if w.under[key] == process {
		w.overlap = append(w.overlap, key)
	}
	w.under[key] = process
	if w.byKey[key] == 0 || q.Get("honours") == "" {
		w.effects[q.Get("ref")]++
	}
	w.byKey[key]++
	w.mu.Unlock()
	_, _ = io.Copy(io.Discard, r.Body)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.under[key] == process {
		delete(w.under, key)
	}
}

// undo takes back what was done under the key.
func (w *world) undo(_ http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.effects[q.Get("ref")] -= w.byKey[q.Get("key")]
	w.byKey[q.Get("key")] = 0
}

func (w *world) lookup(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byKey[r.URL.Query().Get("key")] == 0 {
		rw.WriteHeader(http.StatusNotFound)
	}
}

// quiet waits until nothing that a killed process has sent can still have an effect: its
// connections are served to their ends, those too that wait to be accepted, since they are
// accepted before a later one.
func (w *world) quiet(t *testing.T) {
	t.Helper()
	c, err := net.Dial("tcp", w.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	own := c.LocalAddr().String()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		_, accepted := w.open[own]
		others := len(w.open) - 1
		w.mu.Unlock()
		if accepted && others == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections of processes that were killed are still open", others)
		}
	}
}

// receiver is a process's way to the world.
type receiver struct {
	url, process string
	client       *http.Client
	at           func(gap string) // called at the points where a crash parts our side from the world's
}

func (r *receiver) send(ctx context.Context, method, path string, q url.Values) (status int, err error) {
	q.Set("process", r.process)
	req, err := http.NewRequestWithContext(ctx, method, r.url+path+"?"+q.Encode(), nil)
	if err != nil {
		return 0, err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func (r *receiver) effect(ctx context.Context, key, ref string, honours bool) error {
	q := url.Values{"key": {key}, "ref": {ref}}
	if honours {
		q.Set("honours", "keys")
	}
	r.at("world.before")
	status, err := r.send(ctx, http.MethodPost, "/effect", q)
	r.at("world.after")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d", status)
	}
	return err
}

// ref of a call: what it is for, whatever its key.
func ref(tool string, c effects.Call) string {
	if c.Run != "" {
		return fmt.Sprintf("%s/%d", c.Run, c.Step)
	}
	return tool + "/" + string(c.Args)
}

// tools are one of each permission that can lead to exactly one effect.
func (r *receiver) tools() map[string]effects.Tool {
	call := func(tool string, honours bool) func(context.Context, effects.Call) ([]byte, error) {
		return func(ctx context.Context, c effects.Call) ([]byte, error) {
			return []byte("done"), r.effect(ctx, c.Key, ref(tool, c), honours)
		}
	}
	return map[string]effects.Tool{
		"mail":   {Name: "mail", Retry: effects.Keyed, Call: call("mail", true)},
		"charge": {Name: "charge", Retry: effects.AfterLookup, Call: call("charge", false), Lookup: r.lookup},
		"burn":   {Name: "burn", Retry: effects.Never, Call: call("burn", false), Compensate: r.undo},
	}
}

func (r *receiver) lookup(ctx context.Context, c effects.Call) (effects.Finding, error) {
	status, err := r.send(ctx, http.MethodGet, "/lookup", url.Values{"key": {c.Key}})
	switch {
	case err != nil:
		return effects.Finding{}, err
	case status == http.StatusOK:
		return effects.Finding{Outcome: effects.Happened, Result: []byte("done")}, nil
	case status == http.StatusNotFound:
		return effects.Finding{Outcome: effects.DidNotHappen}, nil
	}
	return effects.Finding{}, errors.New("an answer that is none")
}

func (r *receiver) undo(ctx context.Context, c effects.Call) error {
	r.at("world.undoing")
	_, err := r.send(ctx, http.MethodPost, "/undo", url.Values{"key": {c.Key}, "ref": {ref("burn", c)}})
	r.at("world.undone")
	return err
}
