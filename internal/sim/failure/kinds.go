package failure

// Kind is a way to fail.
type Kind uint8

// Kinds. The first ones are answers of a provider, the others what the caller sees
// in place of one.
const (
	Overloaded     Kind = iota // it has more than it can do: 503, 529
	ServerError                // 500
	RateLimited                // 429, with a wait
	Quota                      // the account's money or its day is used up
	BadRequest                 // our own fault: the same answer every time
	BadGateway                 // an edge's 502 page
	GatewayTimeout             // an edge's 504 page
	Reset                      // the connection breaks after the request was written
	Refused                    // nobody listens: nothing was sent
	TimedOut                   // the caller's own timeout
	Broken                     // a stream ends after content
	InFlight                   // a gateway's 409: the key is being executed
	GatewayShed                // a gateway's 503: it did not send the call on
	kinds
)

// Names are those of fault scripts, in the order of the kinds.
var names = [kinds]string{
	"overloaded", "server_error", "rate_limited", "quota", "bad_request", "bad_gateway", "gateway_timeout",
	"reset", "refused", "timed_out", "broken", "in_flight", "gateway_shed",
}

// String is its name.
func (k Kind) String() string {
	if k < kinds {
		return names[k]
	}
	return "unknown"
}

// Share of a mix.
type Share struct {
	Kind   Kind
	Weight float64 // relative to the others of the mix
}

// Mix is what failures of a fault are made of.
type Mix []Share

// Degraded is the mix of a provider that is partly broken.
var Degraded = Mix{{Overloaded, 45}, {ServerError, 15}, {RateLimited, 20}, {BadGateway, 12}, {Reset, 5}, {Refused, 3}}

// Down is the mix of a provider that is gone.
var Down = Mix{{Overloaded, 60}, {BadGateway, 20}, {GatewayTimeout, 5}, {Refused, 10}, {Reset, 5}}

// Only is a mix of one kind.
func Only(k Kind) Mix { return Mix{{k, 1}} }

// Pick returns the kind at u, uniform in [0, 1); a mix of nothing is Overloaded.
func (m Mix) Pick(u float64) Kind {
	total := 0.0
	for _, s := range m {
		total += s.Weight
	}
	u *= total
	for _, s := range m {
		if u -= s.Weight; u < 0 {
			return s.Kind
		}
	}
	return Overloaded
}
