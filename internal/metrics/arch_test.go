package metrics_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestImportsTheDomainOnly: the fold is pure.
func TestImportsTheDomainOnly(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			if strings.Contains(name, ".") && name != "github.com/retrylens/retrylens" || strings.HasPrefix(name, "os") {
				t.Errorf("%s imports %s", file, name)
			}
		}
	}
}
