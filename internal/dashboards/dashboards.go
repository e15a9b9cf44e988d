package dashboards

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// Dashboard is one in Grafana's classic schema, which every version imports.
type Dashboard = dashboard.Dashboard //nolint:staticcheck // its successor is read by Grafana 12 and later only

// File is a dashboard and its place below dashboards/grafana.
type File struct {
	Path      string
	Dashboard Dashboard
}

// All are the dashboards.
func All() []File {
	var out []File
	add := func(plugin, name string, d Dashboard) {
		out = append(out, File{plugin + "/" + name + ".json", d})
	}
	for _, s := range []source{clickhouse{}, prometheus{}} {
		add(s.name(), "overview", overview(s))
		add(s.name(), "provider", provider(s))
	}
	add("clickhouse", "spend", spend(clickhouse{}))
	add("prometheus", "spend", spend(prometheus{fixed: "1h"}))
	add("clickhouse", "ingest", ingestSQL())
	add("prometheus", "ingest", ingestProm())
	return out
}

// JSON is the file as Grafana imports it.
func (f File) JSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	err := e.Encode(f.Dashboard)
	return b.Bytes(), err
}

// Write writes every file below a directory.
func Write(dir string) error {
	for _, f := range All() {
		data, err := f.JSON()
		if err != nil {
			return err
		}
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
