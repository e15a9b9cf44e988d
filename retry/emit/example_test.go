package emit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/emit"
)

// To the ingest service, with a spool for when it is away.
func Example() {
	sink, err := emit.HTTP(emit.HTTPOptions{URL: "https://ingest.example", Token: os.Getenv("RETRYLENS_TOKEN")})
	if err != nil {
		fmt.Println(err)
		return
	}
	dir, _ := os.MkdirTemp("", "spool")
	defer os.RemoveAll(dir)
	spool, err := emit.OpenSpool(dir, 1<<30)
	if err != nil {
		fmt.Println(err)
		return
	}
	records, err := emit.New(emit.Options{Sink: sink, Spool: spool})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	fmt.Println(records.Close(ctx))
	// Output: <nil>
}

// For those without a service: NDJSON on standard output or in a file, for `ingest import`.
func ExampleWriter() {
	records, _ := emit.New(emit.Options{Sink: emit.Writer(os.Stdout), Emitter: "me", Tenant: "acme"})
	records.Emit(&retrylens.Attempt{LogicalID: "op", Provider: "openai", Outcome: retrylens.OutcomeSuccess, StartedAt: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}, nil)
	_ = records.Close(context.Background())
	// Output: {"tenant":"acme","logical_id":"op","operation_started_at":"2026-11-30T12:00:00.000Z","hop":"client","attempt":0,"cause":"first","provider":"openai","started_at":"2026-11-30T12:00:00.000Z","outcome":"success","delivery":"full","upstream_calls":1,"final":true,"usage_source":"unknown","cost_source":"none","emitter":"me","seq":0}
}

// To a file of this process; `ingest import FILE` takes it.
func ExampleFile() {
	dir, _ := os.MkdirTemp("", "records")
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "attempts.ndjson")
	sink, err := emit.File(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	records, _ := emit.New(emit.Options{Sink: sink, Tenant: "acme"})
	for range 3 {
		records.Emit(&retrylens.Attempt{LogicalID: "op", Provider: "openai", Outcome: retrylens.OutcomeSuccess, StartedAt: time.Now()}, nil)
	}
	fmt.Println(records.Close(context.Background()))
	text, _ := os.ReadFile(file)
	fmt.Println(strings.Count(string(text), "\n"), "records")
	// Output:
	// <nil>
	// 3 records
}
