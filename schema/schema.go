// Package schema holds the ClickHouse schema as numbered migration templates
// and the JSON Schema of the attempt record. It renders text and runs nothing.
//
// One template set is rendered two ways: for a single node, and for a cluster
// (ON CLUSTER, Replicated engines, Distributed tables over *_local ones).
package schema

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strconv"
	"strings"
	"text/template"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/rollup"
)

//go:embed migrations/*.sql.tmpl
var migrations embed.FS

// Retention in days: what holds unless configured, and the most. A TTL is a
// 32-bit time: 2106 is its end, and beyond it everything counts as expired.
const (
	DefaultRetentionDays = 400
	MaxRetentionDays     = 10_000
)

// RollupMarkDays is how long a mark of a changed minute is kept: without a
// finaliser for so long, marks no longer tell everything.
const RollupMarkDays = 30

// RollupMinuteDays is how long rollups by minute are kept: longer than their
// attempts, as an hour is summed again from all its minutes.
func RollupMinuteDays(retentionDays int) int { return retentionDays + 31 }

// Options say how the migrations are rendered. Names must be plain identifiers.
type Options struct {
	Database      string // holds every table
	Cluster       string // name in remote_servers; "" = single node
	EachNode      bool   // with Cluster: no ON CLUSTER and no replication, the migrations are run on every node
	RetentionDays int    // 0 = DefaultRetentionDays
}

// Migration is one numbered step. Its statements are idempotent (IF NOT EXISTS)
// and touch metadata only, so applying them twice, or from two processes at
// once, is harmless.
type Migration struct {
	ID         int
	Name       string
	Statements []string
}

// Render returns every migration in order of its number.
func Render(o Options) ([]Migration, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	names, err := fs.Glob(migrations, "migrations/*.sql.tmpl")
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	out := make([]Migration, 0, len(names))
	for _, name := range names {
		m, err := o.render(name)
		if err != nil {
			return nil, fmt.Errorf("schema: %s: %w", name, err)
		}
		out = append(out, m)
	}
	return out, nil
}

func (o *Options) validate() error {
	if o.RetentionDays == 0 {
		o.RetentionDays = DefaultRetentionDays
	}
	switch {
	case !identifier(o.Database):
		return fmt.Errorf("schema: Options.Database must be an identifier, got %q", o.Database)
	case o.Cluster != "" && !identifier(o.Cluster):
		return fmt.Errorf("schema: Options.Cluster must be an identifier, got %q", o.Cluster)
	case o.RetentionDays < 1 || o.RetentionDays > MaxRetentionDays:
		return fmt.Errorf("schema: Options.RetentionDays must be within 1..%d, got %d", MaxRetentionDays, o.RetentionDays)
	}
	return nil
}

func identifier(s string) bool {
	ok := s != "" && (s[0] < '0' || s[0] > '9')
	for _, c := range s {
		ok = ok && (c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
	}
	return ok
}

func (o Options) render(name string) (Migration, error) {
	base := strings.TrimSuffix(path.Base(name), ".sql.tmpl")
	number, title, _ := strings.Cut(base, "_")
	id, err := strconv.Atoi(number)
	if err != nil {
		return Migration{}, fmt.Errorf("the file name must start with its number: %w", err)
	}
	t, err := template.New(path.Base(name)).Funcs(o.funcs()).ParseFS(migrations, name)
	if err != nil {
		return Migration{}, err
	}
	var b strings.Builder
	if err := t.Execute(&b, o); err != nil {
		return Migration{}, err
	}
	return Migration{ID: id, Name: title, Statements: statements(b.String())}, nil
}

// statements splits at semicolons that end a line; comment lines between
// statements stay with the one they precede.
func statements(text string) []string {
	var out []string
	for s := range strings.SplitSeq(text, ";\n") {
		if s = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(s), ";")); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func (o Options) funcs() template.FuncMap {
	return template.FuncMap{
		"local":       o.local,
		"table":       func(t string) string { return o.Database + "." + t },
		"onCluster":   o.onCluster,
		"engine":      o.engine,
		"distributed": o.distributed,
		"enum8":       enum8,

		"rollupFigures":    func() []rollup.Figure { return rollup.Figures },
		"rollupMinuteDays": func() int { return RollupMinuteDays(o.RetentionDays) },
		"rollupMarkDays":   func() int { return RollupMarkDays },
	}
}

// local is the table that holds the rows on this node.
func (o Options) local(table string) string {
	if o.Cluster == "" {
		return o.Database + "." + table
	}
	return o.Database + "." + table + "_local"
}

func (o Options) onCluster() string {
	if o.Cluster == "" || o.EachNode {
		return ""
	}
	return " ON CLUSTER " + o.Cluster
}

func (o Options) engine(name, args string) string {
	if o.Cluster == "" || o.EachNode {
		return name + "(" + args + ")"
	}
	replicated := "Replicated" + name + "('/clickhouse/tables/{shard}/{database}/{table}', '{replica}'"
	if args != "" {
		replicated += ", " + args
	}
	return replicated + ")"
}

// distributed declares the table that spreads rows over the shards by key.
func (o Options) distributed(table, key string) string {
	if o.Cluster == "" {
		return ""
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s.%s%s AS %s\nENGINE = Distributed(%s, %s, %s_local, %s);",
		o.Database, table, o.onCluster(), o.local(table), o.Cluster, o.Database, table, key)
}

// enum8 numbers the values of a field in the order of the domain, from 1; the
// empty value, where the field has one, is 0.
func enum8(field string) (string, error) {
	values, ok := EnumValues(field)
	if !ok {
		return "", fmt.Errorf("no enum %q", field)
	}
	items := make([]string, 0, len(values)+1)
	if field == "error_class" || field == "stop_reason" {
		items = append(items, "'' = 0")
	}
	for i, v := range values {
		items = append(items, fmt.Sprintf("'%s' = %d", v, i+1))
	}
	return "Enum8(" + strings.Join(items, ", ") + ")", nil
}

// EnumValues returns the values of an enum field of the record, without the
// empty one.
func EnumValues(field string) ([]string, bool) {
	switch field {
	case "hop":
		return texts(retrylens.Hops), true
	case "cause":
		return texts(retrylens.Causes), true
	case "outcome":
		return texts(retrylens.Outcomes), true
	case "delivery":
		return texts(retrylens.Deliveries), true
	case "error_class":
		return texts(retrylens.ErrorClasses), true
	case "stop_reason":
		return texts(retrylens.StopReasons), true
	case "usage_source":
		return texts(retrylens.UsageSources), true
	case "cost_source":
		return texts(retrylens.CostSources), true
	}
	return nil, false
}

func texts[T ~string](vs []T) []string {
	out := make([]string, len(vs))
	for i, v := range vs {
		out[i] = string(v)
	}
	return out
}
