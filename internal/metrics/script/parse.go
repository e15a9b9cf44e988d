package script

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

// Case is one case of a script.
type Case struct {
	Name     string
	Attempts []retrylens.Attempt // normalized and valid, in the order of the script
	Queries  []Query
}

// Query is a query and what its report must hold.
type Query struct {
	metrics.Query
	Checks []Check
}

// Check is one line to hold a report to.
type Check struct {
	Line  int
	Words []string // rows, expect, provisional, completeness, gap or refused, and its arguments
}

// Parse reads a script. An error names its line.
func Parse(src string) ([]Case, error) {
	var p parser
	for i, line := range strings.Split(src, "\n") {
		words, err := split(line)
		if err == nil && len(words) > 0 {
			err = p.line(i+1, words)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return p.cases, nil
}

type parser struct {
	cases []Case
	start map[string]time.Time // operation_started_at by operation, of the current case
}

func (p *parser) line(n int, words []string) error {
	if words[0] == "case" {
		p.cases = append(p.cases, Case{Name: strings.Join(words[1:], " ")})
		p.start = map[string]time.Time{}
		return nil
	}
	if len(p.cases) == 0 {
		return errors.New("before the first case")
	}
	c := &p.cases[len(p.cases)-1]
	switch words[0] {
	case "attempt":
		return p.attempt(c, words[1:])
	case "query":
		q, err := parseQuery(words[1:])
		c.Queries = append(c.Queries, Query{Query: q})
		return err
	case "rows", "expect", "provisional", "completeness", "gap", "refused":
		return p.check(c, Check{Line: n, Words: words})
	}
	return fmt.Errorf("unknown word %q", words[0])
}

func (p *parser) check(c *Case, check Check) error {
	if len(check.Words) < 2 {
		return fmt.Errorf("%s: what?", check.Words[0])
	}
	if len(c.Queries) == 0 {
		c.Queries = []Query{{Query: metrics.Query{AsOf: nextNoon}}}
	}
	q := &c.Queries[len(c.Queries)-1]
	q.Checks = append(q.Checks, check)
	return nil
}

func (p *parser) attempt(c *Case, pairs []string) error {
	a := retrylens.Attempt{
		Tenant: "t", LogicalID: "a", Provider: "openai", StartedAt: mustTime("12:00"),
	}
	for _, pair := range pairs {
		k, v, _ := strings.Cut(pair, "=")
		if err := SetField(&a, k, v); err != nil {
			return err
		}
	}
	if a.Outcome == "" {
		a.Outcome = retrylens.OutcomeSuccess
		if a.ErrorClass != "" {
			a.Outcome = retrylens.OutcomeError
		}
	}
	p.placeInOperation(&a)
	a.Normalize()
	if err := a.Validate(retrylens.Limits{Now: nextNoon}); err != nil {
		return err
	}
	c.Attempts = append(c.Attempts, a)
	return nil
}

// placeInOperation gives a record the start of its operation's first line.
func (p *parser) placeInOperation(a *retrylens.Attempt) {
	key := a.Tenant + "\x00" + a.LogicalID
	if a.OperationStartedAt.IsZero() {
		a.OperationStartedAt = p.start[key]
	}
	if a.OperationStartedAt.IsZero() {
		a.OperationStartedAt = a.StartedAt
	}
	if _, ok := p.start[key]; !ok {
		p.start[key] = a.OperationStartedAt
	}
}

// nextNoon is the as_of of scripts that name none.
var nextNoon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func mustTime(s string) time.Time {
	t, err := parseTime(s)
	if err != nil {
		panic(err)
	}
	return t
}

func parseQuery(pairs []string) (metrics.Query, error) {
	q := metrics.Query{AsOf: nextNoon}
	for _, pair := range pairs {
		k, v, _ := strings.Cut(pair, "=")
		if err := setQuery(&q, k, v); err != nil {
			return q, fmt.Errorf("%s: %w", k, err)
		}
	}
	return q, nil
}

func setQuery(q *metrics.Query, key, value string) (err error) {
	switch key {
	case "from":
		q.From, err = parseTime(value)
	case "to":
		q.To, err = parseTime(value)
	case "as_of":
		q.AsOf, err = parseTime(value)
	case "bucket":
		q.Bucket, err = time.ParseDuration(value)
	case "group_by":
		for _, d := range strings.Split(value, ",") {
			q.GroupBy = append(q.GroupBy, metrics.Dimension(d))
		}
	default:
		d, ok := strings.CutPrefix(key, "filter.")
		if !ok {
			return errors.New("unknown key")
		}
		if q.Filters == nil {
			q.Filters = map[metrics.Dimension][]string{}
		}
		q.Filters[metrics.Dimension(d)] = strings.Split(value, ",")
	}
	return err
}

// split cuts a line into words at spaces; a quoted part of a word is taken as
// it is, so that KEY="a b" is one word.
func split(line string) ([]string, error) {
	var words []string
	for {
		line = strings.TrimLeft(line, " \t\r")
		if line == "" || line[0] == '#' {
			return words, nil
		}
		end := strings.IndexAny(line, " \t\r\"")
		if end < 0 {
			return append(words, line), nil
		}
		if line[end] != '"' {
			words, line = append(words, line[:end]), line[end:]
			continue
		}
		quoted, err := strconv.QuotedPrefix(line[end:])
		if err != nil {
			return nil, errors.New("a quote is not closed")
		}
		inner, _ := strconv.Unquote(quoted)
		words, line = append(words, line[:end]+inner), line[end+len(quoted):]
	}
}
