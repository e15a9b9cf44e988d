// Package render writes reports and operations for people and programs: text
// tables, Markdown, CSV, JSON and the waterfall of one operation. It is pure: it
// knows no store, no clock, no environment and no terminal but the [Screen] it is
// told of. One formatter of money, tokens, ratios and durations serves all.
package render
