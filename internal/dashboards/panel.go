package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// Colours of Okabe and Ito, as the pages have them: told apart by everybody, on light and on
// dark. Curves differ by dashes too.
const (
	blue      = "#0072B2"
	orange    = "#E69F00"
	vermilion = "#D55E00"
)

var curveColours = []string{"#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#0072B2", "#F0E442", "#999999"}

var curveDashes = [][]float64{nil, {10, 4}, {2, 4}, {12, 4, 2, 4}}

// Amplification is judged as the alerts do: a ticket above 1.1, a page above 1.2.
const (
	elevated = 1.1
	high     = 1.2
)

// panel is what a panel shows: its definition and what it asks.
type panel struct {
	title, about, unit string
	decimals           *float64
	targets            []variants.Dataquery
	steps              []dashboard.Threshold // beyond blue
}

func (p panel) base(kind, plugin string) dashboard.Panel {
	return dashboard.Panel{
		Type: kind, Title: &p.title, Description: &p.about, Datasource: datasource(plugin), Targets: p.targets,
		FieldConfig: &dashboard.FieldConfigSource{
			Defaults:  dashboard.FieldConfig{Unit: &p.unit, Decimals: p.decimals, NoValue: ptr("–"), Thresholds: thresholds(p.steps)},
			Overrides: []dashboard.DashboardFieldConfigSourceOverrides{},
		},
	}
}

func thresholds(steps []dashboard.Threshold) *dashboard.ThresholdsConfig {
	return &dashboard.ThresholdsConfig{Mode: dashboard.ThresholdsModeAbsolute, Steps: append([]dashboard.Threshold{{Color: blue}}, steps...)}
}

func above(value float64, colour string) dashboard.Threshold {
	return dashboard.Threshold{Value: &value, Color: colour}
}

var (
	amplificationSteps = []dashboard.Threshold{above(elevated, orange), above(high, vermilion)}
	badAboveZero       = []dashboard.Threshold{above(0.000001, vermilion)}
)

// stat is one number.
func (p panel) stat(plugin string) dashboard.Panel {
	out := p.base("stat", plugin)
	out.FieldConfig.Defaults.Color = &dashboard.FieldColor{Mode: dashboard.FieldColorModeIdThresholds}
	out.Options = stat.Options{
		GraphMode: common.BigValueGraphModeNone, ColorMode: common.BigValueColorModeValue, JustifyMode: common.BigValueJustifyModeAuto, TextMode: common.BigValueTextModeValue,
		WideLayout: true, PercentChangeColorMode: common.PercentChangeColorModeStandard, Orientation: common.VizOrientationAuto,
		ReduceOptions: common.ReduceDataOptions{Calcs: []string{"lastNotNull"}, Values: ptr(false), Fields: ptr("")},
	}
	return out
}

// series is curves over time; names are those whose look is fixed.
func (p panel) series(plugin string, names ...string) dashboard.Panel {
	out := p.base("timeseries", plugin)
	custom := common.GraphFieldConfig{
		DrawStyle: ptr(common.GraphDrawStyleLine), LineWidth: ptr(2.0), FillOpacity: ptr(0.0), ShowPoints: ptr(common.VisibilityModeAuto), SpanNulls: &common.BoolOrFloat64{Bool: ptr(false)},
		Stacking: &common.StackingConfig{Mode: ptr(common.StackingModeNone)}, ThresholdsStyle: &common.GraphThresholdsStyleConfig{Mode: common.GraphThresholdsStyleModeOff},
	}
	if len(p.steps) > 0 {
		custom.ThresholdsStyle.Mode = common.GraphThresholdsStyleModeDashed
	}
	out.FieldConfig.Defaults.Custom = custom
	out.FieldConfig.Defaults.Color = &dashboard.FieldColor{Mode: dashboard.FieldColorModeIdPaletteClassic}
	out.Options = timeseries.Options{
		Legend:  common.VizLegendOptions{DisplayMode: common.LegendDisplayModeList, Placement: common.LegendPlacementBottom, ShowLegend: true, Calcs: []string{}},
		Tooltip: common.VizTooltipOptions{Mode: common.TooltipDisplayModeMulti, Sort: common.SortOrderDescending},
	}
	out.Interval = ptr("1m")
	for i, n := range names {
		out.FieldConfig.Overrides = append(out.FieldConfig.Overrides, curve(n, i))
	}
	return out
}

// stacked is series that add up, as bars.
func stacked(p dashboard.Panel) dashboard.Panel {
	c := p.FieldConfig.Defaults.Custom.(common.GraphFieldConfig)
	c.DrawStyle, c.FillOpacity, c.LineWidth, c.Stacking = ptr(common.GraphDrawStyleBars), ptr(70.0), ptr(1.0), &common.StackingConfig{Mode: ptr(common.StackingModeNormal)}
	p.FieldConfig.Defaults.Custom = c
	return p
}

// curve is how the i-th curve looks.
func curve(name string, i int) dashboard.DashboardFieldConfigSourceOverrides {
	colour := curveColours[i%len(curveColours)]
	o := byName(name, dashboard.DynamicConfigValue{Id: "color", Value: dashboard.FieldColor{Mode: dashboard.FieldColorModeIdFixed, FixedColor: &colour}})
	if dash := curveDashes[i/2%len(curveDashes)]; dash != nil {
		o.Properties = append(o.Properties, dashboard.DynamicConfigValue{Id: "custom.lineStyle", Value: common.LineStyle{Fill: ptr(common.LineStyleFillDash), Dash: dash}})
	}
	return o
}

func byName(name string, properties ...dashboard.DynamicConfigValue) dashboard.DashboardFieldConfigSourceOverrides {
	return dashboard.DashboardFieldConfigSourceOverrides{Matcher: dashboard.MatcherConfig{Id: "byName", Options: name}, Properties: properties}
}

// column is how a column of a table is shown.
type column struct {
	name, unit string
	decimals   *float64
	steps      []dashboard.Threshold
	links      []dashboard.DashboardLink
}

// table is rows; q says what to ask.
func (p panel) table(plugin string, q query, columns ...column) dashboard.Panel {
	p.targets = q.targets
	out := p.base("table", plugin)
	out.Transformations = q.transforms
	out.FieldConfig.Defaults.Custom = common.TableFieldOptions{Align: common.FieldTextAlignmentAuto, CellOptions: nil}
	out.Options = table.Options{ShowHeader: true, CellHeight: ptr(common.TableCellHeightSm)}
	for _, c := range columns {
		out.FieldConfig.Overrides = append(out.FieldConfig.Overrides, c.override())
	}
	return out
}

func (c column) override() dashboard.DashboardFieldConfigSourceOverrides {
	o := byName(c.name)
	set := func(id string, v any) {
		o.Properties = append(o.Properties, dashboard.DynamicConfigValue{Id: id, Value: v})
	}
	if c.unit != "" {
		set("unit", c.unit)
	}
	if c.decimals != nil {
		set("decimals", *c.decimals)
	}
	if c.steps != nil {
		set("thresholds", thresholds(c.steps))
		set("custom.cellOptions", map[string]string{"type": "color-text"})
	}
	if c.links != nil {
		set("links", c.links)
	}
	return o
}

// figureColumns are those of figures.
func figureColumns(figures []string) []column {
	out := make([]column, len(figures))
	for i, f := range figures {
		out[i] = column{name: f, unit: unitOf(f), decimals: decimalsOf(f)}
		if f == "amplification" {
			out[i].steps = amplificationSteps
		}
	}
	return out
}

// groupColumns are those of dimensions, with a link to the row's triage under the other filters.
func groupColumns(dimensions, filters []string) []column {
	out := make([]column, len(dimensions))
	for i, d := range dimensions {
		out[i] = column{name: d, unit: units.String, links: []dashboard.DashboardLink{rowLink(dimensions, filters)}}
	}
	return out
}
