package schema_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrylens/retrylens/schema"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestRenderingsAreGolden(t *testing.T) {
	for name, o := range map[string]schema.Options{
		"single":    {Database: "retrylens"},
		"cluster":   {Database: "retrylens", Cluster: "main", RetentionDays: 30},
		"each_node": {Database: "retrylens", Cluster: "main", EachNode: true},
	} {
		t.Run(name, func(t *testing.T) {
			migrations, err := schema.Render(o)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", name+".sql"), asText(migrations))
		})
	}
}

func asText(migrations []schema.Migration) string {
	var b strings.Builder
	for _, m := range migrations {
		fmt.Fprintf(&b, "-- %04d %s\n", m.ID, m.Name)
		for _, s := range m.Statements {
			b.WriteString(s + ";\n\n")
		}
	}
	return b.String()
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -update and read the diff):\n%s", path, got)
	}
}

func TestMigrationsAreNumberedWithoutGaps(t *testing.T) {
	migrations, err := schema.Render(schema.Options{Database: "d"})
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range migrations {
		if m.ID != i+1 {
			t.Errorf("migration %d is number %d (%s)", i+1, m.ID, m.Name)
		}
	}
}

// Statements are text, so names that could carry SQL are refused.
func TestNamesMustBeIdentifiers(t *testing.T) {
	for _, bad := range []string{"", "a b", "a;DROP", "1a", "a`", "é", "a.b"} {
		if _, err := schema.Render(schema.Options{Database: bad}); err == nil {
			t.Errorf("database %q accepted", bad)
		}
		if _, err := schema.Render(schema.Options{Database: "d", Cluster: bad}); err == nil && bad != "" {
			t.Errorf("cluster %q accepted", bad)
		}
	}
	for _, days := range []int{-1, schema.MaxRetentionDays + 1, 36_500, 99_999_999_999} {
		if _, err := schema.Render(schema.Options{Database: "d", RetentionDays: days}); err == nil {
			t.Errorf("retention of %d days accepted", days)
		}
	}
}
