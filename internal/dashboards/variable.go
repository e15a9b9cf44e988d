package dashboards

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func text(s string) *dashboard.StringOrMap { return &dashboard.StringOrMap{String: &s} }

func option(s string) dashboard.VariableOption {
	return dashboard.VariableOption{Text: dashboard.StringOrArrayOfString{String: &s}, Value: dashboard.StringOrArrayOfString{String: &s}}
}

// datasourceVariable chooses the data source, so that none is written into a panel.
func datasourceVariable(plugin string) dashboard.VariableModel {
	return dashboard.VariableModel{Type: dashboard.VariableTypeDatasource, Name: "datasource", Label: ptr("Data source"), Query: text(plugin), Refresh: ptr(dashboard.VariableRefreshOnDashboardLoad)}
}

// nameVariable holds names of a dimension, any number of them; all is what stands for every
// one, also for those that the list does not have.
func nameVariable(name, plugin, all string, q *dashboard.StringOrMap) dashboard.VariableModel {
	current := dashboard.VariableOption{
		Text: dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}}, Value: dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
	}
	return dashboard.VariableModel{
		Type: dashboard.VariableTypeQuery, Name: name, Label: ptr(titleOf(name)), Datasource: datasource(plugin), Query: q, Current: &current,
		Multi: ptr(true), IncludeAll: ptr(true), AllValue: ptr(all), Refresh: ptr(dashboard.VariableRefreshOnTimeRangeChanged), Sort: ptr(dashboard.VariableSortAlphabeticalAsc),
	}
}

// choiceVariable holds one of the given values, at first the first.
func choiceVariable(name, label, about string, values ...string) dashboard.VariableModel {
	list := ""
	options := make([]dashboard.VariableOption, len(values))
	for i, v := range values {
		options[i] = option(v)
		options[i].Selected = ptr(i == 0)
		if i > 0 {
			list += ","
		}
		list += v
	}
	return dashboard.VariableModel{
		Type: dashboard.VariableTypeCustom, Name: name, Label: ptr(label), Description: ptr(about), Query: text(list), Options: options,
		Current: ptr(option(values[0])), Multi: ptr(false), IncludeAll: ptr(false), AllowCustomValue: ptr(false),
	}
}

// uiVariable is where the pages of analyze serve are.
func uiVariable() dashboard.VariableModel {
	const address = "http://127.0.0.1:8481"
	return dashboard.VariableModel{
		Type: dashboard.VariableTypeTextbox, Name: "ui", Label: ptr("Retrylens"), Description: ptr("Address of analyze serve, for links."),
		Query: text(address), Current: ptr(option(address)), Options: []dashboard.VariableOption{option(address)},
	}
}

// link is one to an address.
func link(title, url string) dashboard.DashboardLink {
	return dashboard.DashboardLink{Title: title, Type: dashboard.DashboardLinkTypeLink, Icon: "external link", Url: &url, Tags: []string{}, TargetBlank: true}
}

// pageLinks are the pages of analyze serve with the time range and the variables, which they
// understand as Grafana writes them.
func pageLinks() []dashboard.DashboardLink {
	var out []dashboard.DashboardLink
	for _, page := range []struct{ title, path string }{{"Triage", "/"}, {"Errors", "/errors"}, {"Layers", "/layers"}, {"Spend", "/spend"}, {"Operations", "/operations"}} {
		l := link(page.title, "${ui}"+page.path)
		l.KeepTime, l.IncludeVars, l.Tooltip = true, true, page.title+" in Retrylens: the same time range and filters, exact"
		out = append(out, l)
	}
	return out
}

// rowLink opens the triage of a table's row: its dimensions, the other filters, and the time range.
func rowLink(dimensions, filters []string) dashboard.DashboardLink {
	url := "${ui}/?${__url_time_range}"
	for _, d := range dimensions {
		url += "&var-" + d + `=${__data.fields["` + d + `"]:percentencode}`
	}
	return link("Triage in Retrylens", url+chosen(filters, dimensions))
}

// entryLink opens the operations that have an entry, such as an error class.
func entryLink(label string, filters []string) dashboard.DashboardLink {
	return link("Operations in Retrylens", "${ui}/operations?${__url_time_range}&"+label+"=${__field.labels."+label+":percentencode}"+chosen(filters, nil))
}

// chosen are the values of the variables that filter by other dimensions, as parameters.
func chosen(filters, but []string) string {
	text := ""
	for _, f := range filters {
		if !slices.Contains(but, f) {
			text += "&${" + f + ":queryparam}"
		}
	}
	return text
}
