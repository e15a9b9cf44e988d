package dashboards

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var block = regexp.MustCompile("(?s)```(sql|yaml)\n(.*?)```")

// TestReadmeCanBeCopied: what it says to run is SQL of the engine's, and its files are YAML that
// names the data sources and the folder of the dashboards.
func TestReadmeCanBeCopied(t *testing.T) {
	f := newFixture(t)
	text, err := os.ReadFile("../../dashboards/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var files strings.Builder
	n := 0
	for _, m := range block.FindAllSubmatch(text, -1) {
		if string(m[1]) == "yaml" {
			var file map[string]any
			if err := yaml.Unmarshal(m[2], &file); err != nil || file["apiVersion"] != 1 {
				t.Errorf("%v\n%s", err, m[2])
			}
			files.Write(m[2])
			continue
		}
		for statement := range strings.SplitSeq(strings.TrimSpace(string(m[2])), ";") {
			if statement = strings.TrimSpace(statement); statement == "" {
				continue
			}
			n++
			if _, err := f.ask(t.Context(), "SELECT formatQuery('"+strings.ReplaceAll(statement, "'", `\'`)+"')"); err != nil {
				t.Error(err)
			}
		}
	}
	if n < 3 || !strings.Contains(files.String(), "grafana-clickhouse-datasource") || !strings.Contains(files.String(), "type: prometheus") {
		t.Errorf("%d statements, files:\n%s", n, files.String())
	}
}
