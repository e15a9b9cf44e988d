package alerts

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"
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

// compile parses the annotations and checks the figures and labels they name.
func (r *Rule) compile() error {
	r.templates = map[string]*annotation{}
	for name, text := range r.Annotations {
		a := &annotation{}
		t, err := template.New(name).Funcs(stub).Option("missingkey=error").Parse(text)
		if err != nil {
			return fmt.Errorf("annotation %s: %w", name, err)
		}
		a.t = t
		for _, m := range figureCalls.FindAllStringSubmatch(text, -1) { // also in branches that are not taken now
			if _, err := a.collect(m[1] + m[2]); err != nil {
				return fmt.Errorf("annotation %s: %w", name, err)
			}
		}
		check := template.FuncMap{"label": r.checkLabel, "figure": a.collect}
		if _, err := a.render(check); err != nil {
			return fmt.Errorf("annotation %s: %w", name, err)
		}
		r.templates[name] = a
	}
	return nil
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
	var b strings.Builder
	if err := t.Funcs(funcs).Execute(&b, nil); err != nil {
		return "", err
	}
	return clip(b.String(), maxAnnotation), nil
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
