package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/retrylens/retrylens/internal/app"
)

// TestEveryFlagIsDocumented in its own help and in docs/cli.md, and every
// command has examples.
func TestEveryFlagIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range newCommand(app.Streams{}).Commands() {
		if !strings.Contains(string(page), "`"+strings.TrimSuffix(cmd.CommandPath(), " ")) {
			t.Errorf("docs/cli.md has no %s", cmd.CommandPath())
		}
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		checkFlags(t, cmd, string(page))
	}
}

func checkFlags(t *testing.T, cmd *cobra.Command, page string) {
	t.Helper()
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Usage == "" {
			t.Errorf("%s --%s has no description", cmd.CommandPath(), f.Name)
		}
		if f.Name != "help" && !strings.Contains(page, "--"+f.Name) {
			t.Errorf("docs/cli.md has no --%s", f.Name)
		}
	})
}
