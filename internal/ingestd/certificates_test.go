package ingestd

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A certificate that changes is served soon; a broken one is not.
func TestCertificatesAreFollowed(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	loads := 0
	c := &certificates{files: TLSFiles{Cert: filepath.Join(dir, "c"), Key: filepath.Join(dir, "k")}}
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
	write(testPair{[]byte("broken"), []byte("broken")})
	if serial(now.Add(3*time.Hour)) != second {
		t.Error("a broken one replaced a good one")
	}
}
