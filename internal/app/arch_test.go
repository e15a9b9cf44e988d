package app_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/retrylens/retrylens"

// pkg is what go list tells of a package.
type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
	Standard   bool
}

// TestArrowsPointInwards: cmd → app → adapters → metrics → root, and adapters do
// not know each other.
func TestArrowsPointInwards(t *testing.T) {
	all := list(t)
	for path, p := range all {
		if !strings.HasPrefix(path+"/", module+"/") {
			continue
		}
		for _, imported := range p.Imports {
			if reason := forbidden(relative(path), relative(imported), all[imported].Standard); reason != "" {
				t.Errorf("%s imports %s: %s", relative(path), relative(imported), reason)
			}
		}
	}
	for _, dep := range all[module].Deps {
		if !all[dep].Standard {
			t.Errorf("the root depends on %s; it may on the standard library only", dep)
		}
	}
	for _, dep := range all[module+"/internal/metrics"].Deps {
		if dep != module && !all[dep].Standard {
			t.Errorf("internal/metrics depends on %s; it may on the root only", dep)
		}
	}
}

// forbidden says why an import is, "" if it is not.
func forbidden(from, imported string, standard bool) string {
	owner := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return from == p || strings.HasPrefix(from, p+"/") })
	}
	a, b := adapter(from), adapter(imported)
	switch {
	case standard:
		return ""
	case strings.HasPrefix(imported, "github.com/ClickHouse/clickhouse-go") && !owner("internal/clickhouse", "test"):
		return "only internal/clickhouse may" // and tests that look at the tables from outside
	case strings.HasPrefix(imported, "github.com/ebitengine/purego") && !owner("internal/engine/chdb"):
		return "only internal/engine/chdb may"
	case strings.HasPrefix(imported, "github.com/spf13/cobra") && !owner("cmd", "internal/app/cli"):
		return "only commands may"
	case from == "web" && imported == "internal/api":
		return "" // the pages show what the API's Source answers
	case a != "" && b != "" && a != b:
		return "adapters do not know each other"
	case a != "" && strings.HasPrefix(imported, "internal/app"):
		return "an adapter does not know app"
	case owner("internal/metrics", "internal/rollup", "internal/wire", "internal/query", "internal/export", "internal/format", "internal/detect") && b != "":
		return "what belongs to all knows no adapter"
	case from == "cmd/engine" && strings.HasPrefix(imported, "internal/") && b != "engine":
		return "cmd/engine knows internal/engine only"
	case from != "cmd/engine" && strings.HasPrefix(from, "cmd/") && b != "":
		return "commands know app, not adapters"
	case strings.HasPrefix(imported, "cmd/"):
		return "nobody imports a command"
	}
	return ""
}

// adapter is the adapter that a package belongs to, "" if to none: metrics, rollup, query,
// export, format and wire, the format of the record, know no adapter and belong to all.
func adapter(path string) string {
	if path == "web" || strings.HasPrefix(path, "web/") {
		return "web"
	}
	rest, ok := strings.CutPrefix(path, "internal/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	switch name {
	case "app", "metrics", "rollup", "wire", "query", "export", "format", "detect":
		return ""
	case "ingestd", "spool": // the service around internal/ingest and its disk queue
		return "ingest"
	}
	return name
}

func relative(path string) string { return strings.TrimPrefix(path, module+"/") }

func TestForbidden(t *testing.T) {
	for _, c := range []struct {
		from, imported string
		ok             bool
	}{
		{"internal/app", "internal/clickhouse", true},
		{"internal/clickhouse", "internal/metrics", true},
		{"internal/clickhouse", "internal/engine", false},
		{"internal/ingest", "internal/wire", true},
		{"internal/wire", "internal/ingest", false},
		{"internal/sim", "internal/app", false},
		{"internal/engine/host", "internal/engine/chdb", true},
		{"cmd/analyze", "internal/clickhouse", false},
		{"web", "internal/api", true},
		{"web/chart", "internal/api", false},
		{"web", "internal/clickhouse", false},
		{"internal/app", "web", true},
		{"cmd/engine", "internal/engine/host", true},
		{"cmd/engine", "internal/app", false},
		{"internal/app", "github.com/ClickHouse/clickhouse-go/v2", false},
		{"internal/engine", "github.com/ebitengine/purego", false},
		{"internal/app", "github.com/spf13/cobra", false},
	} {
		if got := forbidden(c.from, c.imported, false) == ""; got != c.ok {
			t.Errorf("%s → %s: allowed %t, want %t", c.from, c.imported, got, c.ok)
		}
	}
}

// list is go list -deps of every package of the module, without tests.
func list(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,Deps,Standard", module+"/...")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	all := map[string]pkg{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
}
