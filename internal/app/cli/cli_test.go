package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/retrylens/retrylens/internal/app"
	"github.com/retrylens/retrylens/internal/app/cli"
)

// command is a root with one subcommand that ends with err.
func command(err error) *cobra.Command {
	root := cli.Root(&cobra.Command{Use: "tool", Long: "tool."}, app.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
	root.AddCommand(&cobra.Command{Use: "work", Args: cli.NoArgs, RunE: func(*cobra.Command, []string) error { return err }})
	return root
}

func TestExecute(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	unreachable := fmt.Errorf("dial: %w", app.ErrUnreachable)
	for name, c := range map[string]struct {
		ctx  context.Context
		args string
		err  error
		code int
		says string
	}{
		"ok":                   {t.Context(), "work", nil, 0, ""},
		"failure":              {t.Context(), "work", errors.New("no luck"), 1, "tool work: no luck\n"},
		"unreachable":          {t.Context(), "work", unreachable, 5, "tool work: dial: "},
		"interrupted":          {ended, "work", unreachable, 1, "tool work: interrupted: dial: "},
		"ended just in time":   {ended, "work", nil, 0, ""},
		"threshold":            {t.Context(), "work", app.ErrThreshold, 3, ""},
		"unknown flag":         {t.Context(), "work --x", nil, 2, "tool work: unknown flag: --x\nRun tool work --help"},
		"unknown command":      {t.Context(), "wrk", nil, 2, `tool: unknown command "wrk"; did you mean work?`},
		"argument too much":    {t.Context(), "work more", nil, 2, `tool work: takes no argument, got "more"`},
		"help is no failure":   {t.Context(), "--help", nil, 0, ""},
		"the root alone helps": {t.Context(), "", nil, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(c.err)
			cmd.SetArgs(strings.Fields(c.args))
			var stderr strings.Builder
			if code := cli.Execute(c.ctx, cmd, &stderr); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if got := stderr.String(); !strings.HasPrefix(got, c.says) || (c.says == "") != (got == "") {
				t.Errorf("says %q, want %q", got, c.says)
			}
		})
	}
}
