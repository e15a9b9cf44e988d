package alerts

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrylens/retrylens/internal/metrics"
)

// Links are the addresses that alerts carry.
type Links struct {
	External string // of this service's UI, without the last slash; "" = no links to it
	Runbooks string // of the folder of runbooks, without the last slash; "" = no links to them
}

// before is how far back from its beginning the link of an alert looks.
const before = 30 * time.Minute

// Generator is a page of the UI that shows what the alert saw: its group, from half an
// hour before it began until it was resolved, or now.
func (l Links) Generator(a *Alert) string {
	if l.External == "" {
		return ""
	}
	v := url.Values{"from": {strconv.FormatInt(a.ActiveAt.Add(-before).UnixMilli(), 10)}, "to": {"now"}}
	if a.ResolvedAt != nil {
		v.Set("to", strconv.FormatInt(a.ResolvedAt.UnixMilli(), 10))
	}
	for name, value := range a.Labels {
		if slices.Contains(metrics.HomeDimensions, metrics.Dimension(name)) {
			v.Set(name, value)
		}
	}
	return l.External + "/?" + v.Encode()
}

// Runbook is the page that says what to do.
func (l Links) Runbook(a *Alert) string {
	if l.Runbooks == "" {
		return ""
	}
	return strings.TrimSuffix(l.Runbooks, "/") + "/" + url.PathEscape(a.Runbook) + ".md"
}

// annotations are the alert's, with the runbook's address.
func (l Links) annotations(a *Alert) map[string]string {
	c := a.clone().Annotations
	if c == nil {
		c = map[string]string{}
	}
	if page := l.Runbook(a); page != "" {
		c["runbook_url"] = page
	}
	return c
}
