package chart_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens/web/chart"
)

// wellFormed fails where the SVG is not XML, has an inline style, or a number that is none.
func wellFormed(t *testing.T, name, svg string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, svg)
		}
	}
	for _, bad := range []string{"NaN", "Inf", "style=", "<script"} {
		if strings.Contains(svg, bad) {
			t.Errorf("%s has %s\n%s", name, bad, svg)
		}
	}
}

func TestLinesOfAnyValues(t *testing.T) {
	from := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	nan := math.NaN()
	for i, values := range [][]float64{
		{}, {nan}, {1}, {nan, 1, nan}, {1, 1, 1}, {0, 0}, {1, nan, 2, 3, nan}, {1e18, -1e18}, {0, 1e-12}, {5, 4, 3},
	} {
		times := make([]time.Time, len(values))
		for j := range times {
			times[j] = from.Add(time.Duration(j) * time.Minute)
		}
		for _, zero := range []bool{true, false} {
			c := chart.Lines{
				From: from, To: from.Add(5 * time.Minute), Times: times, Lines: []chart.Line{{Name: "<b>", Values: values}}, Low: nan, High: nan, Zero: zero,
				Width: 400, Height: 100, Format: func(float64) string { return "<script>&" }, Clock: func(time.Time, time.Duration) string { return `"<x>` },
			}
			wellFormed(t, fmt.Sprint("lines ", i, zero), string(c.SVG()))
			c.Low, c.High = 0.5, 2
			wellFormed(t, fmt.Sprint("band ", i, zero), string(c.SVG()))
		}
		wellFormed(t, fmt.Sprint("spark ", i), string(chart.Spark(values, nan, nan)))
		wellFormed(t, fmt.Sprint("spark ", i), string(chart.Spark(values, 0, 1)))
	}
}

// TestALineGoesWhereItsValuesAre: the largest is at the top, a gap breaks it, a value alone is a dot.
func TestALineGoesWhereItsValuesAre(t *testing.T) {
	from := time.Unix(0, 0)
	c := chart.Lines{
		From: from, To: from.Add(4 * time.Second), Low: math.NaN(), High: math.NaN(), Width: 166, Height: 128,
		Lines:  []chart.Line{{Values: []float64{0, 10, math.NaN(), 5}}},
		Format: func(float64) string { return "" }, Clock: func(time.Time, time.Duration) string { return "" },
	}
	for i := range 4 {
		c.Times = append(c.Times, from.Add(time.Duration(i)*time.Second))
	}
	got := string(c.SVG())
	// 100 × 100 units of plot from (58, 8); 5 % of room above, and below but not under 0.
	for _, want := range []string{`d="M58.0 108.0L83.0 12.8M133.0 60.4"`, `<circle class="s0" cx="133.0" cy="60.4" r="2"/>`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

func TestBarsAndFalls(t *testing.T) {
	for _, parts := range [][]float64{{}, {0}, {1}, {0.5, 0.7}, {-1, 2}, {math.NaN()}} {
		if len(parts) == 1 && math.IsNaN(parts[0]) {
			continue // shares of nothing are not drawn by callers
		}
		wellFormed(t, fmt.Sprint("bar ", parts), string(chart.Bar(80, parts...)))
	}
	if got := string(chart.Bar(80, 0.5, 0.7)); !strings.Contains(got, `x="40.0" y="0" width="40.0"`) {
		t.Errorf("a bar runs over: %s", got)
	}
	for _, s := range []chart.Span{{From: 0, To: 0, Class: "full"}, {From: 10, To: 90, Class: "hatch", Mark: 50}, {From: 100, To: 5, Class: "part"}, {From: 90, To: 100, Class: "failed", Mark: 500}} {
		wellFormed(t, fmt.Sprint("fall ", s), string(chart.Fall(0, 100, s)))
	}
	wellFormed(t, "no span", string(chart.Fall(5, 5, chart.Span{From: 5, To: 5, Class: "full"})))
	got := string(chart.Fall(0, 100, chart.Span{From: 25, To: 75, Class: "hatch", Mark: 50}))
	if !strings.Contains(got, `x="100.0" y="2" width="200.0"`) || !strings.Contains(got, `class="mark" d="M200.0 0V14"`) {
		t.Errorf("the wait is elsewhere: %s", got)
	}
}
