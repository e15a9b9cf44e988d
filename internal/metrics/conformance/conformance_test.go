package conformance_test

import (
	"context"
	"io/fs"
	"strings"
	"testing"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/conformance"
	"github.com/retrylens/retrylens/internal/metrics/script"
)

func TestFoldConforms(t *testing.T) {
	conformance.Run(t, script.FolderFunc(
		func(_ context.Context, attempts []retrylens.Attempt, q metrics.Query) (*metrics.Report, error) {
			return metrics.Fold(attempts, q)
		}))
}

func TestEveryFigureHasAScript(t *testing.T) {
	expected := expectedWords(t)
	for _, f := range metrics.Formulas {
		if !expected[f.Name] {
			t.Errorf("no script expects %s", f.Name)
		}
	}
}

// expectedWords are the words of all expect lines, without any {key}.
func expectedWords(t *testing.T) map[string]bool {
	t.Helper()
	words := map[string]bool{}
	names, _ := fs.Glob(conformance.Scripts(), "*.txt")
	for _, name := range names {
		src, _ := fs.ReadFile(conformance.Scripts(), name)
		cases, err := script.Parse(string(src))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, c := range checksOf(cases) {
			for _, w := range c.Words {
				figure, _, _ := strings.Cut(w, "{")
				words[figure] = true
			}
		}
	}
	return words
}

func checksOf(cases []script.Case) (checks []script.Check) {
	for _, c := range cases {
		for _, q := range c.Queries {
			checks = append(checks, q.Checks...)
		}
	}
	return checks
}
