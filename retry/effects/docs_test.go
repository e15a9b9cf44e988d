package effects_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestQuickStartRuns: the program of docs/effects.md does what it says, and the second time nothing.
func TestQuickStartRuns(t *testing.T) {
	text, err := os.ReadFile("../../docs/effects.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, ok := strings.Cut(string(text), "```go\n")
	if !ok {
		t.Fatal("no program in docs/effects.md")
	}
	program, _, _ = strings.Cut(program, "```")
	dir := t.TempDir()
	file, bin := filepath.Join(dir, "main.go"), filepath.Join(dir, "quickstart")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gofmt", "-l", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("not formatted: %v %s", err, out)
	}
	if out, err := exec.Command("go", "build", "-o", bin, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{" false <nil>\n", " true <nil>\n"} {
		cmd := exec.Command(bin)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "sent under ") || !strings.HasSuffix(string(out), want) {
			t.Errorf("%s%v, want …%s", out, err, want)
		}
	}
}

// TestImportsNoDriver: which one is the importer's choice.
func TestImportsNoDriver(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, driver := range []string{"jackc/pgx", "lib/pq", "modernc.org", "go-sqlite3"} {
		if strings.Contains(string(out), driver) {
			t.Errorf("the package depends on %s", driver)
		}
	}
}
