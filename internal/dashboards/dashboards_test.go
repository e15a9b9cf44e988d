package dashboards_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/retrylens/retrylens/internal/dashboards"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/query"
)

var update = flag.Bool("update", false, "rewrite the dashboards")

const dir = "../../dashboards/grafana"

// each runs a check on every dashboard as it is in its file.
func each(t *testing.T, check func(t *testing.T, d *dashboards.Dashboard, text []byte)) {
	t.Helper()
	for _, f := range dashboards.All() {
		t.Run(strings.TrimSuffix(f.Path, ".json"), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(dir, f.Path))
			if err != nil {
				t.Fatal(err)
			}
			check(t, &f.Dashboard, text)
		})
	}
}

// panels are those of a dashboard without the headings.
func panels(d *dashboards.Dashboard) []*dashboard.Panel {
	var out []*dashboard.Panel
	for _, p := range d.Panels {
		if p.Panel != nil {
			out = append(out, p.Panel)
		}
	}
	return out
}

func TestDashboardsAreGolden(t *testing.T) {
	if *update {
		if err := dashboards.Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for _, f := range dashboards.All() {
		made, err := f.JSON()
		if err != nil {
			t.Fatal(err)
		}
		held, err := os.ReadFile(filepath.Join(dir, f.Path))
		if err != nil || !bytes.Equal(made, held) {
			t.Errorf("%s is not what is made now: run make dashboards and read the diff (%v)", f.Path, err)
		}
		want = append(want, filepath.FromSlash(f.Path))
	}
	held, err := filepath.Glob(dir + "/*/*")
	for i := range held {
		held[i], _ = filepath.Rel(dir, held[i])
	}
	if slices.Sort(want); err != nil || !slices.Equal(held, want) {
		t.Errorf("files %v, want %v", held, want)
	}
}

// TestGrafanaKnowsEveryField: the files are read into the types that Grafana's own schema was
// made into, and written again; a field that it does not know is gone then.
func TestGrafanaKnowsEveryField(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	cog.NewRuntime().RegisterDataqueryVariant(variants.DataqueryConfig{Identifier: dashboards.ClickHousePlugin, DataqueryUnmarshaler: readSQL})
	each(t, func(t *testing.T, _ *dashboards.Dashboard, text []byte) {
		if err := known(text); err != nil {
			t.Error(err)
		}
		for _, field := range []string{`"title":`, `"h":`, `"calcs":`, `"mode":`, `"matcher":`, `"rawSql":`, `"expr":`, `"includeAll":`, `"keepTime":`, `"drawStyle":`, `"type": "stat"`, `"showHeader":`} {
			at := bytes.LastIndex(text, []byte(field)) // before it some are in overrides, which hold anything
			if at >= 0 && known(slices.Insert(slices.Clone(text), at, []byte(`"unheard": 1, `)...)) == nil {
				t.Errorf("a field that Grafana does not know, before %s, was not seen", field)
			}
		}
	})
}

func readSQL(raw []byte) (variants.Dataquery, error) {
	var q dashboards.SQL
	return q, json.Unmarshal(raw, &q)
}

// known tells whether all of a dashboard is in the schema.
func known(text []byte) error {
	var d dashboards.Dashboard
	if err := errors.Join(json.Unmarshal(text, &d), d.Validate()); err != nil {
		return err
	}
	again, err := json.Marshal(d)
	if err != nil {
		return err
	}
	var a, b any
	if err := errors.Join(json.Unmarshal(text, &a), json.Unmarshal(again, &b)); err != nil {
		return err
	}
	if !reflect.DeepEqual(a, b) {
		return errors.New("what the schema holds is not what the file holds")
	}
	return nil
}

func TestPanelsHaveIdsPlacesAndWords(t *testing.T) {
	uids := map[string]bool{}
	each(t, func(t *testing.T, d *dashboards.Dashboard, _ []byte) {
		if uid := *d.Uid; uids[uid] || len(uid) > 40 {
			t.Errorf("the uid %q is there twice, or too long for Grafana", uid)
		}
		uids[*d.Uid] = true
		ids, taken := map[uint32]bool{}, map[[2]uint32]uint32{}
		for _, p := range d.Panels {
			id, at := place(p)
			if ids[id] || id == 0 {
				t.Errorf("id %d is there twice, or 0", id)
			}
			ids[id] = true
			if at.X+at.W > 24 || at.W == 0 || at.H == 0 {
				t.Errorf("panel %d is outside the grid: %+v", id, at)
			}
			for x := at.X; x < at.X+at.W; x++ {
				for y := at.Y; y < at.Y+at.H; y++ {
					if other, is := taken[[2]uint32{x, y}]; is {
						t.Fatalf("panels %d and %d overlap at %d, %d", other, id, x, y)
					}
					taken[[2]uint32{x, y}] = id
				}
			}
		}
		for _, p := range panels(d) {
			if *p.Title == "" || len(*p.Description) < 20 || *p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
				t.Errorf("panel %d (%s) lacks a title, a description, a unit or a query", *p.Id, *p.Title)
			}
		}
	})
}

func place(p dashboard.PanelOrRowPanel) (uint32, dashboard.GridPos) {
	if p.RowPanel != nil {
		return p.RowPanel.Id, *p.RowPanel.GridPos
	}
	return *p.Panel.Id, *p.Panel.GridPos
}

// variable finds what Grafana takes for one; what begins with two underscores is built in.
var variable = regexp.MustCompile(`\$\{?([A-Za-z_]\w*)|\[\[(\w+)`)

func TestEveryVariableIsDefinedAndUsed(t *testing.T) {
	each(t, func(t *testing.T, d *dashboards.Dashboard, text []byte) {
		defined := map[string]bool{}
		for _, v := range d.Templating.List {
			if defined[v.Name] {
				t.Errorf("the variable %s is defined twice", v.Name)
			}
			defined[v.Name] = true
		}
		used := map[string]bool{}
		for _, m := range variable.FindAllSubmatch(text, -1) {
			if name := string(m[1]) + string(m[2]); !strings.HasPrefix(name, "__") {
				used[name] = true
			}
		}
		if a, b := slices.Sorted(maps.Keys(defined)), slices.Sorted(maps.Keys(used)); !slices.Equal(a, b) {
			t.Errorf("defined: %v, used: %v", a, b)
		}
	})
}

// TestNoDataSourceIsWritten: each is the one that the variable holds.
func TestNoDataSourceIsWritten(t *testing.T) {
	each(t, func(t *testing.T, _ *dashboards.Dashboard, text []byte) {
		var all any
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}
		n := 0
		walk(all, func(key string, v any) {
			if key != "datasource" {
				return
			}
			if ref, ok := v.(map[string]any); !ok || ref["uid"] != "${datasource}" {
				t.Errorf("data source %v", v)
			}
			n++
		})
		if n < 20 {
			t.Errorf("%d data sources were looked at", n)
		}
	})
}

func walk(v any, see func(key string, v any)) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			see(k, e)
			walk(e, see)
		}
	case []any:
		for _, e := range v {
			walk(e, see)
		}
	}
}

// TestAmplificationIsJudgedAsTheAlertsDo: a page above 1.2, wherever it is shown alone.
func TestAmplificationIsJudgedAsTheAlertsDo(t *testing.T) {
	judged := 0
	each(t, func(t *testing.T, d *dashboards.Dashboard, _ []byte) {
		for _, p := range panels(d) {
			if !strings.HasPrefix(*p.Title, "Amplification") {
				continue
			}
			steps := p.FieldConfig.Defaults.Thresholds.Steps
			if last := steps[len(steps)-1]; last.Value == nil || *last.Value != 1.2 {
				t.Errorf("%s: %+v", *p.Title, steps)
			}
			judged++
		}
	})
	if judged < 6 {
		t.Errorf("%d panels show it", judged)
	}
}

// TestNamesCannotLeaveTheirPlace: a name that a sender chose, or a link, stands in SQL
// percent-encoded only, and in PromQL only between backquotes as a pattern.
func TestNamesCannotLeaveTheirPlace(t *testing.T) {
	bare := regexp.MustCompile(`\$\{?(\w+)[^}]*\}?`)
	each(t, func(t *testing.T, d *dashboards.Dashboard, _ []byte) {
		for _, q := range queries(d) {
			rest := strings.NewReplacer("`${tenant:regex}`", "", "`${provider:regex}`", "", "`${model:regex}`", "", "`${job:regex}`", "", "`${instance:regex}`", "").Replace(q)
			for _, m := range bare.FindAllString(rest, -1) {
				if !strings.HasPrefix(m, "$__") && !strings.HasSuffix(m, ":percentencode}") {
					t.Errorf("%s in\n%s", m, q)
				}
			}
		}
	})
}

// queries are the texts of all queries, those of variables included.
func queries(d *dashboards.Dashboard) []string {
	var out []string
	for _, p := range panels(d) {
		for _, target := range p.Targets {
			out = append(out, dashboards.Text(target))
		}
	}
	for _, v := range d.Templating.List {
		if v.Type != dashboard.VariableTypeQuery {
			continue
		}
		if v.Query.String != nil {
			out = append(out, *v.Query.String)
		} else {
			out = append(out, v.Query.Map["query"].(string))
		}
	}
	return out
}

// filled is what Grafana puts into links; a range of an hour.
var filled = strings.NewReplacer("${ui}", "http://ui.example", "${__url_time_range}", "from=1764288000000&to=1764291600000", "${group}", "model",
	`${__data.fields["name"]:percentencode}`, "a%20b%26c", `${__data.fields["tenant"]:percentencode}`, "t", `${__data.fields["provider"]:percentencode}`, "p%2F%27",
	`${__data.fields["model"]:percentencode}`, "m%2Cn", "${__field.labels.error_class:percentencode}", "timeout",
	"${tenant:queryparam}", "var-tenant=t", "${provider:queryparam}", "var-provider=p%2F%27", "${model:queryparam}", "var-model=m%2Cn", "${service:queryparam}", "var-service=s", "${environment:queryparam}", "var-environment=All")

// TestLinksAreUnderstood: the pages read the time range and the names that a link carries, the
// filters of the dashboard among them.
func TestLinksAreUnderstood(t *testing.T) {
	wanted := map[string]string{"tenant": "t", "provider": "p/'", "model": "m,n", "service": "s"}
	rows, entries := 0, 0
	each(t, func(t *testing.T, d *dashboards.Dashboard, text []byte) {
		for _, m := range regexp.MustCompile(`"url": ("\$\{ui\}[^\n]*"),?\n`).FindAllSubmatch(text, -1) {
			var link string
			if err := json.Unmarshal(m[1], &link); err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse(filled.Replace(link))
			if err != nil || strings.Contains(u.String(), "$") {
				t.Fatalf("%s: %v", link, err)
			}
			if u.RawQuery == "" { // Grafana adds the range and the variables
				continue
			}
			q, err := query.Parse(u.Query(), time.Now())
			if err != nil || q.From.UnixMilli() != 1764288000000 || q.To.UnixMilli() != 1764291600000 {
				t.Errorf("%s: %+v, %v", link, q, err)
			}
			if u.Query().Get("error_class") == "timeout" && u.Path == "/operations" {
				entries++
			}
			for _, v := range d.Templating.List {
				if dim := metrics.Dimension(v.Name); wanted[v.Name] != "" && len(q.Filters[dim]) == 0 && !strings.Contains(link, "${group}") {
					t.Errorf("%s: the filter %s is lost", link, dim)
				}
			}
			for dim, names := range q.Filters {
				if want := wanted[string(dim)]; !slices.Equal(names, []string{want}) && !slices.Equal(names, []string{"a b&c"}) {
					t.Errorf("%s: %s is %q", link, dim, names)
				}
				rows++
			}
		}
	})
	if rows < 10 || entries < 4 {
		t.Errorf("%d names and %d classes were linked", rows, entries)
	}
}
