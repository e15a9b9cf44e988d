package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/ingest"
)

const importBatch = 50_000

// importRows compares the whole import with a bare insert of the same columns:
// the table's own rows, read back block by block and inserted into its twin.
func (b *bench) importRows(ctx context.Context) (err error) {
	sample, err := lines(ctx, 400_000)
	if err != nil {
		return err
	}
	body := bytes.Join(sample, []byte("\n"))
	store, err := b.store(ctx, "retrylens_import")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	start := time.Now()
	summary, cpu, err := b.importBody(ctx, store, body)
	if err != nil {
		return err
	}
	ours := float64(summary.Accepted) / time.Since(start).Seconds()
	bare, bareCPU, err := b.bareInsert(ctx)
	if err != nil {
		return err
	}
	b.printf("## Import\n\n%d lines of 460–600 bytes, batches of %d, one process; CPU is that of the importing process, the engine's apart.\n\n", summary.Accepted, importBatch)
	b.printf("| way | rows/s | CPU-µs a row |\n|---|---:|---:|\n")
	b.printf("| `ingest import` (read, decode, validate, insert) | %.0f | %.2f |\n", ours, 1e6*cpu/float64(summary.Accepted))
	b.printf("| bare clickhouse-go insert of the same columns (baseline) | %.0f | %.2f |\n\n", bare, 1e6*bareCPU/float64(summary.Accepted))
	return nil
}

func (b *bench) importBody(ctx context.Context, store *clickhouse.Store, body []byte) (ingest.Summary, float64, error) {
	im, err := ingest.New(ingest.Options{
		Sink: store, BatchRows: importBatch,
		Limits: func() retrylens.Limits { return retrylens.Limits{Now: simStart.Add(48 * time.Hour)} },
	})
	if err != nil {
		return ingest.Summary{}, 0, err
	}
	before := ownCPU()
	summary, err := im.Run(ctx, ingest.ReaderSource("bench", bytes.NewReader(body)))
	return summary, ownCPU() - before, err
}

// bareInsert sends the imported rows again, as blocks that are ready in memory,
// to an empty table of the same shape and views.
func (b *bench) bareInsert(ctx context.Context) (rowsPerSecond, cpu float64, err error) {
	c, err := b.config(ctx, "retrylens_bare")
	if err != nil {
		return 0, 0, err
	}
	twin, err := b.store(ctx, "retrylens_bare")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, twin.Close()) }()
	o, err := ch.ParseDSN(c.URL)
	if err != nil {
		return 0, 0, err
	}
	o.Compression = &ch.Compression{Method: ch.CompressionLZ4}
	conn, err := ch.Open(o)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	data, err := readColumns(ctx, conn)
	if err != nil {
		return 0, 0, err
	}
	start, before := time.Now(), ownCPU()
	for _, block := range data.blocks {
		batch, err := conn.PrepareBatch(ctx, "INSERT INTO retrylens_bare.attempts ("+data.names+")")
		if err != nil {
			return 0, 0, err
		}
		for i, column := range block {
			if err := batch.Column(i).Append(column); err != nil {
				return 0, 0, fmt.Errorf("column %d: %w", i, err)
			}
		}
		if err := batch.Send(); err != nil {
			return 0, 0, err
		}
	}
	return float64(data.rows) / time.Since(start).Seconds(), ownCPU() - before, nil
}

// ownCPU is the CPU time of this process in seconds.
func ownCPU() float64 {
	data, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	// The fields after the command's name, which ends with the last ")".
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	var user, system float64
	_, _ = fmt.Sscan(string(fields[11]), &user)
	_, _ = fmt.Sscan(string(fields[12]), &system)
	const ticksPerSecond = 100
	return (user + system) / ticksPerSecond
}
