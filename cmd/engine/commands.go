package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrylens/retrylens/internal/engine"
	"github.com/retrylens/retrylens/internal/engine/datadir"
	"github.com/retrylens/retrylens/internal/engine/host"
)

const exitCodes = `Exit codes:
  0  all is well
  1  another failure
  2  a flag or argument is wrong
  3  libchdb.so is missing or cannot be loaded (run scripts/fetch-engine.sh)
  4  the data directory has an engine already, or cannot be written
  5  the port is busy
  6  no answer in time
  7  the engine did not stop in time and was ended
  8  status: no engine runs`

func newCommand(stdout, stderr *os.File) *cobra.Command {
	root := &cobra.Command{
		Use:   "engine",
		Short: "The embedded ClickHouse of a Retrylens data directory",
		Long: "engine runs ClickHouse out of libchdb.so on loopback, one process for each\n" +
			"data directory.  ingest, serve and analyze start it by themselves; run it by\n" +
			"hand to look into the data or to keep it up.\n\n" + exitCodes,
		Args:          knownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w: %w", engine.ErrUsage, err)
	})
	root.AddCommand(serveCommand(stderr), startCommand(stderr), statusCommand(), versionCommand())
	return root
}

func serveCommand(stderr *os.File) *cobra.Command {
	o := host.Options{CrashOutput: stderr, Logger: slog.New(slog.NewTextHandler(stderr, nil))}
	cmd := &cobra.Command{
		Use:     "serve --data DIR",
		Short:   "Run the engine in the foreground until SIGTERM or SIGINT",
		Example: "  engine serve --data ./data --http 8123 --tcp 9000",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return host.Serve(cmd.Context(), o)
		},
	}
	addFlags(cmd, &o, 0)
	return cmd
}

func startCommand(stderr *os.File) *cobra.Command {
	o := host.Options{CrashOutput: stderr, Logger: slog.New(slog.NewTextHandler(stderr, nil))}
	cmd := &cobra.Command{
		Use:   "start --data DIR",
		Short: "Start the engine detached and return once it answers",
		Long: "start runs \"engine serve\" in a session of its own and prints its engine.json.\n" +
			"The engine writes to DIR/engine.log and leaves when it has had no client for\n" +
			"the time of --linger.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := host.Detach(cmd.Context(), o)
			if err != nil {
				return err
			}
			return printState(cmd, s)
		},
	}
	addFlags(cmd, &o, engine.DefaultLinger)
	return cmd
}

func addFlags(cmd *cobra.Command, o *host.Options, linger time.Duration) {
	f := cmd.Flags()
	f.StringVar(&o.Dir, "data", "", "data directory, made if missing (required)")
	f.StringVar(&o.Library, "lib", "", "libchdb.so (default $RETRYLENS_CHDB, else the one that scripts/fetch-engine.sh installed)")
	f.IntVar(&o.HTTPPort, "http", 0, "HTTP port on loopback (0: a free one)")
	f.IntVar(&o.TCPPort, "tcp", 0, "native TCP port on loopback (0: a free one)")
	f.DurationVar(&o.Linger, "linger", linger, "leave when there was no client for this long (0: stay)")
	f.Int64Var(&o.MemoryBytes, "memory", 0, "limit in bytes for all queries and caches (0: 75% of RAM)")
	f.StringVar(&o.LogLevel, "log-level", engine.DefaultLogLevel, "what ClickHouse writes to DIR/log: error, warning, information, debug, trace")
	f.StringVar(&o.ConfigFile, "config", "", "file with more XML for inside <clickhouse>, besides DIR/extra.xml")
	f.DurationVar(&o.StartTimeout, "start-timeout", engine.DefaultStartTimeout, "give up a start after this long")
	f.DurationVar(&o.StopTimeout, "stop-timeout", 30*time.Second, "end the hard way after this long")
}

func statusCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "status --data DIR",
		Short: "Tell whether an engine runs in DIR, and where",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return status(cmd, dir)
		},
	}
	cmd.Flags().StringVar(&dir, "data", "", "data directory (required)")
	return cmd
}

func status(cmd *cobra.Command, dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("%w: --data: %w", engine.ErrUsage, err)
	}
	d, err := datadir.Open(dir)
	if err != nil {
		return err
	}
	l, s, err := d.Look()
	switch {
	case err != nil:
		return err
	case l == datadir.Dead:
		return fmt.Errorf("%w in %s", engine.ErrNotUp, d)
	case l == datadir.Busy:
		return fmt.Errorf("%w in %s yet: one is starting or stopping; see %s", engine.ErrNotUp, d, d.EngineLog())
	}
	return printState(cmd, s)
}

func printState(cmd *cobra.Command, s datadir.State) error {
	e := json.NewEncoder(cmd.OutOrStdout())
	e.SetIndent("", "  ")
	return e.Encode(s)
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this command and of the library it wants",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			lib, err := engine.FindLibrary("")
			if err != nil && !errors.Is(err, engine.ErrNoLibrary) {
				return err
			}
			if err != nil {
				lib = "not installed; run: scripts/fetch-engine.sh"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "engine %s\nlibchdb %s (%s)\n", buildVersion(), engine.Release, lib)
			return err
		},
	}
}

func buildVersion() string {
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		return b.Main.Version
	}
	return "(devel)"
}

func knownCommand(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%w: unknown command %q; see engine --help", engine.ErrUsage, args[0])
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s takes no argument, got %q", engine.ErrUsage, cmd.CommandPath(), args[0])
}
