package ingestd

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A certificate that changes is served soon; a broken one is not.
func TestCertificatesAreFollowed(t *testing.T) {
	var log bytes.Buffer
	logs := func(want string) {
		t.Helper()
		if text := log.String(); strings.Count(text, "\n") != min(1, len(want)) || !strings.Contains(text, want) {
			t.Errorf("logged %q, want %q", text, want)
		}
		log.Reset()
	}
	dir := t.TempDir()
	now := time.Now()
	loads := 0
	c := &certificates{files: TLSFiles{Cert: filepath.Join(dir, "c"), Key: filepath.Join(dir, "k")}, logger: slog.New(slog.NewTextHandler(&log, nil))}
	write := func(pair testPair) {
		for path, text := range map[string][]byte{c.files.Cert: pair.cert, c.files.Key: pair.key} {
			loads++
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, now, now.Add(time.Duration(loads)*time.Second)); err != nil {
				t.Fatal(err)
			}
		}
	}
	serial := func(at time.Time) string {
		config, err := c.current(at)
		if err != nil {
			t.Fatal(err)
		}
		return string(config.Certificates[0].Certificate[0])
	}
	write(newTestPair(t))
	if first := serial(now); first != serial(now.Add(time.Hour)) {
		t.Error("changed by itself")
	}
	first := serial(now.Add(time.Hour))
	write(newTestPair(t))
	if serial(now.Add(time.Hour+time.Second)) != first {
		t.Error("looked too often")
	}
	second := serial(now.Add(2 * time.Hour))
	if second == first {
		t.Error("the new one is not served")
	}
	logs("read the certificates again")
	write(testPair{[]byte("broken"), []byte("broken")})
	if serial(now.Add(3*time.Hour)) != second {
		t.Error("a broken one replaced a good one")
	}
	logs("stay as they were")
	for hour := range 5 {
		serial(now.Add(time.Duration(4+hour) * time.Hour))
	}
	logs("") // it was told
	write(testPair{[]byte("broken too"), []byte("broken")})
	serial(now.Add(10 * time.Hour))
	logs("stay as they were")
	if err := os.Remove(c.files.Cert); err != nil {
		t.Fatal(err)
	}
	serial(now.Add(11 * time.Hour))
	logs("no such file")
	write(newTestPair(t))
	if serial(now.Add(12*time.Hour)) == second {
		t.Error("the third one is not served")
	}
	logs("read the certificates again")
}
