package alerts

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/retrylens/retrylens/internal/alerts"
)

const dashboards = "../../dashboards/prometheus"

// TestPrometheusFilesAreValid, and the rules do what their unit tests say.
func TestPrometheusFilesAreValid(t *testing.T) {
	for _, line := range []string{
		"promtool check rules rules.yml", "promtool test rules rules_test.yml", "promtool check config prometheus.yml", "amtool check-config alertmanager.yml",
	} {
		args := strings.Fields(line)
		if _, err := exec.LookPath(args[0]); err != nil {
			t.Fatalf("%s is missing: install the packages prometheus and prometheus-alertmanager (as root: apt-get install prometheus prometheus-alertmanager)", args[0])
		}
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = dashboards
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
}

// TestEveryAlertIsTold: in both worlds, with a runbook that says what it means, what to
// look at first, what to do and when it lies, and a unit test.
func TestEveryAlertIsTold(t *testing.T) {
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	read(t, filepath.Join(dashboards, "rules.yml"), &file)
	tests, err := os.ReadFile(filepath.Join(dashboards, "rules_test.yml"))
	if err != nil {
		t.Fatal(err)
	}
	severity := map[string]string{}
	for _, r := range file.Groups[0].Rules {
		severity[r.Alert] = r.Labels["severity"]
		if page := r.Annotations["runbook_url"]; page != "https://github.com/retrylens/retrylens/blob/main/docs/runbooks/"+r.Alert+".md" {
			t.Errorf("%s has its runbook at %q", r.Alert, page)
		}
		if !strings.Contains(string(tests), "alertname: "+r.Alert+"\n        exp_alerts") {
			t.Errorf("no unit test has %s fire", r.Alert)
		}
		runbook(t, r.Alert)
	}
	for _, r := range alerts.DefaultRules().Rules {
		if severity[r.Name] != r.Severity {
			t.Errorf("%s is a %s here and a %q for Prometheus", r.Name, r.Severity, severity[r.Name])
		}
		runbook(t, r.Runbook)
	}
}

func read(t *testing.T, path string, to any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(b, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func runbook(t *testing.T, name string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../docs/runbooks", name+".md"))
	if err != nil {
		t.Error(err)
		return
	}
	var headings []string
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "#") {
			headings = append(headings, strings.TrimSpace(line))
		}
	}
	if want := []string{"# " + name, "## What it means", "## What to look at first", "## What to do", "## When it lies"}; !slices.Equal(headings, want) {
		t.Errorf("%s has %q", name, headings)
	}
}
