package dashboards

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// window is the time range of a dashboard.
type window struct {
	from, to time.Time
	step     time.Duration // what Grafana makes of the range and the width of a panel
}

// chosen are the values of variables by name. A nil list is All: the variable's own value for
// it, as it is.
type chosen map[string]choice

type choice struct {
	values []string
	all    string // stands for every value
}

var placeholder = regexp.MustCompile(`\$\{(\w+)(?::(\w+))?\}`)

// interpolate puts variables into a query, as Grafana's formats do (packages/scenes,
// formatRegistry). A variable that is not there, and a format that is not known here, are
// errors; built-in ones, of two underscores, are not.
func interpolate(text string, vars chosen) (string, error) {
	var failed error
	out := placeholder.ReplaceAllStringFunc(text, func(m string) string {
		parts := placeholder.FindStringSubmatch(m)
		c, ok := vars[parts[1]]
		if !ok {
			failed = fmt.Errorf("no variable %s", m)
			return m
		}
		s, err := c.format(parts[2])
		if err != nil {
			failed = fmt.Errorf("%s: %w", m, err)
		}
		return s
	})
	return out, failed
}

func (c choice) format(format string) (string, error) {
	switch format {
	case "percentencode": // also of what stands for All; several are put into braces
		if c.values == nil {
			return percentEncode(c.all), nil
		}
		if len(c.values) == 1 && c.all == "" { // not a list
			return percentEncode(c.values[0]), nil
		}
		return percentEncode("{" + strings.Join(c.values, ",") + "}"), nil
	case "regex": // what stands for All goes in as it is
		if c.values == nil {
			return c.all, nil
		}
		escaped := make([]string, len(c.values))
		for i, v := range c.values {
			escaped[i] = regexSpecial.ReplaceAllString(v, `\$0`)
		}
		if len(escaped) == 1 {
			return escaped[0], nil
		}
		return "(" + strings.Join(escaped, "|") + ")", nil
	}
	return "", fmt.Errorf("format %q", format)
}

var regexSpecial = regexp.MustCompile(`[\\^$*+?.()|\[\]{}/]`)

// percentEncode is encodeURIComponent, with !'()* encoded too.
func percentEncode(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

var macro = regexp.MustCompile(`\$__(\w+)(?:\(([^()]*)\))?`)

// expandSQL expands the macros of grafana-clickhouse-datasource (pkg/macros).
func expandSQL(text string, w window) (string, error) {
	var failed error
	out := macro.ReplaceAllStringFunc(text, func(m string) string {
		parts := macro.FindStringSubmatch(m)
		seconds := strconv.FormatInt(max(1, int64(w.step/time.Second)), 10)
		from, to := fmt.Sprintf("toDateTime(%d)", w.from.Unix()), fmt.Sprintf("toDateTime(%d)", w.to.Unix())
		switch parts[1] {
		case "fromTime":
			return from
		case "toTime":
			return to
		case "interval_s":
			return seconds
		case "timeFilter":
			return parts[2] + " >= " + from + " AND " + parts[2] + " <= " + to
		case "timeInterval":
			return "toStartOfInterval(toDateTime(" + parts[2] + "), INTERVAL " + seconds + " second)"
		}
		failed = fmt.Errorf("macro %s", m)
		return m
	})
	return out, failed
}

// expandPromQL puts in Grafana's intervals.
func expandPromQL(text string, rate string) string {
	return strings.ReplaceAll(text, "$__rate_interval", rate)
}

func TestFormatsAreGrafanas(t *testing.T) {
	vars := chosen{
		"all": {all: ".*"}, "one": {values: []string{`a'b\ c`}, all: ".*"}, "two": {values: []string{"x.y", "(z)"}, all: ".*"}, "single": {values: []string{"5m"}},
	}
	for text, want := range map[string]string{
		"${all:percentencode}": ".%2A", "${all:regex}": ".*", "${single:percentencode}": "5m",
		"${one:percentencode}": "%7Ba%27b%5C%20c%7D", "${one:regex}": `a'b\\ c`,
		"${two:percentencode}": "%7Bx.y%2C%28z%29%7D", "${two:regex}": `(x\.y|\(z\))`,
	} {
		if got, err := interpolate(text, vars); err != nil || got != want {
			t.Errorf("%s gives %s, %v; want %s", text, got, err, want)
		}
	}
	for _, wrong := range []string{"${none}", "${one:unheard}"} {
		if _, err := interpolate(wrong, vars); err == nil {
			t.Errorf("%s is no error", wrong)
		}
	}
}

func TestMacrosAreGrafanas(t *testing.T) {
	w := window{time.Unix(100, 0), time.Unix(200, 0), time.Minute}
	for text, want := range map[string]string{
		"$__fromTime, $__toTime": "toDateTime(100), toDateTime(200)", "step = $__interval_s,": "step = 60,",
		"$__timeFilter(at)": "at >= toDateTime(100) AND at <= toDateTime(200)", "$__timeInterval(b) AS t": "toStartOfInterval(toDateTime(b), INTERVAL 60 second) AS t",
	} {
		if got, err := expandSQL(text, w); err != nil || got != want {
			t.Errorf("%s gives %s, %v; want %s", text, got, err, want)
		}
	}
	if _, err := expandSQL("$__unheard(x)", w); err == nil {
		t.Error("an unknown macro is no error")
	}
}
