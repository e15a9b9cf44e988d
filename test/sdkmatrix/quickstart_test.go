package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestQuickStartsCompile: each Go program of docs/client.md is one.
func TestQuickStartsCompile(t *testing.T) {
	text, err := os.ReadFile("../../docs/client.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := strings.Split(string(text), "```go\n")[1:]
	if len(programs) < 5 {
		t.Fatalf("%d programs in docs/client.md, want plain net/http and four SDKs", len(programs))
	}
	for _, p := range programs {
		code, _, ok := strings.Cut(p, "```")
		if !ok {
			t.Fatal("a program without an end")
		}
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("go", "vet", file).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s\n%s", err, out, code)
		}
		if out, err := exec.Command("gofmt", "-l", file).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("not formatted: %v %s\n%s", err, out, code)
		}
	}
}
