package app

import (
	"bytes"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/ingest"
)

// TestMeterLogsEveryTenSeconds where there is no terminal: before, at and after
// the edge.
func TestMeterLogsEveryTenSeconds(t *testing.T) {
	clock := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	m := newMeter(&out, func() time.Time { return clock })
	for _, step := range []struct {
		after time.Duration
		p     ingest.Progress
		want  string
	}{
		{0, ingest.Progress{Accepted: 1}, ""},
		{meterEvery - 1, ingest.Progress{Accepted: 2}, ""},
		{1, ingest.Progress{Accepted: 12345, BytesRead: 30, BytesTotal: 40}, "importing: 12,345 accepted, 75 % of the bytes read\n"},
		{meterEvery - 1, ingest.Progress{Accepted: 3}, ""},
		{2, ingest.Progress{Accepted: 4, Rejected: 1000}, "importing: 4 accepted, 1,000 rejected\n"},
	} {
		clock = clock.Add(step.after)
		out.Reset()
		m.update(step.p)
		if out.String() != step.want {
			t.Errorf("at %v: %q, want %q", clock, out.String(), step.want)
		}
	}
	m.finish()
	m.say("bye")
}
