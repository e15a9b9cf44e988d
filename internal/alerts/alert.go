package alerts

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/retrylens/retrylens/internal/alerts/expr"
	"github.com/retrylens/retrylens/internal/metrics"
)

// Status is where an alert is in its life.
type Status string

// Statuses.
const (
	Pending  Status = "pending"  // the condition holds, not long enough yet
	Firing   Status = "firing"   // it held long enough
	Resolved Status = "resolved" // it fired, and the condition no longer holds
	Dropped  Status = "dropped"  // it was pending and never fired
)

// Alert is one episode of one group of one rule: from the moment the condition held until it
// was resolved. Rule, group and ActiveAt tell it from every other.
type Alert struct {
	Rule        string              `json:"rule"`
	By          []metrics.Dimension `json:"by"`    // the rule's dimensions
	Group       []string            `json:"group"` // their values
	Labels      map[string]string   `json:"labels"`
	Annotations map[string]string   `json:"annotations"`
	Severity    string              `json:"severity"`
	Runbook     string              `json:"runbook"`
	Status      Status              `json:"status"`

	ActiveAt   time.Time  `json:"active_at"`             // since when the condition holds
	FiredAt    *time.Time `json:"fired_at,omitempty"`    // startsAt for Alertmanager, the same after every restart
	HeldAt     time.Time  `json:"held_at"`               // when the condition was last seen to hold
	ResolvedAt *time.Time `json:"resolved_at,omitempty"` // endsAt

	Told map[string]Status `json:"told,omitempty"` // what each Teller was told last
}

// Key tells an alert's rule and group from every other.
func (a *Alert) Key() string { return a.Rule + keySeparator + groupKey(a.Group) }

// episode tells an alert from every other of its rule and group, too.
func (a *Alert) episode() string { return a.Key() + keySeparator + a.ActiveAt.String() }

// untold tells that somebody who knows that it fires does not know yet that it is resolved.
func (a *Alert) untold() bool {
	return a.Status == Resolved && slices.Contains(slices.Collect(maps.Values(a.Told)), Firing)
}

// clone is a copy that shares nothing that changes.
func (a *Alert) clone() *Alert {
	c := *a
	c.Group = slices.Clone(a.Group)
	c.Labels, c.Annotations, c.Told = maps.Clone(a.Labels), maps.Clone(a.Annotations), maps.Clone(a.Told)
	return &c
}

// ended is a copy that is over at now.
func (a *Alert) ended(now time.Time) *Alert {
	c := a.clone()
	if c.Status == Pending {
		c.Status = Dropped
	} else {
		c.Status, c.ResolvedAt = Resolved, &now
	}
	return c
}

// step moves an alert on to what was found at now, and tells whether its status changed. A
// condition that is not known neither starts nor ends anything: who is pending starts
// anew, who fires goes on as if the condition still failed to end. Where a clock was set
// back, who is pending starts anew, too, and keep_firing_for counts from now.
func (a *Alert) step(r *Rule, truth expr.Truth, now time.Time) (changed bool) {
	before := a.Status
	if a.HeldAt.After(now) {
		a.HeldAt = now
	}
	switch {
	case a.Status == Pending && (truth != expr.True || a.ActiveAt.After(now)):
		a.Status = Dropped
	case a.Status == Pending && now.Sub(a.ActiveAt) >= r.For:
		a.Status, a.FiredAt = Firing, &now
	case a.Status == Firing && truth == expr.False && now.Sub(a.HeldAt) >= r.KeepFiringFor:
		a.Status, a.ResolvedAt = Resolved, &now
	}
	if truth == expr.True {
		a.HeldAt = now
	}
	return a.Status != before
}

// groupedAs tells whether the rule still groups as it did.
func (a *Alert) groupedAs(r *Rule) bool { return slices.Equal(a.By, r.By) }

// over tells an alert that has ended.
func (a *Alert) over() bool { return a.Status == Resolved || a.Status == Dropped }

// newAlert is the alert of a group whose condition was found to hold.
func newAlert(f finding, now time.Time) *Alert {
	return &Alert{
		Rule: f.rule.Name, By: f.rule.By, Group: f.group, Labels: f.values.labels(), Annotations: f.values.annotations(),
		Severity: f.rule.Severity, Runbook: f.rule.Runbook, Status: Pending, ActiveAt: now, HeldAt: now,
	}
}

// JSON is the alert for a journal.
func (a *Alert) JSON() string {
	b, _ := json.Marshal(a) // strings and times cannot fail
	return string(b)
}

// compareAlerts orders by rule, then group, then beginning.
func compareAlerts(a, b *Alert) int {
	if c := strings.Compare(a.Key(), b.Key()); c != 0 {
		return c
	}
	return a.ActiveAt.Compare(b.ActiveAt)
}
