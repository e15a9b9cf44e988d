package host

import (
	"encoding/xml"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrylens/retrylens/internal/engine"
	"github.com/retrylens/retrylens/internal/engine/datadir"
)

func requireUsage(t *testing.T, err error, text string) {
	t.Helper()
	if !errors.Is(err, engine.ErrUsage) || !strings.Contains(err.Error(), text) {
		t.Errorf("error = %v, want ErrUsage that names %s", err, text)
	}
}

func TestConfigIsXMLWhateverThePath(t *testing.T) {
	d, err := datadir.Open(filepath.Join(t.TempDir(), `a <b> & "c" ä`))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.WriteExtraConfig("<macros><shard>7</shard></macros>"); err != nil {
		t.Fatal(err)
	}
	file, err := writeConfig(d, Options{MemoryBytes: 1 << 30, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	text := requireXML(t, file)
	requireXML(t, filepath.Join(d.ConfigDir(), "users.xml"))
	for _, want := range []string{
		"<max_server_memory_usage>1073741824<",
		"<macros><shard>7</shard></macros>",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("config.xml does not have %s", want)
		}
	}
}

func requireXML(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dec := xml.NewDecoder(strings.NewReader(string(b)))
	for {
		if _, err := dec.Token(); err == io.EOF {
			return string(b)
		} else if err != nil {
			t.Fatalf("%s: %v\n%s", file, err, b)
		}
	}
}

func TestStartErrors(t *testing.T) {
	for text, want := range map[string]error{
		"Code: 76. DB::Exception: Cannot lock file status":                         engine.ErrLocked,
		"Code: 210. DB::NetException: Listen [127.0.0.1]:1 failed: Address in use": engine.ErrPortBusy,
	} {
		if err := startError([]string{text}); !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
			t.Errorf("startError(%q) = %v, want %v with the text", text, err, want)
		}
	}
}

func TestLogText(t *testing.T) {
	name := filepath.Join(t.TempDir(), "engine.log")
	if err := os.WriteFile(name, []byte("old\nnew\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := logText(name, 4); got != "new" {
		t.Errorf("logText = %q, want what was added", got)
	}
}

func TestOpenLogSetsALongOneAside(t *testing.T) {
	name := filepath.Join(t.TempDir(), "engine.log")
	if err := os.WriteFile(name, make([]byte, keepLog+1), 0o600); err != nil {
		t.Fatal(err)
	}
	f, from, err := openLog(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := os.Stat(name + ".1"); err != nil || from != 0 {
		t.Errorf("the log begins at %d, old one: %v", from, err)
	}
}

func TestPickPortsDiffer(t *testing.T) {
	for range 20 {
		a, b, err := pickPorts(0, 0)
		if err != nil || a == b || a == 0 || b == 0 {
			t.Fatalf("pickPorts = %d, %d, %v", a, b, err)
		}
	}
	if a, b, _ := pickPorts(1, 2); a != 1 || b != 2 {
		t.Errorf("ports that were asked for became %d, %d", a, b)
	}
}
