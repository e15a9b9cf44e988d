package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/retrylens/retrylens/internal/app"
	"github.com/retrylens/retrylens/internal/app/cli"
)

func serveCommand(s app.Streams) *cobra.Command {
	o := app.ServeOptions{Streams: s}
	var limitMB int64
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Take attempt records over HTTP",
		Long: `serve takes attempt records at POST /v1/attempts (docs/record.md), keeps them in a
spool on disk until the store has them, and answers when they are safe there: what
was answered with 202 is never lost and never doubled, whatever is killed.

The store may be away: records are taken until the spool reaches its limit, then
refused with 503 and Retry-After. What the store refuses for good is kept in
DIR/dead-letters.ndjson, the reasons in dead-letters.reasons.ndjson beside it;
ingest import takes the file.

A token is known by its SHA-256 (printf %s TOKEN | sha256sum). The file has one a
line, and is read again when it changes and on SIGHUP:
  {"sha256":"…","tenant":"acme"}
  {"sha256":"…","tenants":["acme","globex"]}
  {"sha256":"…","tenants":["*"]}

Other paths: /healthz, /readyz (?require=spool), /metrics. SIGINT or SIGTERM stops
in order: requests are finished and the spool is drained as far as --grace allows;
a second one stops at once. Nothing is lost either way.`,
		Example: `  ingest serve --spool ./spool --tokens tokens.ndjson
  ingest serve --store clickhouse://writer:secret@db:9000/retrylens --spool /var/lib/retrylens --tokens tokens.ndjson \
    --listen :8480 --tls-cert cert.pem --tls-key key.pem
  ingest serve --spool ./spool --insecure --tenant dev`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reload := make(chan os.Signal, 1)
			signal.Notify(reload, syscall.SIGHUP)
			defer signal.Stop(reload)
			o.Reload, o.SpoolLimit = reload, limitMB<<20
			serve, err := app.NewServe(o)
			if err != nil {
				return err
			}
			return serve.Run(cmd.Context())
		},
	}
	cli.StoreFlags(cmd, &o.Store)
	f := cmd.Flags()
	f.BoolVar(&o.Migrate, "migrate", false, "bring the schema of an external store up to date first")
	f.StringVar(&o.Listen, "listen", app.DefaultListen, "`ADDRESS` to listen on")
	f.StringVar(&o.SpoolDir, "spool", "", "`DIR` in which records wait for the store; made if missing")
	f.Int64Var(&limitMB, "spool-limit", 4096, "`MIB` that the spool may take")
	f.StringVar(&o.Durability, "durability", "fsync", "when a record is safe: `fsync` (a power cut), os (the end of the process), memory (neither)")
	f.StringVar(&o.TokensFile, "tokens", "", "`FILE` of tokens")
	f.BoolVar(&o.Insecure, "insecure", false, "ask for no token; on a loopback address only")
	f.StringVar(&o.Tenant, "tenant", "", "with --insecure: `TENANT` of records that name none")
	f.StringVar(&o.TLS.Cert, "tls-cert", "", "`FILE` of the certificate; read again when it changes")
	f.StringVar(&o.TLS.Key, "tls-key", "", "`FILE` of its key")
	f.StringVar(&o.TLS.ClientCA, "client-ca", "", "`FILE` of authorities: every client needs a certificate of theirs")
	f.Float64Var(&o.Limits.RecordsPerSecond, "tenant-records", 0, "`N` records a second that a tenant may send (default no limit)")
	f.Float64Var(&o.Limits.BytesPerSecond, "tenant-bytes", 0, "`N` bytes a second that a tenant may send, decompressed (default no limit)")
	f.DurationVar(&o.Grace, "grace", app.DefaultServeGrace, "how long a stop may take to drain the spool")
	f.BoolVar(&o.JSONLogs, "log-json", false, "write the log as JSON")
	f.BoolVar(&o.Verbose, "verbose", false, "log every refused body too")
	_ = cmd.RegisterFlagCompletionFunc("durability", cobra.FixedCompletions([]string{"fsync", "os", "memory"}, cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"listen", "spool-limit", "tenant", "tenant-records", "tenant-bytes", "grace"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return cmd
}
