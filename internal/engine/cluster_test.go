package engine_test

import (
	"testing"

	"github.com/retrylens/retrylens/internal/engine/enginetest"
)

func TestTwoShards(t *testing.T) {
	clients := enginetest.StartCluster(t, 2)
	for _, c := range clients {
		conn := connect(t, c)
		exec(t, conn, "CREATE TABLE part (n UInt64) ENGINE = MergeTree ORDER BY n")
		exec(t, conn, "CREATE TABLE whole AS part ENGINE = Distributed(retrylens, retrylens, part, n)")
	}
	one, two := connect(t, clients[0]), connect(t, clients[1])
	exec(t, one, "INSERT INTO whole SELECT number FROM numbers(1000)")
	for name, got := range map[string]uint64{
		"whole from 1": scalar[uint64](t, one, "SELECT count() FROM whole"),
		"whole from 2": scalar[uint64](t, two, "SELECT count() FROM whole"),
		"parts":        scalar[uint64](t, one, "SELECT count() FROM part") + scalar[uint64](t, two, "SELECT count() FROM part"),
	} {
		if got != 1000 {
			t.Errorf("%s: %d rows, want 1000", name, got)
		}
	}
	if got := scalar[uint64](t, one, "SELECT count() FROM part"); got != 500 {
		t.Errorf("shard 1 has %d rows, want 500", got)
	}
	if got := scalar[string](t, two, "SELECT getMacro('shard')"); got != "2" {
		t.Errorf("getMacro('shard') = %q on the second", got)
	}
}
