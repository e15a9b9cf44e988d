package tokens_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
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
