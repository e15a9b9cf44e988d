package main

import (
	"github.com/spf13/cobra"

	"github.com/retrylens/retrylens/internal/app"
	"github.com/retrylens/retrylens/internal/app/cli"
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
