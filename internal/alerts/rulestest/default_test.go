package rulestest_test

import (
	"os"
	"testing"

	"github.com/retrylens/retrylens/internal/alerts"
	"github.com/retrylens/retrylens/internal/alerts/rulestest"
)

// TestDefaultRules plays the shipped scripts, and finds every default rule firing in one of
// them.
func TestDefaultRules(t *testing.T) {
	f, err := os.Open("../default_test.yml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	script, err := rulestest.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	rules := alerts.DefaultRules()
	fires := map[string]bool{}
	for i := range script.Tests {
		test := &script.Tests[i]
		t.Run(test.Name, func(t *testing.T) {
			failures, err := rulestest.Run(t.Context(), rules, test)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range failures {
				t.Error(f)
			}
		})
		for _, e := range test.Expect {
			for _, labels := range e.Firing {
				fires[labels["alertname"]] = true
			}
		}
	}
	for _, r := range rules.Rules {
		if !fires[r.Name] {
			t.Errorf("no script has %s fire", r.Name)
		}
	}
}
