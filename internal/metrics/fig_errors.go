package metrics

import "github.com/retrylens/retrylens"

var errorClassFormulas = []Formula{
	countsBy("errors_by_class", "counted records with an error_class, by it",
		"error_class", retrylens.ErrorClasses, func(c *Counters) map[string]uint64 { return c.ErrorsByClass }),
}

// addError counts a counted record by its class.
func (r *Record) addError(c *Counters) {
	if r.ErrorClass != "" {
		bump(&c.ErrorsByClass, string(r.ErrorClass), 1)
	}
}
