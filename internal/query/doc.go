// Package query reads questions as people, links and scripts write them: times,
// durations, and the parameters of a URL, which mean the same in the API, the web
// UI and links from alerts. It gives a [metrics.Query] or an error that names the
// parameter; it answers nothing itself and knows no store and no transport.
package query
