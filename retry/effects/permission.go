package effects

import (
	"fmt"
	"time"
)

// Permission is what the author of an action declares of repeating it while it may have
// happened already. There is no default: the zero Permission is an error wherever one is
// asked for.
type Permission uint8

// Permissions.
const (
	// InTransaction: all that it does is in the transaction that it is given, so it is
	// undone and done again with that. For Once alone.
	InTransaction Permission = iota + 1
	// Repeatable: repeating it does no harm. A read, a value that is set.
	Repeatable
	// Keyed: its receiver honours the idempotency key that it sends: any number of calls
	// under one key have one effect, as long as the receiver remembers the key (KeyTTL).
	Keyed
	// AfterLookup: only once its Lookup has said that it did not happen.
	AfterLookup
	// Never. An outcome that is not known is compensated, where there is a Compensate, or
	// set aside for a person.
	Never
)

var permissionNames = []string{"undeclared", "in_transaction", "repeatable", "keyed", "after_lookup", "never"}

// String is the name in errors.
func (p Permission) String() string {
	if int(p) < len(permissionNames) {
		return permissionNames[p]
	}
	return fmt.Sprintf("unknown(%d)", uint8(p))
}

// check returns an error unless p is one of those that make sense in that place.
func (p Permission) check(place string, allowed ...Permission) error {
	for _, a := range allowed {
		if p == a {
			return nil
		}
	}
	if p == 0 {
		return fmt.Errorf("%w: %s; the author of the action says whether it may be repeated: %v", ErrUndeclared, place, allowed)
	}
	return fmt.Errorf("%w: %s cannot do with %v what is declared %v: it takes %v; see Do for the others", ErrUndeclared, place, "an action", p, allowed)
}

// defaultKeyTTL is the shortest time for which the well-known receivers remember a key.
const defaultKeyTTL = 24 * time.Hour
