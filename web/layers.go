package web

import (
	"context"
	"fmt"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/format"
	"github.com/retrylens/retrylens/internal/metrics"
)

// layersBody tells which layer multiplies.
type layersBody struct {
	Layers  *table
	Product string
	Note    string
	Groups  *table
	Trust   trust
	Empty   bool
	Wider   []navLink
	Culprit string
}

// layer is a place where calls are sent again.
type layer struct {
	name   string
	causes []retrylens.Cause
	stop   string
}

// layers are in the order from the caller to the provider.
var layers = []layer{
	{"caller: the operation submitted again", []retrylens.Cause{retrylens.CauseRedelivery}, "an idempotency key that stays the same over redeliveries; a queue's visibility timeout above the operation's deadline"},
	{"SDK: its own retries", []retrylens.Cause{retrylens.CauseSDK}, "max_retries=0 in the provider's SDK: one layer retries"},
	{"client: the retry policy", []retrylens.Cause{retrylens.CausePolicy, retrylens.CauseFailover}, "fewer attempts and a retry budget in the client's policy"},
	{"client: hedges", []retrylens.Cause{retrylens.CauseHedge}, "a later hedge, or a budget for it"},
	{"transport: silent resends of the HTTP library", []retrylens.Cause{retrylens.CauseTransport}, "no automatic resends in the HTTP library (Go: GetBody unset and no Idempotency-Key on its transport; urllib3: Retry(0))"},
}

func (u *UI) layers(ctx context.Context, s *state) (any, error) {
	q := s.query
	q.GroupBy, q.Bucket, q.CountersOnly, q.Needs = s.homeGroups("layers"), 0, true, s.needs(layersNeeds)
	groups, err := u.report(ctx, q)
	if err != nil {
		return nil, err
	}
	total := metrics.Merge(metrics.Key{}, groups.Rows...)
	b := &layersBody{Trust: trustOf(counters(groups)), Empty: total.Operations == 0, Wider: wider(s)}
	if b.Empty {
		b.Culprit = u.culprit(ctx, s)
	}
	b.Layers, b.Product = layerTable(&total)
	b.Groups = figureTable{groups: q.GroupBy, figures: layerFigures, sort: "-amplification"}.make(s, groups.Rows, "By "+string(q.GroupBy[0]))
	b.Note = "Dollars are an estimate: the calls that a layer added times the mean known cost of an executed call. Which calls a gateway's own policy made is told by layer_factor, over operations that both hops report."
	return b, nil
}

var layerFigures = []metricColumn{
	{"operations", "operations"}, {"attempts", "attempts"}, {"upstream calls", "upstream_calls"}, {"amplification", "amplification"}, {"retry ratio", "retry_ratio"},
	{"layer factor", "layer_factor"}, {"hidden calls", "hidden_calls"}, {"by SDK", "upstream_calls_by_cause{sdk}"}, {"by policy", "upstream_calls_by_cause{policy}"},
	{"by transport", "upstream_calls_by_cause{transport}"}, {"by redelivery", "upstream_calls_by_cause{redelivery}"},
}

// homeGroups are the page's groups; executed ones give spend figures only, and are left.
func (s *state) homeGroups(name string) []metrics.Dimension {
	for _, d := range s.groups(name) {
		if d.Executed() {
			return defaultGroups[name]
		}
	}
	return s.groups(name)
}

// layerTable follows the calls from the operations down: each layer's factor is the calls
// up to it over the calls before it, so the factors multiply to the amplification.
func layerTable(total *metrics.Row) (*table, string) {
	t := &table{Caption: "From the caller to the provider", Columns: []column{
		{Label: "layer"}, {Label: "factor", Num: true, Title: "calls up to and with this layer over those before it"}, {Label: "calls added", Num: true},
		{Label: "≈ USD", Num: true, Title: "calls added × mean known cost of an executed call: an estimate"}, {Label: "share of calls"}, {Label: "what would stop it"},
	}}
	before := total.UpstreamCallsByCause[string(retrylens.CauseFirst)]
	add := func(name string, factor string, calls uint64, stop string) {
		t.Rows = append(t.Rows, row{Cells: []cell{
			{Text: name}, {Text: factor}, {Text: format.Grouped(calls)}, estimate(total, calls), share(float64(calls) / float64(max(1, total.UpstreamCalls))), {Text: stop, Class: "wrap"},
		}})
	}
	add("operation: its first calls", over(before, total.Operations), before, "")
	for _, l := range layers {
		calls := uint64(0)
		for _, c := range l.causes {
			calls += total.UpstreamCallsByCause[string(c)]
		}
		add(l.name, over(before+calls, before), calls, l.stop)
		before += calls
	}
	t.Rows = append(t.Rows, row{Cells: []cell{
		{Text: "gateway: its own retries, beneath the client's"}, figureCell("layer_factor", total), {Text: format.Null}, {Text: format.Null}, {Text: "part of the rows above"}, {Text: "one attempt in the gateway, or in the client: not in both", Class: "wrap"},
	}})
	return t, over(total.UpstreamCalls, total.Operations)
}

func over(n, d uint64) string {
	if d == 0 {
		return format.Null
	}
	return format.Times(float64(n) / float64(d))
}

func estimate(total *metrics.Row, calls uint64) cell {
	if total.ExecutedKnownUsage == 0 {
		return cell{Text: format.Null, Class: "null", Title: "no executed attempt has a known cost"}
	}
	m := total.BilledCostUSD.MulDiv(calls, total.ExecutedKnownUsage)
	return cell{Text: format.USD(m), Title: fmt.Sprintf("%s = %s × %d / %d", m, total.BilledCostUSD, calls, total.ExecutedKnownUsage)}
}
