package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/retrylens/retrylens/internal/sim/world"
)

// Scenario is a world with a name.
type Scenario struct {
	Name    string
	Summary string // one line
	// Anywhere: it needs no fleet of its own and may be an Incident.
	Anywhere bool

	length   time.Duration // of what happens; toTheEnd = until the end
	provider string        // that it happens to; "" = the first one's
	fleet    func() []world.Workload
	happens  func(*plan, place)
}

// toTheEnd is a length.
const toTheEnd time.Duration = -1

// Scenarios are all of them, in the order of the documentation.
func Scenarios() []Scenario { return append([]Scenario(nil), scenarios...) }

// Names are those of the scenarios.
func Names() []string {
	out := make([]string, len(scenarios))
	for i := range scenarios {
		out[i] = scenarios[i].Name
	}
	return out
}

func lookup(name string) (*Scenario, error) {
	for i := range scenarios {
		if scenarios[i].Name == name {
			return &scenarios[i], nil
		}
	}
	return nil, fmt.Errorf("sim: there is no scenario %q; there are %s", name, strings.Join(Names(), ", "))
}

var scenarios = []Scenario{
	{"healthy", "nothing is wrong: four of a thousand attempts fail", true, 2 * time.Hour, "", mixed, quiet},
	{"flaky", "a provider fails a few requests at random; a retry helps at once", true, 2 * time.Hour, "", mixed, flaky},
	{"masked_outage", "one zone of a provider fails and all of it slows down; retries hide it", true, 40 * time.Minute, "", mixed, masked},
	{"masked_slow_onset", "the same, coming up over half of its time", true, time.Hour, "", mixed, maskedSlowly},
	{"masked_one_of_three", "the same at one of three providers, which a total does not show", false, 40 * time.Minute, "gemini", three, masked},
	{"side_by_side", "two providers: openai in a masked outage, anthropic flaky at the same time", false, 40 * time.Minute, "", pair, sideBySide},
	{"outage", "a provider is down: nearly everything fails, breakers open", true, 30 * time.Minute, "", mixed, outage},
	{"recovery", "an outage, then a recovery as slow as the outage was long", true, 30 * time.Minute, "", mixed, recovery},
	{"metastable", "ten minutes of too little capacity, and plain retries keep it saturated ever after", false, 10 * time.Minute, "", stormy, metastable},
	{"short_blip", "a provider is gone for twenty seconds", true, 20 * time.Second, "", mixed, blip},
	{"quota_wall", "the account's quota is used up: refused, not retried", true, 2 * time.Hour, "", mixed, wall},
	{"slow_model", "a model takes longer, without an error", true, time.Hour, "", mixed, slow},
	{"traffic_spike", "several times as many operations, all served", true, 20 * time.Minute, "", mixed, spike},
	{"daily_season", "the rate swings over the day, low at 3:00, high at 15:00", false, toTheEnd, "", mixed, season},
	{"quiet_night", "hardly anything is asked for", true, 6 * time.Hour, "", mixed, night},
	{"deploy", "all processes start anew, and answers are longer from then on", true, toTheEnd, "", mixed, deploy},
	{"hidden_sdk_layer", "an SDK's 3 calls under a policy of 4 attempts: 12 calls for one operation while the provider is down", false, 30 * time.Minute, "", layered, layers},
	{"client_timeout", "a slower model meets a timeout that was measured before: answers are bought and thrown away", false, time.Hour, "", impatient, tooSlow},
	{"duplicate_submissions", "users submit again; a gateway refuses or replays", false, 20 * time.Minute, "", guarded, duplicates},
	{"queue_redelivery", "calls outlast the queue's visibility timeout: delivered again, and bought again", false, 40 * time.Minute, "", queued, redelivered},
	{"emitter_drops", "emitters cannot send, keep a few records and drop the others", false, 30 * time.Minute, "", mixed, drops},
}
