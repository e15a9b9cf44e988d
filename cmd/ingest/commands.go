package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/retrylens/retrylens/internal/app"
	"github.com/retrylens/retrylens/internal/app/cli"
	"github.com/retrylens/retrylens/internal/query"
)

func newCommand(s app.Streams) *cobra.Command {
	root := cli.Root(&cobra.Command{
		Use:   "ingest",
		Short: "Bring attempt records into a store",
		Long:  "ingest brings attempt records (docs/record.md), one for each try at serving one\nlogical LLM request, into ClickHouse. What they say is told by analyze.",
	}, s)
	root.AddCommand(importCommand(s), simCommand(s), serveCommand(s))
	return root
}

func importCommand(s app.Streams) *cobra.Command {
	o := app.ImportOptions{Streams: s}
	cmd := &cobra.Command{
		Use:   "import [flags] FILE...",
		Short: "Import NDJSON files of attempt records",
		Long: `import reads files of attempt records, one JSON object a line, plain or
compressed with gzip or zstd (told by their first bytes); - is standard input.

It is idempotent: a record that comes again replaces itself, so after any failure
import the same files again.

Good lines are kept, bad ones are named on standard error as
source:line: field: reason, the first 20 of them, and all go to --rejects FILE as
NDJSON. A summary goes to standard output:
  {"accepted":…,"rejected":…,"rejected_by_reason":{…}}
Bad lines alone do not make it fail: it exits with 1 when no line was accepted
and some were refused, else with 0.

An embedded store is migrated first; another one only with --migrate.`,
		Example: `  ingest import attempts.ndjson
  ingest import --rejects bad.ndjson monday.ndjson.zst tuesday.ndjson.gz
  zcat *.gz | ingest import --store clickhouse://writer:secret@db:9000/retrylens -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Files = args
			im, err := app.NewImport(o)
			if err != nil {
				return err
			}
			return im.Run(cmd.Context())
		},
	}
	cli.StoreFlags(cmd, &o.Store)
	f := cmd.Flags()
	f.BoolVar(&o.Migrate, "migrate", false, "bring the schema of an external store up to date first")
	f.StringVar(&o.Tenant, "tenant", "", "`TENANT` of records that name none (default: those are refused)")
	f.StringVar(&o.RejectsFile, "rejects", "", "`FILE` that gets every bad line with its source, line, field and reason; overwritten")
	_ = cmd.RegisterFlagCompletionFunc("tenant", cobra.NoFileCompletions)
	return cmd
}

func simCommand(s app.Streams) *cobra.Command {
	o := app.SimulateOptions{Streams: s}
	cmd := &cobra.Command{
		Use:   "sim [flags]",
		Short: "Simulate callers and providers, write attempt records",
		Long: `sim writes the attempts of a simulated fleet with a plain retry loop as NDJSON. In
the middle third one zone of a provider fails: retries hide it from the error
ratio, a masked outage. No figure is drawn, all follow from fault and policy. The
same seed, start and options give the same records.

--trace replays the arrivals of a CSV: timestamp, prompt tokens, completion tokens,
or the columns of the Azure LLM inference traces.`,
		Example: `  ingest sim | ingest import -
  ingest sim --seed 7 --hours 6 --start 2026-11-28T00:00:00Z --out attempts.ndjson.zst
  ingest sim --trace conversations.csv --out -`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range []string{"hours", "per-minute"} {
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
	f.Uint64Var(&o.Seed, "seed", 1, "`N`: another seed gives other records")
	f.Float64Var(&o.Hours, "hours", 0, "`H` hours of virtual time (default 24)")
	f.StringVar(&o.Start, "start", "", "`TIME` at which it begins: "+query.TimeSyntax+" (default: so that it ends now)")
	f.Float64Var(&o.PerMinute, "per-minute", 0, "`N` operations a minute, in the mean (default 60)")
	f.StringVar(&o.Trace, "trace", "", "`CSV` of arrivals to replay instead of random ones")
	f.StringVar(&o.Out, "out", "-", "`FILE`; .gz and .zst are compressed; - is standard output")
	for _, name := range []string{"seed", "hours", "start", "per-minute"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return cmd
}
