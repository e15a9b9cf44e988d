package app

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/retrylens/retrylens/internal/format"
	"github.com/retrylens/retrylens/internal/ingest"
)

// meterEvery is how often progress is logged where there is no terminal.
const meterEvery = 10 * time.Second

// meter shows how far an import has come: a bar on a terminal, else a line
// every ten seconds. It is not safe for concurrent use.
type meter struct {
	w    io.Writer
	now  func() time.Time
	bar  *progressbar.ProgressBar // nil without a terminal
	next time.Time
	last ingest.Progress
}

func newMeter(w io.Writer, now func() time.Time) meter {
	m := meter{w: w, now: now, next: now().Add(meterEvery)}
	if isTerminal(w) {
		m.bar = progressbar.NewOptions64(-1,
			progressbar.OptionSetWriter(w), progressbar.OptionShowBytes(true), progressbar.OptionFullWidth(),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetDescription("importing"))
	}
	return m
}

func (m *meter) update(p ingest.Progress) {
	m.last = p
	if m.bar != nil {
		if p.BytesTotal > 0 && m.bar.GetMax64() != p.BytesTotal {
			m.bar.ChangeMax64(p.BytesTotal)
		}
		m.bar.Describe(m.line())
		_ = m.bar.Set64(p.BytesRead)
		return
	}
	if now := m.now(); !now.Before(m.next) {
		m.next = now.Add(meterEvery)
		fmt.Fprintln(m.w, "importing: "+m.line()+m.share())
	}
}

func (m *meter) line() string {
	s := format.Grouped(m.last.Accepted) + " accepted"
	if m.last.Rejected > 0 {
		s += ", " + format.Grouped(m.last.Rejected) + " rejected"
	}
	return s
}

func (m *meter) share() string {
	if m.last.BytesTotal <= 0 {
		return ""
	}
	return fmt.Sprintf(", %d %% of the bytes read", 100*m.last.BytesRead/m.last.BytesTotal)
}

// say writes a line without tearing the bar.
func (m *meter) say(line string) {
	if m.bar != nil {
		_ = m.bar.Clear()
	}
	fmt.Fprintln(m.w, line)
}

// finish removes the bar.
func (m *meter) finish() {
	if m.bar != nil {
		_ = m.bar.Finish()
		_ = m.bar.Clear()
	}
}
