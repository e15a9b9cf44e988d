package keys

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"
)

func TestNew(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 10_000 {
		k := New()
		if !form.MatchString(k) || seen[k] {
			t.Fatalf("not a fresh UUIDv7: %s", k)
		}
		seen[k] = true
	}
	at := newAt(time.UnixMilli(0x0123456789ab))
	if at[:13] != "01234567-89ab" {
		t.Errorf("time of %s", at)
	}
	if a, b := newAt(time.UnixMilli(1000)), newAt(time.UnixMilli(1001)); a >= b {
		t.Errorf("%s is not before %s", a, b)
	}
}

// TestDerive: the value is fixed for ever, and no two lists of parts collide by their
// concatenation.
func TestDerive(t *testing.T) {
	const want = "aa5497ca378a52a6e4e387843da9c7d0f8fa807a80966f1364f751f196112b26"
	if got := Derive("order", "42"); got != want {
		t.Errorf("Derive changed: %s, was %s", got, want)
	}
	lists := [][]string{nil, {""}, {"", ""}, {"ab", "c"}, {"a", "bc"}, {"abc"}, {"abc", ""}, {"\x00\x00\x00\x00\x00\x00\x00\x01a"}, {"a"}}
	seen := map[string][]string{}
	for _, l := range lists {
		k := Derive(l...)
		if other, ok := seen[k]; ok {
			t.Errorf("%q and %q are both %s", l, other, k)
		}
		seen[k] = l
	}
	if Step("run", 1) == Step("run", 11) || Step("run1", 1) == Step("run", 11) {
		t.Error("steps collide")
	}
}

// TestObtainOnce: of many at once all get the same key, and so does one after a restart.
func TestObtainOnce(t *testing.T) {
	dir := Dir(filepath.Join(t.TempDir(), "keys"))
	got := make([]string, 16)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			k, err := Obtain(context.Background(), dir, "message 7")
			if err != nil {
				t.Error(err)
			}
			got[i] = k
		})
	}
	wg.Wait()
	for _, k := range got {
		if k == "" || k != got[0] {
			t.Fatalf("keys differ: %q", got)
		}
	}
	if k, err := Obtain(context.Background(), Dir(string(dir)), "message 7"); err != nil || k != got[0] {
		t.Errorf("after a restart: %q, %v, want %q", k, err, got[0])
	}
	if k, err := Obtain(context.Background(), dir, "message 8"); err != nil || k == got[0] {
		t.Errorf("another intent: %q, %v", k, err)
	}
	left, err := os.ReadDir(string(dir))
	if err != nil || len(left) != 2 {
		t.Errorf("%d files left, want 2 (%v)", len(left), err)
	}
}

type broken struct{}

func (broken) PutIfAbsent(context.Context, string, string) (string, error) {
	return "", errors.New("disk full")
}

func TestObtainFails(t *testing.T) {
	if k, err := Obtain(context.Background(), broken{}, "x"); err == nil || k != "" {
		t.Errorf("%q, %v: a key that was not kept must not be used", k, err)
	}
	if _, err := Obtain(context.Background(), broken{}, ""); err == nil {
		t.Error("an empty intent was accepted")
	}
}

func ExampleDerive() {
	fmt.Println(Derive("invoice", "2026-11", "customer 7")[:16])
	fmt.Println(Derive("invoice", "2026-11", "customer 7") == Derive("invoice", "2026-11", "customer 7"))
	// Output:
	// 156c8410640593c5
	// true
}

func ExampleNew() {
	fmt.Println(len(New()))
	// Output: 36
}

func ExampleStep() {
	fmt.Println(Step("run-1", 0) == Step("run-1", 1))
	// Output: false
}

func ExampleObtain() {
	dir, _ := os.MkdirTemp("", "keys")
	defer os.RemoveAll(dir)
	first, _ := Obtain(context.Background(), Dir(dir), "message 7")
	again, _ := Obtain(context.Background(), Dir(dir), "message 7") // after a crash
	fmt.Println(first == again)
	// Output: true
}
