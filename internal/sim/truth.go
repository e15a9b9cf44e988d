package sim

import (
	"fmt"
	"sort"
	"time"
)

// State is what a detector should say of a series, by the words of docs/metrics.md.
type State string

// States.
const (
	Healthy      State = "healthy" // nothing is wrong, whatever else may look different
	Flaky        State = "flaky"
	MaskedOutage State = "masked_outage"
	Outage       State = "outage"
	Recovering   State = "recovering"
)

// Truth is what was so for a time, known because the world was made so.
type Truth struct {
	Scenario string    `json:"scenario"`
	State    State     `json:"state"`
	Provider string    `json:"provider,omitempty"` // "" = all
	Model    string    `json:"model,omitempty"`    // "" = all of the provider
	From     time.Time `json:"from"`
	To       time.Time `json:"to"` // of the cause; what it leads to may last longer
	Size     int       `json:"size"`
}

// String is a line for people.
func (t Truth) String() string {
	who := t.Provider
	if who == "" {
		who = "all"
	}
	if t.Model != "" {
		who += " " + t.Model
	}
	return fmt.Sprintf("%s of %s from %s to %s, size %d: %s", t.Scenario, who, t.From.Format(time.RFC3339), t.To.Format(time.RFC3339), t.Size, t.State)
}

// truth of what begins before the end.
func (p *plan) truth(s State, at place) {
	start := p.o.Start
	if at.From > 0 && at.From >= p.o.Duration {
		return
	}
	p.sim.Truth = append(p.sim.Truth, Truth{
		Scenario: at.scenario, State: s, Provider: at.provider, Model: at.model,
		From: start.Add(at.From), To: start.Add(min(at.To, p.o.Duration)), Size: at.size,
	})
	sort.SliceStable(p.sim.Truth, func(i, j int) bool { return p.sim.Truth[i].From.Before(p.sim.Truth[j].From) })
}
