package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/retrylens/retrylens/internal/alerts"
	"github.com/retrylens/retrylens/internal/alerts/rulestest"
)

// ErrRulesFailed is returned when a test of rules failed.
var ErrRulesFailed = errors.New("rules are not as expected")

// CheckRules reads files of rules and says what is wrong in them.
func CheckRules(s Streams, files []string) error {
	var bad error
	for _, file := range files {
		rules, err := loadRules(file)
		if err != nil {
			fmt.Fprintln(s.Err, err)
			bad = &UsageError{Err: fmt.Errorf("%w: see above", ErrRulesFailed)}
			continue
		}
		fmt.Fprintf(s.Out, "%s: %d rules\n", file, len(rules.Rules))
	}
	return bad
}

// TestRules plays scripts against rules, "" = the default ones, and says which
// expectation was not met.
func TestRules(ctx context.Context, s Streams, rulesFile string, scripts []string) error {
	rules, err := loadRules(rulesFile)
	if err != nil {
		return err
	}
	failed := 0
	for _, file := range scripts {
		n, err := testRules(ctx, s, rules, file)
		if err != nil {
			return err
		}
		failed += n
	}
	if failed > 0 {
		return fmt.Errorf("%w: %d expectations were not met", ErrRulesFailed, failed)
	}
	return nil
}

func testRules(ctx context.Context, s Streams, rules *alerts.Rules, file string) (failed int, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	script, err := rulestest.Parse(f)
	if err != nil {
		return 0, &UsageError{Err: fmt.Errorf("%s: %w", file, err)}
	}
	for i := range script.Tests {
		t := &script.Tests[i]
		failures, err := rulestest.Run(ctx, rules, t)
		if err != nil {
			return 0, fmt.Errorf("%s: %s: %w", file, t.Name, err)
		}
		result := "ok  "
		if len(failures) > 0 {
			result = "FAIL"
		}
		fmt.Fprintf(s.Out, "%s  %s\n", result, t.Name)
		for _, f := range failures {
			fmt.Fprintln(s.Out, "  "+f.String())
		}
		failed += len(failures)
	}
	return failed, nil
}

// PrintDefaultRules writes the rules that analyze serve comes with, or the script that
// tests them.
func PrintDefaultRules(w io.Writer, script bool) error {
	text := alerts.DefaultRulesYAML()
	if script {
		text = alerts.DefaultRulesTest()
	}
	_, err := io.WriteString(w, text)
	return err
}
