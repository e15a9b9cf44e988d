package main

import (
	"github.com/spf13/cobra"

	"github.com/retrylens/retrylens/internal/app"
	"github.com/retrylens/retrylens/internal/app/cli"
	"github.com/retrylens/retrylens/internal/query"
)

func detectCommand(s app.Streams) *cobra.Command {
	o := app.DetectOptions{Streams: s}
	cmd := &cobra.Command{
		Use:   "detect [flags]",
		Short: "Say of history what the detector would have said",
		Long: `detect replays history through the detector of masked outages (docs/detector.md) and
writes each evaluation as a line of JSON: every 15 s, for every tenant, provider and
model and for all (*), the state, the votes that led to it and the figures. It answers:
would it have paged me last month?

What was known at a moment is taken to be the records that had ended by then.

History is that of files (--records) or of the store (--from, --to). Files should be in
the order in which their records were sent, as ingest sim and emitters write them; the
store's are read with --learn more before --from, for the baselines.

Times are ` + query.TimeSyntax + `.`,
		Example: `  analyze detect --records attempts.ndjson.zst --changes
  ingest sim --scenario masked_outage --hours 6 | analyze detect --records - --changes
  analyze detect --from 2026-11-01 --to 2026-12-01 --changes > november.ndjson`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := app.NewDetect(o)
			if err != nil {
				return err
			}
			return d.Run(cmd.Context())
		},
	}
	cli.StoreFlags(cmd, &o.Store)
	f := cmd.Flags()
	f.StringArrayVar(&o.Records, "records", nil, "`FILE` of attempts, NDJSON, gz or zst, - is standard input; repeatable")
	f.StringVar(&o.From, "from", "", "`TIME` of the first evaluation (default: of files their beginning)")
	f.StringVar(&o.To, "to", "", "`TIME` after the last evaluation (default: now, of files their end)")
	f.StringVar(&o.Learn, "learn", app.DefaultLearn, "`DURATION` before --from that baselines are learned from, of the store")
	f.StringVar(&o.Tenant, "tenant", "", "`TENANT` for records of files that name none")
	f.BoolVar(&o.Changes, "changes", false, "write only evaluations whose state is another than before")
	for _, name := range []string{"from", "to", "learn", "tenant"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return cmd
}
