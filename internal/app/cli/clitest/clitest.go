// Package clitest checks what every command line of the project must have. It is for
// tests only.
package clitest

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Documented reports every command below root, at any depth, that has no example or is not in
// the page, and every flag without a description or not named in it.
func Documented(t *testing.T, root *cobra.Command, page string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range root.Commands() {
		check(t, cmd, page, string(text))
	}
}

func check(t *testing.T, cmd *cobra.Command, page, text string) {
	t.Helper()
	for _, sub := range cmd.Commands() {
		check(t, sub, page, text)
	}
	if cmd.HasSubCommands() {
		return
	}
	if !strings.Contains(text, "`"+cmd.CommandPath()) {
		t.Errorf("%s has no %s", page, cmd.CommandPath())
	}
	if cmd.Example == "" {
		t.Errorf("%s has no example", cmd.CommandPath())
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Usage == "" {
			t.Errorf("%s --%s has no description", cmd.CommandPath(), f.Name)
		}
		if f.Name != "help" && !strings.Contains(text, "--"+f.Name) {
			t.Errorf("%s has no --%s of %s", page, f.Name, cmd.CommandPath())
		}
	})
}
