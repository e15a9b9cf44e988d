package alerts

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/retrylens/retrylens/internal/alerts/expr"
	"github.com/retrylens/retrylens/internal/metrics"
)

// annotation is a template of an annotation: {{label "provider"}}, {{figure
// "amplification[5m]"}}, {{state}}.
type annotation struct {
	t    *template.Template
	refs []expr.Ref // the figures it names
}

// stub stands in while templates are checked.
var stub = template.FuncMap{
	"label":  func(string) (string, error) { return "", nil },
	"figure": func(string) (string, error) { return "", nil },
	"state":  func() string { return "" },
}

const maxAnnotation = 4096

// figureCalls finds the figures that a template names.
var figureCalls = regexp.MustCompile("figure\\s+(?:\"([^\"]*)\"|`([^`]*)`)")

// compile parses an annotation and checks the figures and labels it names.
func (r *Rule) compile(name, text string) error {
	a := &annotation{}
	t, err := template.New(name).Funcs(stub).Option("missingkey=error").Parse(text)
	if err != nil {
		return err
	}
	a.t = t
	if len(t.Templates()) > 1 || t.Tree != nil && !ends(t.Root) {
		return errNoEnd
	}
	for _, m := range figureCalls.FindAllStringSubmatch(text, -1) { // also in branches that are not taken now
		if _, err := a.collect(m[1] + m[2]); err != nil {
			return err
		}
	}
	check := template.FuncMap{"label": r.checkLabel, "figure": a.collect}
	if _, err := a.render(check); err != nil {
		return err
	}
	r.templates[name] = a
	return nil
}

var errNoEnd = errors.New("knows text, if, and what functions return; no range, with, variable or template in a template: those may never end")

// ends tells whether a template is sure to come to an end, and soon: it does each thing at
// most once, and nothing grows by itself.
func ends(list *parse.ListNode) bool {
	if list == nil {
		return true
	}
	return !slices.ContainsFunc(list.Nodes, func(n parse.Node) bool {
		switch n := n.(type) {
		case *parse.TextNode, *parse.CommentNode:
			return false
		case *parse.ActionNode:
			return len(n.Pipe.Decl) > 0
		case *parse.IfNode:
			return len(n.Pipe.Decl) > 0 || !ends(n.List) || !ends(n.ElseList)
		}
		return true
	})
}

func (r *Rule) checkLabel(name string) (string, error) {
	if _, ok := r.Labels[name]; ok {
		return "", nil
	}
	for _, d := range r.By {
		if string(d) == name {
			return "", nil
		}
	}
	return "", fmt.Errorf("the alert has no label %s", name)
}

func (a *annotation) collect(text string) (string, error) {
	ref, err := parseRef(text)
	if err == nil {
		err = checkRef(ref)
	}
	if err != nil {
		return "", err
	}
	a.refs = append(a.refs, ref)
	return "", nil
}

// parseRef reads a figure as conditions write it.
func parseRef(text string) (expr.Ref, error) {
	e, err := expr.Parse(text + " > 0")
	if err != nil || len(e.Refs()) != 1 {
		return expr.Ref{}, fmt.Errorf("no figure: %.60q", text)
	}
	return e.Refs()[0], nil
}

func (a *annotation) render(funcs template.FuncMap) (string, error) {
	t, err := a.t.Clone()
	if err != nil {
		return "", err
	}
	var b bounded
	if err := t.Funcs(funcs).Execute(&b, nil); err != nil && !errors.Is(err, errFull) {
		return "", err
	}
	return clip(string(b), maxAnnotation), nil
}

// bounded takes a little more than an annotation can hold, and then no more.
type bounded []byte

var errFull = errors.New("longer than an annotation can be")

func (b *bounded) Write(p []byte) (int, error) {
	if *b = append(*b, p[:min(len(p), maxAnnotation+1-len(*b))]...); len(*b) > maxAnnotation {
		return 0, errFull
	}
	return len(p), nil
}

func clip(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// detectorWindow is what the detector's verdicts are about.
const detectorWindow = 5 * time.Minute

// refs are the figures of the condition and of the annotations, each once.
func (r *Rule) refs() []expr.Ref {
	seen := map[expr.Ref]bool{}
	var out []expr.Ref
	add := func(refs []expr.Ref) {
		for _, ref := range refs {
			if !seen[ref] {
				seen[ref] = true
				out = append(out, ref)
			}
		}
	}
	add(r.Expr.Refs())
	for _, a := range r.templates {
		add(a.refs)
	}
	if w := r.longest(); r.MinOperations > 0 && w > 0 {
		add([]expr.Ref{{Name: "operations", Window: w}})
	}
	if len(r.By) > 0 && !slices.ContainsFunc(out, func(ref expr.Ref) bool { return ref.Window > 0 }) {
		add([]expr.Ref{{Name: "operations", Window: detectorWindow}}) // which groups there are
	}
	return out
}

// text is a figure's value for people; "unknown" where it has none.
func text(v metrics.Value) string {
	f, ok := v.Float64()
	switch {
	case !ok:
		return "unknown"
	case v.Unit == metrics.UnitUSD:
		return fmt.Sprintf("%.2f USD", f)
	case v.Unit == metrics.UnitRatio:
		return fmt.Sprintf("%.3g", f)
	case v.Unit == metrics.UnitMS:
		return fmt.Sprintf("%.3g s", f/1000)
	}
	return fmt.Sprintf("%.0f", f)
}
