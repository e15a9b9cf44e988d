package tokens_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrylens/retrylens/internal/ingestd/tokens"
)

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func TestWhoATokenStandsFor(t *testing.T) {
	s, err := tokens.Parse(strings.NewReader(fmt.Sprintf(`# comment
{"sha256":%q,"tenant":"acme","note":"x"}

{"sha256":%q,"tenants":["acme","globex"]}
{"sha256":%q,"tenants":["*"]}
`, hash("one"), strings.ToUpper(hash("two")), hash("all"))))
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]struct {
		found                 bool
		acme, globex, anybody bool
		def                   string
	}{
		"one":   {true, true, false, false, "acme"},
		"two":   {true, true, true, false, ""},
		"all":   {true, true, true, true, ""},
		"":      {},
		"three": {},
	} {
		p, ok := s.Find(token)
		if ok != want.found || p.Default != want.def || p.May("acme") != want.acme || p.May("globex") != want.globex || p.May("x") != want.anybody {
			t.Errorf("%q: %v %+v", token, ok, p)
		}
	}
}

func TestBadFilesAreNamedAndNotQuoted(t *testing.T) {
	for text, want := range map[string]string{
		"": "no token",
		`{"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","tenant":"acme"}`: "empty token",
		`secret`:                                                       "line 1: want",
		`{"sha256":"secret","tenant":"a"}`:                             "line 1: sha256 must be",
		"\n" + `{"sha256":"` + hash("x") + `"}`:                        "line 2: tenant or tenants",
		`{"sha256":"` + hash("x") + `","tenants":[""]}`:                "line 1: tenant or tenants",
		`{"sha256":"` + hash("x") + `","token":"secret","tenant":"a"}`: "line 1: want",
		`{"sha256":"` + hash("x") + `","tenant":"a"}` + "\n" + `{"sha256":"` + hash("x") + `","tenant":"b"}`: "line 2: the same token",
	} {
		_, err := tokens.Parse(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestAFileIsFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	entry := func(token string) string { return `{"sha256":"` + hash(token) + `","tenant":"acme"}` }
	write(entry("old"))
	synctest.Test(t, func(t *testing.T) {
		f, err := tokens.Open(path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		again := make(chan os.Signal)
		go f.Watch(ctx, time.Second, again)
		knows := func(token string, want bool) {
			t.Helper()
			if _, ok := f.Find(token); ok != want {
				t.Errorf("%s: %v", token, ok)
			}
		}
		write(entry("new1") + "\n")
		knows("old", true)
		time.Sleep(time.Second)
		synctest.Wait()
		knows("old", false)
		knows("new1", true)
		write("broken")
		time.Sleep(time.Second)
		synctest.Wait()
		knows("new1", true)
		write(entry("new2"))
		again <- os.Interrupt
		synctest.Wait()
		knows("new2", true)
		write("# revoked\n")
		again <- os.Interrupt
		synctest.Wait()
		knows("new2", false)
		cancel()
	})
}

// lines is a log of which what came is taken.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

// Whatever becomes of the file: emptied it revokes; missing or broken it changes
// nothing, is told as long as it lasts and logged once, or when asked.
func TestWhatBecomesOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	good := []byte(`{"sha256":"` + hash("good") + `","tenant":"acme"}`)
	write := func(text []byte) func() error {
		return func() error { return os.WriteFile(path, text, 0o600) }
	}
	remove := func() error { return os.Remove(path) }
	if err := write(good)(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var log lines
		f, err := tokens.Open(path, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		again := make(chan os.Signal)
		go f.Watch(ctx, time.Second, again)
		for _, step := range []struct {
			name     string
			change   func() error
			in, fine bool
			logged   string
		}{
			{"removed", remove, true, false, "level=ERROR"},
			{"back", write(good), true, true, "level=INFO"},
			{"broken", write([]byte("x")), true, false, "level=ERROR"},
			{"broken, then removed", remove, true, false, "level=ERROR"},
			{"emptied", write(nil), false, true, "level=WARN"},
			{"emptied, then removed", remove, false, false, "level=ERROR"},
			{"only comments", write([]byte("# none\n\n")), false, true, "level=WARN"},
			{"good", write(good), true, true, "level=INFO"},
		} {
			log.take()
			if err := step.change(); err != nil {
				t.Fatal(err)
			}
			for range 5 {
				time.Sleep(time.Second)
				synctest.Wait()
			}
			_, in := f.Find("good")
			if _, nobody := f.Find(""); in != step.in || (f.Err() == nil) != step.fine || nobody {
				t.Errorf("%s: in %v, nobody %v, err %v", step.name, in, nobody, f.Err())
			}
			if text := log.take(); strings.Count(text, "\n") != 1 || !strings.Contains(text, step.logged) {
				t.Errorf("%s: logged %q", step.name, text)
			}
			again <- os.Interrupt
			synctest.Wait()
			if n := strings.Count(log.take(), "\n"); n != 1 {
				t.Errorf("%s: asked, it logged %d lines", step.name, n)
			}
		}
	})
	if err := write(nil)(); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Open(path, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a service starts that lets nobody in")
	}
}
