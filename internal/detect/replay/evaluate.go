package replay

import (
	"time"

	"github.com/retrylens/retrylens/internal/detect"
)

// Evaluate hands the samples of the moment to a detector, and what it says to look. Of a
// state that pages the contributors and an example are filled in when it begins.
func (w *Window) Evaluate(d *detect.Detector, look func(*detect.Evaluation)) error {
	var failed error
	w.Samples(func(s *detect.Sample) {
		e, ok, err := d.Evaluate(s)
		if err != nil {
			failed = err
		}
		if !ok {
			return
		}
		if e.Changed() && e.State.Pages() {
			e.Contributors, e.Example = w.contributors(e.Key, e.Classes)
		}
		look(&e)
	})
	if w.at%forgetAfter == 0 {
		d.Forget(w.At().Add(-rememberFor))
	}
	return failed
}

// rememberFor is how long the detector keeps what it has learned of a series that ended.
const rememberFor = 14 * 24 * time.Hour

// contributors of a series, and the operation that took most calls; of equal ones the
// first to start.
func (w *Window) contributors(k detect.Key, classes []detect.ClassShare) ([]detect.Contributor, string) {
	parts := map[[2]string]*detect.Part{}
	var worst *operation
	w.eachOperation(k, func(op *operation) {
		for _, p := range [...][2]string{{"provider", op.key.Provider}, {"model", op.key.Model}, {"service", op.service}} {
			if parts[p] == nil {
				parts[p] = &detect.Part{Dimension: p[0], Value: p[1]}
			}
			parts[p].Attempts += op.Attempts
			parts[p].FailedAttempts += op.FailedAttempts
		}
		if worst == nil || op.worse(worst) {
			worst = op
		}
	})
	all := make([]detect.Part, 0, len(parts))
	for _, p := range parts {
		all = append(all, *p)
	}
	if worst == nil {
		return nil, ""
	}
	return detect.Contributors(all, classes), worst.logicalID
}

// worse orders operations by how much they show, totally.
func (op *operation) worse(o *operation) bool {
	if a, b := max(op.Attempts, op.UpstreamCalls), max(o.Attempts, o.UpstreamCalls); a != b {
		return a > b
	}
	if op.startMS != o.startMS {
		return op.startMS < o.startMS
	}
	return op.logicalID < o.logicalID
}
