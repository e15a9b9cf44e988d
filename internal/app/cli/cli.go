// Package cli holds what the commands have in common around cobra: signals,
// exit codes, usage errors and the flags of a store. It decides nothing that is
// not about a command line.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/retrylens/retrylens/internal/app"
)

// Main runs a command to its end and exits. The first SIGINT or SIGTERM cancels
// it in order, the second ends it at once.
func Main(build func(app.Streams) *cobra.Command) {
	streams := app.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	code := Execute(ctx, build(streams), streams.Err)
	stop()
	os.Exit(code)
}

// Execute runs a command and returns its exit code.
func Execute(ctx context.Context, cmd *cobra.Command, stderr io.Writer) int {
	ran, err := cmd.ExecuteContextC(ctx)
	if err != nil && ctx.Err() != nil {
		err = &app.InterruptedError{Err: err}
	}
	if text := app.Message(err); text != "" {
		fmt.Fprintf(stderr, "%s: %s\n", ran.CommandPath(), text)
	}
	var usage *app.UsageError
	if errors.As(err, &usage) {
		fmt.Fprintf(stderr, "Run %s --help for its flags and examples.\n", ran.CommandPath())
	}
	return app.ExitCode(err)
}

// Root prepares the root of a command's tree.
func Root(cmd *cobra.Command, s app.Streams) *cobra.Command {
	cmd.Long += "\n\n" + app.ExitCodes
	cmd.Version = version()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usage(fmt.Errorf("unknown command %.40q%s", args[0], suggestions(cmd, args[0])))
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.SetIn(s.In)
	cmd.SetOut(s.Out)
	cmd.SetErr(s.Err)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	return cmd
}

func suggestions(cmd *cobra.Command, arg string) string {
	if near := cmd.SuggestionsFor(arg); len(near) > 0 {
		return "; did you mean " + near[0] + "?"
	}
	return ""
}

func usage(err error) error { return &app.UsageError{Err: err} }

// NoArgs is for commands that take none.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(fmt.Errorf("takes no argument, got %.40q", args[0]))
	}
	return nil
}

// OneArg is for commands that take one, called name.
func OneArg(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) != 1:
			return usage(fmt.Errorf("takes one %s, got %d arguments", name, len(args)))
		case args[0] == "":
			return usage(fmt.Errorf("%s must not be empty", name))
		}
		return nil
	}
}

// SomeArgs is for commands that take one or more, each called name.
func SomeArgs(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(fmt.Errorf("takes at least one %s", name))
		}
		return nil
	}
}

// StoreFlags adds --store and what goes with it.
func StoreFlags(cmd *cobra.Command, o *app.StoreOptions) {
	def := os.Getenv("RETRYLENS_STORE")
	f := cmd.Flags()
	f.StringVar(&o.Address, "store", "", "`ADDRESS`: embedded:DIR, clickhouse://user:pass@host:9000[,host2:9000]/db (?secure=true for TLS) or http(s)://…; default $RETRYLENS_STORE, else "+app.DefaultStore)
	f.StringVar(&o.Cluster, "cluster", "", "`NAME` of the cluster in the server's remote_servers (default: a single node)")
	f.IntVar(&o.RetentionDays, "retention", 0, "`DAYS` that attempts are kept and accepted (default 400)")
	prev := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if o.Address == "" {
			o.Address = def
		}
		if cmd.Flags().Changed("retention") && o.RetentionDays < 1 {
			return usage(fmt.Errorf("--retention must be positive, got %d", o.RetentionDays))
		}
		if prev != nil {
			return prev(cmd, args)
		}
		return nil
	}
	_ = cmd.RegisterFlagCompletionFunc("store", cobra.FixedCompletions([]string{"embedded:", "clickhouse://", "http://", "https://"}, cobra.ShellCompDirectiveNoSpace))
	_ = cmd.RegisterFlagCompletionFunc("cluster", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("retention", cobra.NoFileCompletions)
}

func version() string {
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		return b.Main.Version
	}
	return "(devel)"
}
