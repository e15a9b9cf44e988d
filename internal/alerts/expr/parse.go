package expr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxLength bounds the text of an expression.
const MaxLength = 4096

// maxDepth bounds how deep parentheses and signs nest.
const maxDepth = 64

// Ref names a figure over a window: name[5m], name{key}[5m]; without a window
// (Window 0) a gauge of the service, such as records_missing.
type Ref struct {
	Name, Key string
	Window    time.Duration
}

// Figure is the name as a report knows it.
func (r Ref) Figure() string {
	if r.Key == "" {
		return r.Name
	}
	return r.Name + "{" + r.Key + "}"
}

// String is the reference as it is written.
func (r Ref) String() string {
	if r.Window == 0 {
		return r.Figure()
	}
	return r.Figure() + "[" + shortDuration(r.Window) + "]"
}

func shortDuration(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if d%u.unit == 0 {
			return strconv.FormatInt(int64(d/u.unit), 10) + u.name
		}
	}
	return d.String()
}

// Expr is a condition. It is immutable.
type Expr struct {
	text string
	root node
}

// String is the text that was parsed.
func (e *Expr) String() string { return e.text }

// Error says where in the text a condition is wrong.
type Error struct {
	Column int // from 1, in bytes
	Reason string
}

// Error is "column 12: …".
func (e *Error) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.Reason) }

// Parse reads a condition; the error is an *Error.
func Parse(text string) (*Expr, error) {
	if len(text) > MaxLength {
		return nil, &Error{1, fmt.Sprintf("longer than %d bytes", MaxLength)}
	}
	p := &parser{text: text}
	p.next()
	root, err := p.or()
	if err == nil && p.tok.kind != end {
		err = p.fail("expected and, or, or the end, got " + p.tok.quoted())
	}
	if err == nil && root.kind() != boolean {
		err = &Error{1, "is a number; compare it with something: " + strings.TrimSpace(text) + " > 0"}
	}
	if err != nil {
		return nil, err
	}
	return &Expr{text, root}, nil
}

type parser struct {
	text  string
	at    int // behind tok
	tok   token
	depth int
}

func (p *parser) fail(reason string) error { return &Error{p.tok.at + 1, reason} }

func (p *parser) next() { p.tok, p.at = scan(p.text, p.at) }

// accept takes the token if it is one of these.
func (p *parser) accept(texts ...string) (string, bool) {
	if p.tok.kind == end || p.tok.kind == number || !slices.Contains(texts, p.tok.text) {
		return "", false
	}
	text := p.tok.text
	p.next()
	return text, true
}

func (p *parser) expect(text, after string) error {
	if _, ok := p.accept(text); !ok {
		return p.fail("expected " + text + " after " + after + ", got " + p.tok.quoted())
	}
	return nil
}

// logic parses operands joined by a word.
func (p *parser) logic(word string, operand func() (node, error)) (node, error) {
	left, err := operand()
	if err != nil {
		return nil, err
	}
	for {
		at := p.tok.at
		if _, ok := p.accept(word); !ok {
			return left, nil
		}
		right, err := operand()
		if err != nil {
			return nil, err
		}
		if left.kind() != boolean || right.kind() != boolean {
			return nil, &Error{at + 1, word + " joins conditions, not numbers"}
		}
		left = &logic{and: word == "and", left: left, right: right}
	}
}

func (p *parser) or() (node, error) {
	return p.logic("or", func() (node, error) { return p.logic("and", p.not) })
}

func (p *parser) not() (node, error) {
	at := p.tok.at
	if _, ok := p.accept("not"); !ok {
		return p.comparison()
	}
	defer p.enter()()
	if p.depth > maxDepth {
		return nil, &Error{at + 1, "nested too deep"}
	}
	of, err := p.not()
	if err == nil && of.kind() != boolean {
		err = &Error{at + 1, "not goes before a condition, not a number"}
	}
	if err != nil {
		return nil, err
	}
	return &not{of}, nil
}

// enter counts a level of nesting and returns what leaves it.
func (p *parser) enter() func() {
	p.depth++
	return func() { p.depth-- }
}

var comparisons = []string{">=", "<=", "==", "!=", ">", "<"}

func (p *parser) comparison() (node, error) {
	left, err := p.sum()
	if err != nil {
		return nil, err
	}
	at := p.tok.at
	op, ok := p.accept(comparisons...)
	if !ok {
		return left, nil
	}
	right, err := p.sum()
	if err != nil {
		return nil, err
	}
	if left.kind() != numeric || right.kind() != numeric {
		return nil, &Error{at + 1, op + " compares numbers, not conditions"}
	}
	return &comparison{op, left, right}, nil
}

// arithmetic parses operands joined by operators, from the left.
func (p *parser) arithmetic(operand func() (node, error), ops ...string) (node, error) {
	left, err := operand()
	for err == nil {
		at := p.tok.at
		op, ok := p.accept(ops...)
		if !ok {
			return left, nil
		}
		var right node
		if right, err = operand(); err != nil {
			break
		}
		if left.kind() != numeric || right.kind() != numeric {
			return nil, &Error{at + 1, op + " needs numbers, not conditions"}
		}
		left = &arithmetic{op[0], left, right}
	}
	return nil, err
}

func (p *parser) sum() (node, error) {
	return p.arithmetic(func() (node, error) { return p.arithmetic(p.factor, "*", "/") }, "+", "-")
}

func (p *parser) factor() (node, error) {
	defer p.enter()()
	if p.depth > maxDepth {
		return nil, p.fail("nested too deep")
	}
	if _, ok := p.accept("("); ok {
		inner, err := p.or()
		if err == nil {
			err = p.expect(")", "what ( began")
		}
		return inner, err
	}
	at := p.tok.at
	if _, ok := p.accept("-"); ok {
		of, err := p.factor()
		if err == nil && of.kind() != numeric {
			err = &Error{at + 1, "- needs a number, not a condition"}
		}
		return &arithmetic{'-', constant(0), of}, err
	}
	return p.value()
}

func (p *parser) value() (node, error) {
	tok := p.tok
	switch {
	case tok.kind == number:
		v, err := strconv.ParseFloat(tok.text, 64)
		if err != nil {
			return nil, p.fail("no number: " + tok.quoted())
		}
		p.next()
		return constant(v), nil
	case tok.kind != word || slices.Contains(reserved, tok.text):
		return nil, p.fail("expected a figure, a number or (, got " + tok.quoted())
	}
	p.next()
	if _, ok := p.accept("("); ok {
		return p.state(tok)
	}
	return p.reference(tok.text)
}

var reserved = []string{"and", "or", "not"}

// state parses what is in the parentheses of state(name).
func (p *parser) state(function token) (node, error) {
	if function.text != "state" {
		return nil, &Error{function.at + 1, "there is no function " + function.text + "; there is state(name)"}
	}
	name := p.tok
	if name.kind != word {
		return nil, p.fail("expected the name of a state, got " + name.quoted())
	}
	p.next()
	return &state{name.text}, p.expect(")", "the state")
}

func (p *parser) reference(name string) (node, error) {
	ref := Ref{Name: name}
	if _, ok := p.accept("{"); ok {
		if p.tok.kind != word && p.tok.kind != number {
			return nil, p.fail("expected a key, got " + p.tok.quoted())
		}
		ref.Key = p.tok.text
		p.next()
		if err := p.expect("}", "the key"); err != nil {
			return nil, err
		}
	}
	if _, ok := p.accept("["); ok {
		var err error
		if ref.Window, err = p.window(); err != nil {
			return nil, err
		}
	}
	return &reference{ref}, nil
}

// window parses 5m].
func (p *parser) window() (time.Duration, error) {
	digits := p.tok
	if digits.kind != number {
		return 0, p.fail("expected a duration such as 5m, got " + digits.quoted())
	}
	p.next()
	unit := p.tok
	n, err := strconv.ParseInt(digits.text, 10, 32)
	length, ok := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[unit.text]
	if err != nil || n <= 0 || !ok || unit.at != digits.at+len(digits.text) {
		return 0, &Error{digits.at + 1, "no duration: write whole numbers with s, m, h or d, such as 5m"}
	}
	if n > int64(maxWindow/length) {
		return 0, &Error{digits.at + 1, "longer than 31d"}
	}
	p.next()
	return time.Duration(n) * length, p.expect("]", "the duration")
}

const maxWindow = 31 * 24 * time.Hour
