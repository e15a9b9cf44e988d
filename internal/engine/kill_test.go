package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/retrylens/retrylens/internal/engine/enginetest"
)

const (
	kills     = 10
	batchRows = 500
)

// TestKillUnderInserts kills the engine ten times while batches are inserted, each
// sent again until it is acknowledged.  What was acknowledged must be there, and
// once: rows of the same key replace each other.
//
// A deduplication token would not do.  ClickHouse notes the token before it commits
// the part, so a kill between the two makes it take the batch that is sent again
// for one that it has, and acknowledge what is nowhere: once in about two hundred kills.
func TestKillUnderInserts(t *testing.T) {
	o := enginetest.Options(t)
	c := enginetest.Start(t, enginetest.WithDir(o.Dir))
	conn := connect(t, c)
	exec(t, conn, "CREATE TABLE batches (batch UInt64, n UInt64) ENGINE = ReplacingMergeTree ORDER BY (batch, n)")

	s := &sender{conn: conn}
	ctx, cancel := context.WithCancel(testContext(t))
	done := make(chan error, 1)
	go func() { done <- s.send(ctx) }()
	for i := range kills {
		mark := s.acknowledged.Load()
		eventually(t, "inserts go on", func() bool { return s.acknowledged.Load() >= mark+3 || len(done) > 0 })
		after(t, time.Duration(i)*3*time.Millisecond) // vary where in an insert it falls
		kill(t, c, o.Dir, syscall.SIGKILL)
	}
	s.stop.Store(true)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	cancel()
	requireAllOnce(t, conn, s.acknowledged.Load())
	t.Logf("%d batches acknowledged, %d sent again", s.acknowledged.Load(), s.again)
}

// A sender inserts batch after batch, each until it is acknowledged.
type sender struct {
	conn         driver.Conn
	acknowledged atomic.Uint64
	stop         atomic.Bool
	again        int
}

func (s *sender) send(ctx context.Context) error {
	for batch := uint64(0); !s.stop.Load(); batch++ {
		for s.insert(ctx, batch) != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("batch %d was never acknowledged: %w", batch, ctx.Err())
			}
			s.again++
		}
		s.acknowledged.Add(1)
	}
	return nil
}

func (s *sender) insert(ctx context.Context, batch uint64) error {
	b, err := s.conn.PrepareBatch(ctx, "INSERT INTO batches")
	if err != nil {
		return err
	}
	defer b.Close()
	for n := range uint64(batchRows) {
		if err := b.Append(batch, n); err != nil {
			return err
		}
	}
	return b.Send()
}

func requireAllOnce(t *testing.T, conn driver.Conn, batches uint64) {
	t.Helper()
	if got := scalar[uint64](t, conn, "SELECT uniqExact(batch, n) FROM batches"); got != batches*batchRows {
		t.Errorf("%d different rows are there, %d were acknowledged", got, batches*batchRows)
	}
	if got := scalar[uint64](t, conn, "SELECT count() FROM batches FINAL"); got != batches*batchRows {
		t.Errorf("%d rows are there, %d were acknowledged", got, batches*batchRows)
	}
	if got := scalar[uint64](t, conn, "SELECT max(batch) + 1 FROM batches"); got != batches {
		t.Errorf("%d batches are there, %d were acknowledged", got, batches)
	}
	if got := scalar[uint64](t, conn, "SELECT count() FROM system.detached_parts"); got != 0 {
		t.Errorf("%d broken parts", got)
	}
}
