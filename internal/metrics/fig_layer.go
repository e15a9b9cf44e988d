package metrics

import "github.com/retrylens/retrylens"

var layerFormulas = []Formula{
	ratioOf("layer_factor", "Σ upstream_calls / Σ attempts, over operations with both hops only; null without",
		func(f Figures) retrylens.Opt[float64] { return f.LayerFactor }),
}

// addLayer counts an operation that client and gateway both report.
func (op *Operation) addLayer(c *Counters) {
	if !op.TwoHops {
		return
	}
	c.LayerAttempts += uint64(op.Attempts)
	for i := range op.Records {
		if r := &op.Records[i]; r.Inner {
			c.LayerUpstreamCalls += uint64(r.UpstreamCalls.Value)
		}
	}
}
