package metrics

import "github.com/retrylens/retrylens"

var duplicateFormulas = []Formula{
	counter("duplicates_served", "inner records with outcome replayed",
		func(c *Counters) uint64 { return c.DuplicatesServed }),
	counter("duplicates_refused", "inner records with outcome in_flight",
		func(c *Counters) uint64 { return c.DuplicatesRefused }),
	counter("key_conflicts", "outer records with outcome key_mismatch: another intent that wears this key",
		func(c *Counters) uint64 { return c.KeyConflicts }),
}

// addDuplicate counts an inner record that the dedupe store answered.
func (r *Record) addDuplicate(c *Counters) {
	switch r.Outcome {
	case retrylens.OutcomeReplayed:
		c.DuplicatesServed++
	case retrylens.OutcomeInFlight:
		c.DuplicatesRefused++
	}
}

// addConflicts counts the outer key_mismatch records: all that an operation
// without any counted record adds.
func (op *Operation) addConflicts(c *Counters) {
	for i := range op.Records {
		if r := &op.Records[i]; r.Outer && r.Outcome == retrylens.OutcomeKeyMismatch {
			c.KeyConflicts++
		}
	}
}
