package script

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

// Folder is an implementation of the derived metrics. The attempts are
// normalized, in any order, duplicates included, and all that there is: nothing
// of an earlier call counts.
type Folder interface {
	Fold(ctx context.Context, attempts []retrylens.Attempt, q metrics.Query) (*metrics.Report, error)
}

// FolderFunc is a function as a Folder.
type FolderFunc func(ctx context.Context, attempts []retrylens.Attempt, q metrics.Query) (*metrics.Report, error)

// Fold calls f.
func (f FolderFunc) Fold(ctx context.Context, attempts []retrylens.Attempt, q metrics.Query) (*metrics.Report, error) {
	return f(ctx, attempts, q)
}

// RunDir runs every script *.txt at the top of fsys on the folder.
func RunDir(t *testing.T, fsys fs.FS, folder Folder) {
	t.Helper()
	names, err := fs.Glob(fsys, "*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(path.Base(name), ".txt"), func(t *testing.T) {
			src, err := fs.ReadFile(fsys, name)
			if err != nil {
				t.Fatal(err)
			}
			Run(t, name, string(src), folder)
		})
	}
}

// Run runs one script; name is for messages.
func Run(t *testing.T, name, src string, folder Folder) {
	t.Helper()
	cases, err := Parse(src)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			for _, q := range c.Queries {
				for _, err := range q.hold(t.Context(), c.Attempts, folder) {
					t.Errorf("%s:%v", name, err)
				}
			}
		})
	}
}

// hold returns what is wrong with the folder's answer, each with its line.
func (q Query) hold(ctx context.Context, attempts []retrylens.Attempt, folder Folder) (wrong []error) {
	report, failure := folder.Fold(ctx, attempts, q.Query)
	for _, c := range q.Checks {
		err := failure
		if c.Words[0] == "refused" {
			err = checkRefused(failure, strings.Join(c.Words[1:], " "))
		} else if failure == nil {
			err = c.hold(report)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%d: %s: %w", c.Line, strings.Join(c.Words, " "), err))
		}
	}
	return wrong
}

func checkRefused(err error, text string) error {
	if err == nil {
		return fmt.Errorf("was answered")
	}
	if !strings.Contains(err.Error(), text) {
		return fmt.Errorf("refused otherwise: %w", err)
	}
	return nil
}
