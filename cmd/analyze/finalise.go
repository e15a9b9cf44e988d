package main

import (
	"github.com/spf13/cobra"

	"github.com/retrylens/retrylens/internal/app"
	"github.com/retrylens/retrylens/internal/app/cli"
)

func finaliseCommand(s app.Streams) *cobra.Command {
	o := app.FinaliseOptions{Streams: s}
	cmd := &cobra.Command{
		Use:   "finalise [flags]",
		Short: "Bring the rollups up to date",
		Long: `finalise computes the rollups by minute, hour and day anew wherever attempts, settlements
or prices have come in, or unfinished operations have become lost. Long reports are then
quick; they are exact with and without it, as what rollups have not seen is read from
attempts.

It works pass after pass until it is ended; with --once it works off everything that is
marked and ends. It may be killed at any time, and run several times at once.`,
		Example: `  analyze finalise --once
  analyze finalise --once --everything --json
  analyze finalise --every 15s --min-age 30s --store clickhouse://writer:secret@db:9000/retrylens`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return app.Finalise(cmd.Context(), o) },
	}
	cli.StoreFlags(cmd, &o.Store)
	f := cmd.Flags()
	f.BoolVar(&o.Once, "once", false, "work off everything that is marked, and end")
	f.BoolVar(&o.Everything, "everything", false, "with --once: mark every minute that has attempts first")
	f.DurationVar(&o.Every, "every", app.DefaultFinaliseEvery, "`DURATION` between passes")
	f.DurationVar(&o.MinAge, "min-age", app.DefaultFinaliseMinAge, "`DURATION` for which a minute must have got no rows before it is computed")
	f.BoolVar(&o.JSON, "json", false, "write what each pass did as JSON, a line each")
	for _, name := range []string{"every", "min-age"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return cmd
}
