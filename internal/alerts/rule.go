package alerts

import (
	"time"

	"github.com/retrylens/retrylens/internal/alerts/expr"
	"github.com/retrylens/retrylens/internal/metrics"
)

// Rule is a condition and what is said when it holds. It is immutable.
type Rule struct {
	Name          string // of the alert: the label alertname
	Expr          *expr.Expr
	By            []metrics.Dimension // one alert for each group of these; none = one for all
	MinOperations uint64              // in the longest window of Expr; with fewer the condition is false
	For           time.Duration       // the condition must hold so long before the alert fires
	KeepFiringFor time.Duration       // it goes on firing so long after the condition last held
	Severity      string              // the label severity: page, ticket or info
	Labels        map[string]string   // more labels; values never come from figures
	Annotations   map[string]string   // templates, see [Rules.check]
	Runbook       string              // page of docs/runbooks; default Name

	templates map[string]*annotation
}

// Severities of a rule.
const (
	SeverityPage   = "page"
	SeverityTicket = "ticket"
	SeverityInfo   = "info"
)

// longest is the longest window that the condition looks through; 0 without any.
func (r *Rule) longest() (d time.Duration) {
	for _, ref := range r.Expr.Refs() {
		d = max(d, ref.Window)
	}
	return d
}

// serviceFigures are what a condition can name without a window: how the service itself is
// doing. They are the same for every group.
var serviceFigures = []string{
	"records_missing", "coverage_ratio", "rejected_lines", "dead_letters", "spool_age_ms", "finaliser_lag_ms", "newest_attempt_age_ms",
}

// States that a condition can ask for: the detector's verdicts.
var States = []string{"healthy", "flaky", "masked_outage", "outage", "recovering", "metastable", "hidden_layer"}
