// Command detectorbench holds the detector to worlds whose truth is known
// (docs/detector.md): masked outages of every size, everything that only looks like one,
// quiet months, and what a round over many series costs. It writes a table to standard
// error and one line of JSON to standard output.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/retrylens/retrylens/internal/detect"
	"github.com/retrylens/retrylens/internal/sim"
)

func main() {
	half := flag.String("half", "report", "seeds: report, or tune to choose thresholds by")
	seeds := flag.Int("seeds", 8, "of each kind, size and rate of masked outages; others have a third")
	shapes := flag.Int("shapes", 3, "seeds of each kind, history and rate of worlds whose figures are drawn")
	mixed := flag.Int("mixed", 6, "seeds of each kind and history of worlds of which nothing is fixed")
	months := flag.Int("months", 3, "quiet months of 20 series")
	joint := flag.Float64("joint", 0, "detect.Options.Joint, to tune it; 0 = the default")
	only := flag.String("only", "", "kinds, comma-separated; none = all")
	workers := flag.Int("workers", runtime.GOMAXPROCS(0), "goroutines")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, os.Stderr, config{*half, *seeds, *shapes, *mixed, *months, *workers, *only, detect.Options{Joint: *joint}})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "detectorbench:", err)
		os.Exit(1)
	}
}

type config struct {
	half                                  string
	seeds, shapes, mixed, months, workers int
	only                                  string
	o                                     detect.Options
}

// report is the line of JSON.
type report struct {
	*score
	Shapes  []shapeScore    `json:"drawn_worlds"`
	Mixed   []mixedScore    `json:"mixed_worlds"`
	Months  monthsReport    `json:"quiet_months"`
	CPU     []cpuResult     `json:"rounds,omitempty"`
	Targets map[string]bool `json:"targets"`
	Seconds float64         `json:"seconds"`
}

type monthsReport struct {
	Months      int         `json:"months"`
	Series      int         `json:"series"`
	Evaluations int         `json:"evaluations"`
	Pages       int         `json:"pages"`
	PerMonth    float64     `json:"pages_a_month"`
	False       []falsePage `json:"which,omitempty"`
}

const (
	monthSeries = 20
	month       = 30 * 24 * time.Hour
)

// monthRates are operations a minute of a series, by month.
var monthRates = []float64{6, 9, 12}

func run(ctx context.Context, out, table io.Writer, c config) error {
	began := time.Now()
	first := uint64(reportSeeds)
	if c.half == "tune" {
		first = tuneSeeds
	}
	p := plan{maskedRates: []float64{13, 25, 42, 90}, otherRates: []float64{13, 42, 120}, maskedSeeds: c.seeds, otherSeeds: max(1, c.seeds/3)}
	results, err := runAll(ctx, chosen(p.jobs(first), c.only), c.workers, c.o)
	if err != nil {
		return err
	}
	r := report{score: scoreOf(c.half, results)}
	r.table(table)
	if r.Shapes, err = runShapes(ctx, shapesOf(first+800_000, c.shapes), c.workers, c.o); err != nil {
		return err
	}
	shapeTable(table, r.Shapes)
	if r.Mixed, err = runMixed(ctx, chosenMixed(mixedOf(first+600_000, c.mixed), c.only), c.workers, c.o); err != nil {
		return err
	}
	mixedTable(table, r.Mixed)
	if r.Months, err = quietMonths(ctx, first, c); err != nil {
		return err
	}
	fmt.Fprintf(table, "\n%d false pages in %d months of %d series, %d evaluations\n", r.Months.Pages, r.Months.Months, monthSeries, r.Months.Evaluations)
	if c.months > 0 {
		for _, series := range []int{500, 1000, 2000} {
			cpu, err := roundsOf(series, 24*time.Hour)
			if err != nil {
				return err
			}
			r.CPU = append(r.CPU, cpu)
			fmt.Fprintf(table, "%d series, %d rounds: %.1f ms CPU a round in the mean, %.1f in the worst minute, %.1f MB\n", cpu.Series, cpu.Rounds, cpu.MeanMS, cpu.WorstMS, cpu.HeapMB)
		}
	}
	r.Seconds = time.Since(began).Seconds()
	r.Targets = r.targets()
	return json.NewEncoder(out).Encode(r)
}

func quietMonths(ctx context.Context, first uint64, c config) (monthsReport, error) {
	var all []quietMonth
	for i := range c.months {
		all = append(all, quietMonth{seed: first + 900_000 + uint64(i), series: monthSeries, perMinute: monthRates[i%len(monthRates)], length: month})
	}
	got, err := runMonths(ctx, all, c.workers, c.o)
	r := monthsReport{Months: c.months, Series: monthSeries, Evaluations: got.evaluations, Pages: len(got.pages), False: got.pages}
	if c.months > 0 {
		r.PerMonth = float64(r.Pages) / float64(c.months)
	}
	return r, err
}

// targets tells which are met.
func (r *report) targets() map[string]bool {
	t := map[string]bool{
		"step_onset_99_percent_in_2_minutes":      r.Step.Share >= 0.99,
		"slow_onset_99_percent_in_2_minutes":      r.Slow.Share >= 0.99,
		"never_masked_outage_of_healthy_or_flaky": r.Never == 0,
		"at_most_1_false_page_a_month":            r.Months.PerMonth <= 1,
	}
	t["never_masked_outage_of_drawn_worlds_that_are_none"] = !slices.ContainsFunc(r.Shapes, func(x shapeScore) bool {
		return x.MaskedOutage > 0 && (x.Truth == sim.Healthy || x.Truth == sim.Flaky)
	})
	mixed := sumMixed(r.Mixed)
	t["mixed_worlds_99_percent_in_2_minutes"] = mixed.share() >= 0.99
	t["never_masked_outage_of_mixed_worlds_that_are_none"] = mixed.SaidMasked == 0
	for _, c := range r.CPU {
		if c.Series == 2000 {
			t["2000_series_1_second_cpu_a_round"] = c.WorstMS <= 1000
		}
	}
	return t
}

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// chosen are the jobs of some kinds; "" = of all.
func chosen(all []job, kinds string) []job {
	if kinds == "" {
		return all
	}
	return slices.DeleteFunc(all, func(j job) bool { return !slices.Contains(strings.Split(kinds, ","), j.kind) })
}

// chosenMixed are the worlds that are named in part; "" = all, and mixed = all of this family.
func chosenMixed(all []mixedWorld, kinds string) []mixedWorld {
	if kinds == "" {
		return all
	}
	return slices.DeleteFunc(all, func(w mixedWorld) bool {
		name := "mixed " + mixedKinds[w.kind].name
		return !slices.ContainsFunc(strings.Split(kinds, ","), func(part string) bool { return strings.Contains(name, part) })
	})
}
