package retrylens_test

import (
	"testing"

	"github.com/retrylens/retrylens"
)

// Stored versions depend on the content hash: these figures never change.
func TestContentHashIsPinned(t *testing.T) {
	usual := valid()
	usual.Normalize()
	revised := usual
	revised.Revision = 3
	success := valid()
	succeed(&success)
	success.Attributes = nil
	success.Normalize()
	for name, c := range map[string]struct {
		attempt retrylens.Attempt
		want    uint64
	}{
		"error":    {usual, 0xe8c7d1c713a011f7},
		"revision": {revised, 0xbfca0c536a4d4e58},
		"success":  {success, 0x8c8543247a70a6da},
	} {
		if got := c.attempt.ContentHash(); got != c.want {
			t.Errorf("%s: %#x, want %#x", name, got, c.want)
		}
		if v := c.attempt.Version(); v>>56 != uint64(c.attempt.Revision) || v<<8>>8 != c.want>>8 {
			t.Errorf("%s: version %#x", name, v)
		}
	}
}

func TestEveryFieldIsInTheContentHash(t *testing.T) {
	base := valid()
	base.Normalize()
	seen := map[uint64]int{base.ContentHash(): -1}
	for i, change := range []func(*retrylens.Attempt){
		func(a *retrylens.Attempt) { a.Tenant += "x" }, func(a *retrylens.Attempt) { a.LogicalID += "x" }, func(a *retrylens.Attempt) { a.Service = "x" },
		func(a *retrylens.Attempt) { a.Environment = "x" }, func(a *retrylens.Attempt) { a.Operation = "x" }, func(a *retrylens.Attempt) { a.Model = "x" },
		func(a *retrylens.Attempt) { a.Stream = true }, func(a *retrylens.Attempt) { a.DurationMS = retrylens.Some[int64](0) },
		func(a *retrylens.Attempt) { a.TTFBMS = retrylens.Some[int64](0) }, func(a *retrylens.Attempt) { a.Status = retrylens.Opt[uint16]{} },
		func(a *retrylens.Attempt) { a.Final.Value = !a.Final.Value }, func(a *retrylens.Attempt) { a.CostUSD = retrylens.Opt[retrylens.Money]{} },
		func(a *retrylens.Attempt) { a.Attributes = nil }, func(a *retrylens.Attempt) { a.Attributes = map[string]string{"k": "w"} },
		func(a *retrylens.Attempt) { a.Reason = "x" }, func(a *retrylens.Attempt) { a.Emitter = "x" }, func(a *retrylens.Attempt) { a.Seq = retrylens.Some[int64](0) },
		func(a *retrylens.Attempt) { a.ServedBy = retrylens.Some[int32](0) }, func(a *retrylens.Attempt) { a.ReplayOf = retrylens.Some[int32](0) },
		func(a *retrylens.Attempt) { a.StopReason = "x" }, func(a *retrylens.Attempt) { a.Attempt++ }, func(a *retrylens.Attempt) { a.Revision++ },
	} {
		a := base
		change(&a)
		h := a.ContentHash()
		if before, dup := seen[h]; dup {
			t.Errorf("change %d gives the hash of %d", i, before)
		}
		seen[h] = i
	}
}
