package expr

import (
	"math"
	"slices"
)

// Truth is true, false, or not known.
type Truth uint8

// Truths, ordered so that and is the smaller, or the larger of two.
const (
	False Truth = iota
	Unknown
	True
)

// String is the word.
func (t Truth) String() string { return [...]string{"false", "unknown", "true"}[t] }

func truth(b bool) Truth {
	if b {
		return True
	}
	return False
}

// Values are what an expression is evaluated on.
type Values interface {
	// Figure returns the value of a figure; false = it has none (a ratio of nothing).
	Figure(Ref) (float64, bool)
	// State tells whether the detector's verdict on the series is that state.
	State(name string) Truth
}

// Eval evaluates the condition. A comparison with a figure without value, and with a
// result that is no number (a division by 0), is Unknown.
func (e *Expr) Eval(v Values) Truth { return e.root.truth(v) }

// Refs are the figures it names, each once, in order of appearance.
func (e *Expr) Refs() []Ref {
	var out []Ref
	e.root.walk(func(n node) {
		if r, ok := n.(*reference); ok && !slices.Contains(out, r.ref) {
			out = append(out, r.ref)
		}
	})
	return out
}

// States are the states of the detector it names, each once.
func (e *Expr) States() []string {
	var out []string
	e.root.walk(func(n node) {
		if s, ok := n.(*state); ok && !slices.Contains(out, s.name) {
			out = append(out, s.name)
		}
	})
	return out
}

type kind uint8

const (
	numeric kind = iota
	boolean
)

// node is a part of an expression: either its number or its truth is asked for, by
// its kind.
type node interface {
	kind() kind
	number(Values) (float64, bool)
	truth(Values) Truth
	walk(func(node))
}

type constant float64

func (c constant) kind() kind                    { return numeric }
func (c constant) number(Values) (float64, bool) { return float64(c), true }
func (c constant) truth(Values) Truth            { return Unknown }
func (c constant) walk(f func(node))             { f(c) }

type reference struct{ ref Ref }

func (r *reference) kind() kind                      { return numeric }
func (r *reference) number(v Values) (float64, bool) { return v.Figure(r.ref) }
func (r *reference) truth(Values) Truth              { return Unknown }
func (r *reference) walk(f func(node))               { f(r) }

type state struct{ name string }

func (s *state) kind() kind                    { return boolean }
func (s *state) number(Values) (float64, bool) { return 0, false }
func (s *state) truth(v Values) Truth          { return v.State(s.name) }
func (s *state) walk(f func(node))             { f(s) }

type logic struct {
	and         bool
	left, right node
}

func (l *logic) kind() kind                    { return boolean }
func (l *logic) number(Values) (float64, bool) { return 0, false }
func (l *logic) truth(v Values) Truth {
	if l.and {
		return min(l.left.truth(v), l.right.truth(v))
	}
	return max(l.left.truth(v), l.right.truth(v))
}
func (l *logic) walk(f func(node)) { f(l); l.left.walk(f); l.right.walk(f) }

type not struct{ of node }

func (n *not) kind() kind                    { return boolean }
func (n *not) number(Values) (float64, bool) { return 0, false }
func (n *not) truth(v Values) Truth          { return True - n.of.truth(v) }
func (n *not) walk(f func(node))             { f(n); n.of.walk(f) }

type comparison struct {
	op          string
	left, right node
}

func (c *comparison) kind() kind                    { return boolean }
func (c *comparison) number(Values) (float64, bool) { return 0, false }
func (c *comparison) truth(v Values) Truth {
	a, okA := c.left.number(v)
	b, okB := c.right.number(v)
	if !okA || !okB || math.IsNaN(a) || math.IsNaN(b) {
		return Unknown
	}
	switch c.op {
	case ">":
		return truth(a > b)
	case ">=":
		return truth(a >= b)
	case "<":
		return truth(a < b)
	case "<=":
		return truth(a <= b)
	case "==":
		return truth(a == b)
	}
	return truth(a != b)
}
func (c *comparison) walk(f func(node)) { f(c); c.left.walk(f); c.right.walk(f) }

type arithmetic struct {
	op          byte
	left, right node
}

func (a *arithmetic) kind() kind         { return numeric }
func (a *arithmetic) truth(Values) Truth { return Unknown }
func (a *arithmetic) number(v Values) (float64, bool) {
	x, okX := a.left.number(v)
	y, okY := a.right.number(v)
	if !okX || !okY {
		return 0, false
	}
	switch a.op {
	case '+':
		x += y
	case '-':
		x -= y
	case '*':
		x *= y
	default:
		if y == 0 {
			return 0, false
		}
		x /= y
	}
	return x, true
}
func (a *arithmetic) walk(f func(node)) { f(a); a.left.walk(f); a.right.walk(f) }
