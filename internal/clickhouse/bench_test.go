package clickhouse_test

import (
	"context"
	"testing"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics/histories"
	"github.com/retrylens/retrylens/internal/sim"
)

// BenchmarkWrite stores blocks of simulated attempts; its CPU profile is that of
// the writer, the engine being a process of its own.
func BenchmarkWrite(b *testing.B) {
	store := newStore(b)
	var batch []retrylens.Attempt
	err := sim.Run(context.Background(), sim.Options{Seed: 3, Start: histories.Base, OperationsPerMinute: 30}, func(a *retrylens.Attempt) error {
		batch = append(batch, *a)
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := store.Write(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(batch))*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
