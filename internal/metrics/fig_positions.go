package metrics

import "github.com/retrylens/retrylens"

var positions = []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

var positionFormulas = []Formula{
	countsBy("attempts_by_position", "counted records by attempt mod 100; 9 = 9 and above",
		"position", positions, func(c *Counters) map[string]uint64 { return c.AttemptsByPosition }),
	countsBy("successes_by_position", "counted records with delivery full by attempt mod 100; 9 = 9 and above",
		"position", positions, func(c *Counters) map[string]uint64 { return c.SuccessesByPosition }),
}

// addPosition counts a counted record by its place in its run: what another
// attempt is worth.
func (r *Record) addPosition(c *Counters) {
	position := positions[min(int(r.Position()), len(positions)-1)]
	bump(&c.AttemptsByPosition, position, 1)
	if r.Delivery == retrylens.DeliveryFull {
		bump(&c.SuccessesByPosition, position, 1)
	}
}
