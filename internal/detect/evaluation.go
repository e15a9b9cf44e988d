package detect

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"
)

// State of a series, by docs/metrics.md.
type State string

// States.
const (
	Healthy      State = "healthy"
	Flaky        State = "flaky"
	MaskedOutage State = "masked_outage"
	Outage       State = "outage"
	Recovering   State = "recovering"
)

// States are all of them.
var States = []State{Healthy, Flaky, MaskedOutage, Outage, Recovering}

// Pages tells whether a state is one to wake somebody for.
func (s State) Pages() bool { return s == MaskedOutage || s == Outage }

// Sign is something that is seen beside the state, whatever it is.
type Sign string

// Signs.
const (
	// SignMetastable: since the trouble began first attempts have become as good again as
	// they were, and amplification has not: the retries feed themselves.
	SignMetastable Sign = "metastable"
	// SignHiddenLayer: a layer below the one that reports sends again, unseen by it.
	SignHiddenLayer Sign = "hidden_layer"
)

// Number is a figure; NaN is null in JSON.
type Number float64

var null = Number(math.NaN())

// MarshalJSON writes a number of at most six decimals, or null.
func (n Number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, math.Round(f*1e6)/1e6, 'f', -1, 64), nil
}

// Null tells whether there is no such figure.
func (n Number) Null() bool { return math.IsNaN(float64(n)) }

// Figures are what is known of a window's operations, by the names of docs/metrics.md.
type Figures struct {
	Operations        int64            `json:"operations"`
	Amplification     Number           `json:"amplification"`
	RetryRatio        Number           `json:"retry_ratio"`
	RetrySuccessRatio Number           `json:"retry_success_ratio"`
	ErrorRatio        Number           `json:"error_ratio"`
	AttemptErrorRatio Number           `json:"attempt_error_ratio"`
	LatencyMS         LatencyQuantiles `json:"latency_ms"`
}

// LatencyQuantiles of the operations that were delivered.
type LatencyQuantiles struct {
	P50 Number `json:"p50"`
	P99 Number `json:"p99"`
}

// Figures of the view.
func (v *View) Figures() Figures {
	return Figures{
		Operations: v.Operations, Amplification: quotient(v.UpstreamCalls, v.Operations), RetryRatio: quotient(v.Attempts, v.Operations),
		RetrySuccessRatio: quotient(v.RetrySuccesses, v.Retries), ErrorRatio: quotient(v.Failed, v.Failed+v.Succeeded),
		AttemptErrorRatio: quotient(v.FailedAttempts, v.Attempts),
		LatencyMS:         LatencyQuantiles{milliseconds(v, v.P50MS), milliseconds(v, v.P99MS)},
	}
}

// Evaluation is what a detector says of a series at a moment.
type Evaluation struct {
	At time.Time `json:"at"`
	Key
	State    State     `json:"state"`
	Since    time.Time `json:"since"`              // of the state
	Incident time.Time `json:"incident,omitzero"`  // when the trouble began that the state is part of
	Previous State     `json:"previous,omitempty"` // of the evaluation before, where it was another
	Votes    []Vote    `json:"votes"`
	Signs    []Sign    `json:"signs"`
	// Judged is false where there are too few operations to say: the state is that of
	// before, for a while, then healthy.
	Judged   bool    `json:"judged"`
	Baseline string  `json:"baseline"` // what it was compared with: floors, day or week
	Figures  Figures `json:"figures"`  // of the last 5 minutes
	Recent   Figures `json:"recent"`   // of the last 2 minutes
	Tests    []Test  `json:"tests"`
	// Joint is what all votes together come to, and Unmet the conditions for a masked outage
	// beside the votes that are not met.
	Joint Number   `json:"joint"`
	Unmet []string `json:"unmet"`
	// Classes are the error classes of the window, the most frequent first.
	Classes []ClassShare `json:"classes"`

	// Contributors and Example are filled in by who holds the operations, for a state that
	// pages.
	Contributors []Contributor `json:"contributors,omitempty"`
	Example      string        `json:"example,omitempty"` // logical_id of an operation that shows it
}

// Changed tells whether the state is another than before.
func (e *Evaluation) Changed() bool { return e.Previous != "" }

// AppendJSON appends the evaluation as one line without its end.
func (e *Evaluation) AppendJSON(dst []byte) ([]byte, error) {
	b, err := json.Marshal(e)
	return append(dst, b...), err
}

// Is tells whether a name is that of the state or of one of the signs.
func (e *Evaluation) Is(name string) bool {
	return string(e.State) == name || slices.Contains(e.Signs, Sign(name))
}
