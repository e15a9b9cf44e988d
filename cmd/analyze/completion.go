package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/retrylens/retrylens/internal/app"
	"github.com/retrylens/retrylens/internal/metrics"
)

// completeDimensions completes the last word of a comma-separated list with a
// dimension that is not in it yet.
func completeDimensions(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	prefix := typed[:strings.LastIndex(typed, ",")+1]
	used := strings.Split(prefix, ",")
	var out []string
	for _, name := range app.DimensionNames() {
		if !slices.Contains(used, name) && strings.HasPrefix(prefix+name, typed) {
			out = append(out, prefix+name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeFigures completes the name of a figure, its keys included.
func completeFigures(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, f := range metrics.Formulas {
		if f.Label == "" {
			out = append(out, f.Name+">")
		}
		for _, key := range f.Keys {
			out = append(out, f.Name+"{"+key+"}>")
		}
	}
	out = slices.DeleteFunc(out, func(s string) bool { return !strings.HasPrefix(s, typed) })
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
