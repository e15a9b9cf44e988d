package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/retrylens/retrylens/internal/app"
	"github.com/retrylens/retrylens/internal/app/cli"
	"github.com/retrylens/retrylens/internal/query"
)

func simCommand(s app.Streams) *cobra.Command {
	o := app.SimulateOptions{Streams: s}
	list := false
	cmd := &cobra.Command{
		Use:   "sim [flags]",
		Short: "Simulate callers and providers, write attempt records",
		Long: `sim plays a scenario (docs/simulator.md; --list names them) and writes the records
that its emitters would send, as NDJSON. Every decision of a caller is the retry
policy's, or an SDK's defaults; every failure is a provider's own bytes, judged by the
classifier. No figure of an incident is drawn: all follow. The same seed, start and
options give the same records.

What happened when, the truth to hold reports and alerts to, goes to standard error,
and with --truth to a file.

--trace replays the arrivals of a CSV: timestamp, prompt tokens, completion tokens,
or the columns of the Azure LLM inference traces.`,
		Example: `  ingest sim | ingest import -
  ingest sim --list
  ingest sim --scenario metastable --seed 7 --hours 3 --start 2026-11-28T00:00:00Z --out attempts.ndjson.zst
  ingest sim --scenario masked_outage --size 5 --at 1h --for 30m --hours 2 --truth truth.ndjson --out attempts.ndjson
  ingest sim --trace conversations.csv --out -`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if list {
				return app.ListScenarios(s.Out)
			}
			for _, name := range []string{"hours", "per-minute", "ops-per-minute", "size"} {
				if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "0" {
					return &app.UsageError{Err: fmt.Errorf("--%s must be above 0", name)}
				}
			}
			sim, err := app.NewSimulate(o)
			if err != nil {
				return err
			}
			return sim.Run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Scenario, "scenario", "masked_outage", "`NAME` of what happens")
	f.BoolVar(&list, "list", false, "name the scenarios and end")
	f.Uint64Var(&o.Seed, "seed", 1, "`N`: another seed gives other records")
	f.Float64Var(&o.Hours, "hours", 0, "`H` hours of virtual time (default 24)")
	f.StringVar(&o.Start, "start", "", "`TIME` at which it begins: "+query.TimeSyntax+" (default: so that it ends now)")
	f.Float64Var(&o.PerMinute, "ops-per-minute", 0, "`N` operations a minute, in the mean (default 60)")
	f.Float64Var(&o.PerMinute, "per-minute", 0, "another name of --ops-per-minute")
	f.IntVar(&o.Size, "size", 0, "how bad it is, `N` of 1..5 (default 3)")
	f.DurationVar(&o.At, "at", 0, "when it happens, from the start (default a third into the time)")
	f.DurationVar(&o.For, "for", 0, "how long it lasts (default the scenario's own, at most a third of the time)")
	f.StringVar(&o.Trace, "trace", "", "`CSV` of arrivals to replay instead of random ones")
	f.StringVar(&o.Out, "out", "-", "`FILE`; .gz and .zst are compressed; - is standard output")
	f.StringVar(&o.Truth, "truth", "", "`FILE` that gets what was so from when to when, as NDJSON; overwritten")
	_ = cmd.RegisterFlagCompletionFunc("scenario", cobra.FixedCompletions(app.ScenarioNames(), cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"seed", "hours", "start", "per-minute", "ops-per-minute", "size", "at", "for"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return cmd
}
