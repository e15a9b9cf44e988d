package main

import (
	"github.com/spf13/cobra"

	"github.com/retrylens/retrylens/internal/app"
	"github.com/retrylens/retrylens/internal/app/cli"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/query"
)

func newCommand(s app.Streams) *cobra.Command {
	root := cli.Root(&cobra.Command{
		Use:   "analyze",
		Short: "Tell what retries did",
		Long:  "analyze tells from the attempt records of a store what retries did: how much they\namplified, what they rescued, hid, wasted and cost.",
	}, s)
	root.AddCommand(reportCommand(s), seriesCommand(s), opCommand(s), statusCommand(s), watchCommand(s), serveCommand(s), rulesCommand(s), detectCommand(s), classifyCommand(s), simulateCommand(s), costCommand(s), migrateCommand(s), finaliseCommand(s), doctorCommand(s))
	return root
}

func reportCommand(s app.Streams) *cobra.Command {
	o := app.ReportOptions{Streams: s}
	filters := map[metrics.Dimension]*[]string{}
	cmd := &cobra.Command{
		Use:   "report [flags]",
		Short: "Report the figures of a window of operations",
		Long: `report derives every figure (docs/metrics.md) from the attempts of the operations that
started in a window, [--from, --to) or the last --since; without one, of all.

Two figures stand side by side: error_ratio is what a dashboard shows,
attempt_error_ratio what retries hide from it. A wide gap is a masked outage.

Times are ` + query.TimeSyntax + `.

--fail-on makes it a check: NAME OP NUMBER with one of > >= < <=; a figure with several
values takes its key in braces. If any row breaks one, it is named on standard error
and the exit code is 3. A figure without value (a ratio of nothing) breaks none.`,
		Example: `  analyze report --since 1h
  analyze report --from 2026-11-28T00:00:00Z --to 2026-11-29T00:00:00Z --group-by provider,model
  analyze report --since 6h --tenant acme --bucket 5m -o csv
  analyze report --since 5m --fail-on 'amplification>1.2' --fail-on 'latency_ms{p99}>30000'
  analyze report --since 1d --group-by executed_provider,executed_model -o json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runReport(cmd, o, filters, app.NewReport)
		},
	}
	cli.StoreFlags(cmd, &o.Store)
	addWindowFlags(cmd, &o)
	addFilterFlags(cmd, filters)
	addOutputFlags(cmd, &o)
	return cmd
}

func runReport(cmd *cobra.Command, o app.ReportOptions, filters map[metrics.Dimension]*[]string, prepare func(app.ReportOptions) (*app.Report, error)) error {
	o.Filters = map[metrics.Dimension][]string{}
	for d, values := range filters {
		o.Filters[d] = *values
	}
	r, err := prepare(o)
	if err != nil {
		return err
	}
	return r.Run(cmd.Context())
}

func addWindowFlags(cmd *cobra.Command, o *app.ReportOptions) {
	f := cmd.Flags()
	f.StringVar(&o.From, "from", "", "`TIME` at which the window begins (default: unbounded)")
	f.StringVar(&o.To, "to", "", "`TIME` at which the window ends, not part of it (default: unbounded)")
	f.StringVar(&o.Since, "since", "", "`DURATION` before as-of, instead of --from and --to: 90s, 5m, 6h, 7d")
	f.StringVar(&o.AsOf, "as-of", "", "`TIME` to judge unfinished operations from; hides no record (default: now)")
	f.StringSliceVar(&o.GroupBy, "group-by", nil, "`DIMENSIONS`, comma-separated: tenant, service, environment, operation, provider, model; or executed_provider, executed_model for the spend that reconciles with a bill")
	f.StringVar(&o.Bucket, "bucket", "", "`DURATION` of time buckets, such as 5m: a row for each")
	for _, name := range []string{"from", "to", "since", "as-of", "bucket"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	_ = cmd.RegisterFlagCompletionFunc("group-by", completeDimensions)
}

func addFilterFlags(cmd *cobra.Command, filters map[metrics.Dimension]*[]string) {
	for _, d := range metrics.Dimensions {
		if d.Executed() {
			continue
		}
		filters[d] = new([]string)
		cmd.Flags().StringArrayVar(filters[d], string(d), nil, "only operations of this `"+string(d)+"`; repeatable: any of them")
		_ = cmd.RegisterFlagCompletionFunc(string(d), cobra.NoFileCompletions)
	}
}

func addOutputFlags(cmd *cobra.Command, o *app.ReportOptions) {
	f := cmd.Flags()
	f.StringVarP(&o.Format, "output", "o", "table", "`FORMAT`: table, json, csv or parquet (every figure, exact) or md")
	f.BoolVar(&o.Explain, "explain", false, "write formula and rows counted under each figure (table, md)")
	f.BoolVar(&o.SQL, "sql", false, "print the statements instead of running them")
	f.StringArrayVar(&o.FailOn, "fail-on", nil, "`CONDITION` such as 'amplification>1.2' that makes the exit code 3; repeatable")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(app.Formats, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("fail-on", completeFigures)
}

func migrateCommand(s app.Streams) *cobra.Command {
	o := app.MigrateOptions{Streams: s}
	cmd := &cobra.Command{
		Use:   "migrate [flags]",
		Short: "Bring the schema of a store up to date",
		Long: `migrate applies the migrations that a store has not yet and sets the retention. It
may run twice, and by two at once. The names of those applied go to standard output.

An embedded store is migrated by every command that needs it; this is for servers and
clusters.`,
		Example: `  analyze migrate --store clickhouse://admin:secret@db:9000/retrylens
  analyze migrate --store 'clickhouse://admin:secret@a:9440,b:9440/retrylens?secure=true' --cluster main --retention 90`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return app.Migrate(cmd.Context(), o) },
	}
	cli.StoreFlags(cmd, &o.Store)
	return cmd
}

func opCommand(s app.Streams) *cobra.Command {
	o := app.OperationOptions{Streams: s}
	cmd := &cobra.Command{
		Use:   "op [flags] ID",
		Short: "Show the attempts of one operation",
		Long: `op shows a logical operation as a waterfall: a line for each attempt with outcome,
status, offset, duration, tokens, cost and what became of it, gateway attempts under
the client's, the sleeps between them hatched; then the verdict. If several tenants
have an operation with that logical_id, all are shown.

Without one it exits with 1.`,
		Example: `  analyze op 0190b0a2-6c00-7abc-8def-0123456789ab
  analyze op --tenant acme order-4711 -o json`,
		Args: cli.OneArg("logical_id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.LogicalID = args[0]
			return app.ShowOperation(cmd.Context(), o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cli.StoreFlags(cmd, &o.Store)
	f := cmd.Flags()
	f.StringArrayVar(&o.Tenants, "tenant", nil, "only of this `TENANT`; repeatable")
	f.StringVarP(&o.Format, "output", "o", "text", "`FORMAT`: text or json")
	f.StringVar(&o.AsOf, "as-of", "", "`TIME` to judge an unfinished operation from (default: now)")
	_ = cmd.RegisterFlagCompletionFunc("tenant", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("as-of", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(app.OperationFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func doctorCommand(s app.Streams) *cobra.Command {
	o := app.DoctorOptions{Streams: s}
	cmd := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Check a store and say what to do",
		Long: `doctor checks what a store needs, a line each: ok, warn or fail, and what to do. An
embedded engine that does not run is started. It changes no data.

It exits with 1 if a check failed, with 5 if the store cannot be reached.`,
		Example: `  analyze doctor
  analyze doctor --store https://reader:secret@db:8443/retrylens`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return app.Doctor(cmd.Context(), o) },
	}
	cli.StoreFlags(cmd, &o.Store)
	return cmd
}

func classifyCommand(s app.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "classify FILE",
		Short: "Tell the error class of recorded failures",
		Long: `classify reads failures of LLM calls, one JSON object a line (id, provider, status,
headers, body, transport_error and so on: docs/classification.md), and writes for each
the id, class, retryable, pre_send, needs_key and retry_after_ms. - is standard input.

A line that cannot be read is named on standard error, the others are answered; the
exit code is then 1.`,
		Example: `  analyze classify failures.jsonl
  analyze classify - < failures.jsonl`,
		Args: cli.OneArg("FILE"),
		RunE: func(_ *cobra.Command, args []string) error { return app.Classify(s, args[0]) },
	}
}
