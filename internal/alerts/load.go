package alerts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/retrylens/retrylens/internal/alerts/expr"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/query"
)

// Rules are those of one file, in its order.
type Rules struct{ Rules []*Rule }

// RuleError says which line of a file is wrong.
type RuleError struct {
	File string
	Line int
	Err  error
}

// Error is "rules.yml:12: …".
func (e *RuleError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns the reason.
func (e *RuleError) Unwrap() error { return e.Err }

const maxRulesBytes = 1 << 20

// Load reads rules in YAML. Every fault is reported, as a *RuleError joined with the
// others; name is the file's.
func Load(name string, r io.Reader) (*Rules, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxRulesBytes+1))
	if err != nil {
		return nil, fmt.Errorf("alerts: read %s: %w", name, err)
	}
	l := loader{file: name}
	if len(text) > maxRulesBytes {
		l.fail(1, fmt.Errorf("larger than %d bytes", maxRulesBytes))
		return nil, l.err()
	}
	if i := invalidUTF8(text); i >= 0 {
		l.fail(1+bytes.Count(text[:i], []byte("\n")), errors.New("no UTF-8"))
		return nil, l.err()
	}
	var doc, more yaml.Node
	docs := yaml.NewDecoder(bytes.NewReader(text))
	if err := docs.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		l.fail(yamlLine(err), errors.New(strings.TrimPrefix(err.Error(), "yaml: ")))
		return nil, l.err()
	}
	rules := l.document(&doc)
	switch err := docs.Decode(&more); {
	case errors.Is(err, io.EOF):
	case err != nil:
		l.fail(yamlLine(err), errors.New(strings.TrimPrefix(err.Error(), "yaml: ")))
	default:
		l.fail(more.Line, errors.New("a second document; put all rules into one list"))
	}
	if len(l.errs) > 0 {
		slices.SortStableFunc(l.errs, func(a, b *RuleError) int { return a.Line - b.Line })
		return nil, l.err()
	}
	return rules, nil
}

// invalidUTF8 is where text is no UTF-8, -1 = nowhere.
func invalidUTF8(text []byte) int {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

var lineOf = regexp.MustCompile(`line (\d+)`)

// yamlLine is the line that an error of the YAML library names.
func yamlLine(err error) int {
	line := 1
	if m := lineOf.FindStringSubmatch(err.Error()); m != nil {
		_, _ = fmt.Sscan(m[1], &line)
	}
	return line
}

type loader struct {
	file string
	errs []*RuleError
}

// err joins all faults.
func (l *loader) err() error {
	all := make([]error, len(l.errs))
	for i, e := range l.errs {
		all[i] = e
	}
	return errors.Join(all...)
}

func (l *loader) fail(line int, err error) {
	l.errs = append(l.errs, &RuleError{l.file, line, err})
}

func (l *loader) document(doc *yaml.Node) *Rules {
	rules := &Rules{}
	if len(doc.Content) == 0 {
		l.fail(1, errors.New("is empty; write rules: and a list below it"))
		return rules
	}
	fields := l.fields(doc.Content[0], "rules")
	list := fields["rules"]
	if list == nil || list.Kind != yaml.SequenceNode {
		l.fail(doc.Content[0].Line, errors.New("has no list of rules"))
		return rules
	}
	seen := map[string]int{}
	for _, n := range list.Content {
		r := l.rule(n)
		if r == nil {
			continue
		}
		if line, ok := seen[r.Name]; ok {
			l.fail(n.Line, fmt.Errorf("alert %s is also at line %d", r.Name, line))
		}
		seen[r.Name] = n.Line
		rules.Rules = append(rules.Rules, r)
	}
	return rules
}

// fields are the values of a mapping by key; keys that are not known are faults.
func (l *loader) fields(n *yaml.Node, known ...string) map[string]*yaml.Node {
	out := map[string]*yaml.Node{}
	if n.Kind != yaml.MappingNode {
		l.fail(n.Line, fmt.Errorf("expected keys: %s", strings.Join(known, ", ")))
		return out
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case !slices.Contains(known, key.Value):
			l.fail(key.Line, fmt.Errorf("unknown key %.60q; there are %s", key.Value, strings.Join(known, ", ")))
		case out[key.Value] != nil:
			l.fail(key.Line, fmt.Errorf("key %s is given twice", key.Value))
		default:
			out[key.Value] = n.Content[i+1]
		}
	}
	return out
}

var (
	alertName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	ruleKeys  = []string{"alert", "expr", "by", "min_operations", "for", "keep_firing_for", "severity", "labels", "annotations", "runbook"}
)

func (l *loader) rule(n *yaml.Node) *Rule {
	before := len(l.errs)
	f := l.fields(n, ruleKeys...)
	r := &Rule{Severity: SeverityTicket, By: []metrics.Dimension{metrics.DimTenant, metrics.DimProvider, metrics.DimModel}}
	l.text(f["alert"], &r.Name)
	if !alertName.MatchString(r.Name) {
		l.fail(n.Line, fmt.Errorf("alert needs a name of letters, digits and _, got %.60q", r.Name))
	}
	if f["expr"] == nil {
		l.fail(n.Line, fmt.Errorf("alert %s has no expr", r.Name))
	} else {
		l.condition(f["expr"], r)
	}
	l.dimensions(f["by"], &r.By)
	l.decode(f["min_operations"], &r.MinOperations, "a whole number")
	l.duration(f["for"], &r.For)
	l.duration(f["keep_firing_for"], &r.KeepFiringFor)
	l.severity(f["severity"], &r.Severity)
	r.Labels = l.texts(f["labels"], l.labelName)
	r.Annotations, r.templates = l.texts(f["annotations"], nil), map[string]*annotation{}
	r.Runbook = r.Name
	l.text(f["runbook"], &r.Runbook)
	if len(l.errs) > before {
		return nil
	}
	if len(r.Expr.States()) > 0 && !detectable(r.By) {
		l.fail(n.Line, errors.New("by: the detector judges by [tenant, provider, model], or all together with []"))
		return nil
	}
	if r.MinOperations > 0 && r.longest() == 0 {
		l.fail(f["min_operations"].Line, errors.New("min_operations needs a condition with a window"))
		return nil
	}
	if !l.annotations(f["annotations"], r) {
		return nil
	}
	return r
}

// annotations compiles those of a rule and tells whether all are well.
func (l *loader) annotations(n *yaml.Node, r *Rule) bool {
	before := len(l.errs)
	for i := 0; n != nil && i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if err := r.compile(name, r.Annotations[name]); err != nil {
			l.fail(n.Content[i].Line, fmt.Errorf("annotation %s: %w", name, err))
		}
	}
	return len(l.errs) == before
}

// detectable tells whether the detector has verdicts on such groups.
func detectable(by []metrics.Dimension) bool {
	if len(by) == 0 {
		return true
	}
	sorted := slices.Sorted(slices.Values(by))
	return slices.Equal(sorted, []metrics.Dimension{metrics.DimModel, metrics.DimProvider, metrics.DimTenant})
}

func (l *loader) text(n *yaml.Node, to *string) { l.decode(n, to, "a text") }

func (l *loader) decode(n *yaml.Node, to any, what string) {
	if n != nil && (n.Kind != yaml.ScalarNode || n.Decode(to) != nil) {
		l.fail(n.Line, fmt.Errorf("must be %s, got %.60q", what, n.Value))
	}
}

func (l *loader) condition(n *yaml.Node, r *Rule) {
	text := ""
	l.text(n, &text)
	e, err := expr.Parse(text)
	if err != nil {
		l.fail(n.Line, fmt.Errorf("expr: %w", err))
		return
	}
	for _, ref := range e.Refs() {
		if err := checkRef(ref); err != nil {
			l.fail(n.Line, fmt.Errorf("expr: %w", err))
		}
	}
	for _, s := range e.States() {
		if !slices.Contains(States, s) {
			l.fail(n.Line, fmt.Errorf("expr: unknown state %.60q; there are %s", s, strings.Join(States, ", ")))
		}
	}
	r.Expr = e
}

// checkRef tells whether there is such a figure.
func checkRef(ref expr.Ref) error {
	if slices.Contains(serviceFigures, ref.Name) {
		if ref.Window > 0 || ref.Key != "" {
			return fmt.Errorf("%s is of the service, now: write it without a window", ref.Name)
		}
		return nil
	}
	if _, ok := metrics.Figure(ref.Figure(), metrics.Row{}); !ok {
		return unknownFigure(ref)
	}
	if ref.Window == 0 {
		return fmt.Errorf("%s needs a window, such as %s[5m]", ref.Figure(), ref.Figure())
	}
	return nil
}

func unknownFigure(ref expr.Ref) error {
	f, ok := metrics.LookupFormula(ref.Name)
	switch {
	case !ok:
		return fmt.Errorf("unknown figure %.60q; docs/metrics.md has all", ref.Name)
	case f.Label == "":
		return fmt.Errorf("%s is a single figure: write it without {}", ref.Name)
	}
	return fmt.Errorf("%s has a value for each %s: write %s{%s}, or another of %s", ref.Name, f.Label, ref.Name, f.Keys[0], strings.Join(f.Keys, ", "))
}

func (l *loader) dimensions(n *yaml.Node, to *[]metrics.Dimension) {
	if n == nil {
		return
	}
	*to = nil
	if n.Kind != yaml.SequenceNode {
		l.fail(n.Line, errors.New("by must be a list, such as [tenant, provider, model], or []"))
		return
	}
	for _, item := range n.Content {
		d, err := metrics.ParseDimension(item.Value)
		switch {
		case err != nil || d.Executed():
			l.fail(item.Line, fmt.Errorf("by: cannot group by %.60q; there are tenant, service, environment, operation, provider, model", item.Value))
		case slices.Contains(*to, d):
			l.fail(item.Line, fmt.Errorf("by names %s twice", d))
		default:
			*to = append(*to, d)
		}
	}
}

func (l *loader) duration(n *yaml.Node, to *time.Duration) {
	if n == nil || n.Value == "0" || n.Value == "0s" {
		return
	}
	d, err := query.ParseDuration(n.Value)
	if err != nil {
		l.fail(n.Line, err)
	}
	*to = d
}

func (l *loader) severity(n *yaml.Node, to *string) {
	l.text(n, to)
	if all := []string{SeverityPage, SeverityTicket, SeverityInfo}; !slices.Contains(all, *to) {
		l.fail(n.Line, fmt.Errorf("severity must be one of %s, got %.60q", strings.Join(all, ", "), *to))
	}
}

var labelPattern = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// labelName refuses labels that are the alert's own: they tell it from others.
func (l *loader) labelName(name string) error {
	switch {
	case !labelPattern.MatchString(name):
		return fmt.Errorf("no name of a label: %.60q", name)
	case name == "alertname" || name == "severity" || slices.Contains(metrics.HomeDimensions, metrics.Dimension(name)):
		return fmt.Errorf("the label %s is set by the rule itself", name)
	}
	return nil
}

func (l *loader) texts(n *yaml.Node, check func(string) error) map[string]string {
	out := map[string]string{}
	if n == nil {
		return out
	}
	if n.Kind != yaml.MappingNode {
		l.fail(n.Line, errors.New("must be keys with texts"))
		return out
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], ""
		l.text(n.Content[i+1], &value)
		if check != nil {
			if err := check(key.Value); err != nil {
				l.fail(key.Line, err)
			}
		}
		if _, ok := out[key.Value]; ok {
			l.fail(key.Line, fmt.Errorf("key %s is given twice", key.Value))
		}
		out[key.Value] = value
	}
	return out
}
