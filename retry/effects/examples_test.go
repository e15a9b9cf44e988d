package effects_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestEveryEntryHasAnExample: each exported function and method that is not one of an
// interface of the standard library.
func TestEveryEntryHasAnExample(t *testing.T) {
	names, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	entries, examples := []string{}, map[string]bool{}
	for _, f := range names {
		if !strings.HasSuffix(f.Name(), ".go") || f.Name() == "export_test.go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			switch {
			case !ok || !fn.Name.IsExported():
			case strings.HasSuffix(f.Name(), "_test.go"):
				examples[fn.Name.Name] = true
			default:
				if e := entry(fn); e != "" {
					entries = append(entries, e)
				}
			}
		}
	}
	if len(entries) < 15 {
		t.Errorf("only %d entries were found: %v", len(entries), entries)
	}
	for _, e := range entries {
		if !examples["Example"+e] {
			t.Errorf("there is no Example%s", e)
		}
	}
}

// entry is the name in an example's name, "" of what needs none.
func entry(fn *ast.FuncDecl) string {
	switch name := fn.Name.Name; {
	case fn.Recv == nil:
		return name
	case name == "Error" || name == "Unwrap" || name == "String":
		return ""
	default:
		of, ok := fn.Recv.List[0].Type.(*ast.StarExpr)
		if !ok {
			return name
		}
		return of.X.(*ast.Ident).Name + "_" + name
	}
}
