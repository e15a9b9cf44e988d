package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/retrylens/retrylens/internal/app"
	"github.com/retrylens/retrylens/internal/app/cli"
	"github.com/retrylens/retrylens/internal/metrics"
)

func serveCommand(s app.Streams) *cobra.Command {
	o := app.ConsoleOptions{Streams: s}
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Serve the API and metrics, and keep the rollups up to date",
		Long: `serve answers questions over HTTP (docs/api.md; the OpenAPI document is at
/api/v1/openapi.yaml), shows the figures of the last minute, 5 minutes and hour to
Prometheus at /metrics, tells its health at /healthz and /readyz, and runs the
finaliser. It evaluates alert rules and tells Alertmanagers, webhooks and standard output;
of several analyzers on one store one does.

Its pages are for people: / is the one to open when something is wrong (docs/ui.md).

It starts without its store and waits for it. It listens on loopback only, unless --auth
names those who may read, or --insecure lets everybody.`,
		Example: `  analyze serve
  analyze serve --listen 127.0.0.1:0 --store clickhouse://reader:secret@db:9000/retrylens --no-finalise`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Version = cmd.Root().Version
			reload := make(chan os.Signal, 1)
			signal.Notify(reload, syscall.SIGHUP)
			defer signal.Stop(reload)
			o.Reload = reload
			c, err := app.NewConsole(o)
			if err != nil {
				return err
			}
			return c.Run(cmd.Context())
		},
	}
	cli.StoreFlags(cmd, &o.Store)
	f := cmd.Flags()
	f.StringVar(&o.Listen, "listen", app.DefaultConsoleListen, "`ADDRESS` to listen on; port 0 takes a free one")
	f.BoolVar(&o.Insecure, "insecure", false, "listen elsewhere than on loopback: everybody who can reach it may read")
	f.StringVar(&o.Auth, "auth", "", "`FILE` of the tokens of those who may read, as of ingest serve --tokens; a token for some tenants shows those only")
	f.BoolVar(&o.NoFinalise, "no-finalise", false, "leave the rollups to another analyze serve or finalise")
	f.IntVar(&o.TopSeries, "top-series", app.DefaultTopSeries, "how many tenants × providers × models /metrics shows; the others are one series")
	addAlertFlags(cmd, &o.Alerts)
	f.BoolVar(&o.JSONLogs, "log-json", false, "log JSON lines")
	f.BoolVarP(&o.Verbose, "verbose", "v", false, "log more")
	for _, name := range []string{"listen", "top-series"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return cmd
}

func addAlertFlags(cmd *cobra.Command, o *app.AlertOptions) {
	f := cmd.Flags()
	f.StringVar(&o.RulesFile, "rules", "", "`FILE` of alert rules (docs/alerts.md); read again on SIGHUP (default: those of analyze rules default)")
	f.StringSliceVar(&o.Alertmanagers, "alertmanager", nil, "`URL` of an Alertmanager, such as http://localhost:9093; repeatable: each is told")
	f.StringSliceVar(&o.Webhooks, "webhook", nil, "`URL` that gets a POST when an alert fires and when it is resolved; repeatable")
	f.BoolVar(&o.ToOut, "alerts-to-stdout", false, "write alerts that fire and are resolved to standard output, a JSON line each")
	f.StringVar(&o.ExternalURL, "external-url", "", "`URL` at which people reach this service: alerts link to it")
	f.StringVar(&o.RunbookURL, "runbook-url", "", "`URL` of the folder that holds the runbooks: alerts link to their page")
	f.DurationVar(&o.Every, "evaluate-every", app.DefaultEvaluateEvery, "`DURATION` between evaluations of the rules")
	for _, name := range []string{"alertmanager", "webhook", "external-url", "runbook-url", "evaluate-every"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

func seriesCommand(s app.Streams) *cobra.Command {
	o := app.ReportOptions{Streams: s}
	filters := map[metrics.Dimension]*[]string{}
	cmd := &cobra.Command{
		Use:   "series [flags]",
		Short: "Show figures over time",
		Long: `series shows figures of a report over time: a curve for each group and figure, then
every value. Without --bucket the window is cut into at most 150 pieces.`,
		Example: `  analyze series --since 6h --figure amplification,retry_success_ratio --group-by provider
  analyze series --since 1d --figure 'latency_ms{p99}' --bucket 1h -o json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runReport(cmd, o, filters, app.NewSeries)
		},
	}
	cli.StoreFlags(cmd, &o.Store)
	addWindowFlags(cmd, &o)
	addFilterFlags(cmd, filters)
	f := cmd.Flags()
	f.StringSliceVar(&o.Figures, "figure", nil, "`FIGURES`, comma-separated, as in a report; one of several values as name{key} (default amplification)")
	f.StringVarP(&o.Format, "output", "o", "table", "`FORMAT`: table, json, csv or parquet (these two with every figure)")
	_ = cmd.RegisterFlagCompletionFunc("figure", completeFigures)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(app.SeriesFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func statusCommand(s app.Streams) *cobra.Command {
	o := app.StatusOptions{Streams: s}
	cmd := &cobra.Command{
		Use:   "status [flags]",
		Short: "Show how the store is, and the last hour, on one screen",
		Long: `status shows the main figures of the last hour, how far the rollups are, what the ingest
services last said of themselves, and how much of the truth the store can have seen.`,
		Example: `  analyze status
  analyze status -o json --store clickhouse://reader:secret@db:9000/retrylens`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Version = cmd.Root().Version
			return app.ShowStatus(cmd.Context(), o)
		},
	}
	cli.StoreFlags(cmd, &o.Store)
	cmd.Flags().StringVarP(&o.Format, "output", "o", "text", "`FORMAT`: text or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func watchCommand(s app.Streams) *cobra.Command {
	o := app.StatusOptions{Streams: s}
	cmd := &cobra.Command{
		Use:   "watch [flags]",
		Short: "Show the status again and again",
		Long:  `watch shows what status shows, anew every few seconds, until it is ended.`,
		Example: `  analyze watch
  analyze watch --every 30s --count 10 -o json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Version = cmd.Root().Version
			return app.Watch(cmd.Context(), o)
		},
	}
	cli.StoreFlags(cmd, &o.Store)
	f := cmd.Flags()
	f.StringVarP(&o.Format, "output", "o", "text", "`FORMAT`: text or json")
	f.DurationVar(&o.Every, "every", app.DefaultWatchEvery, "`DURATION` between two looks")
	f.IntVar(&o.Count, "count", 0, "end after so many looks (default: when it is ended)")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"every", "count"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return cmd
}
