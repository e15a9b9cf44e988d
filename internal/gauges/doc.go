// Package gauges shows the figures of the last minutes to Prometheus: one gauge for
// each figure, window, tenant, provider and model. A snapshot is taken at intervals
// and swapped whole, so a scrape costs the store nothing and never sees half of one;
// series that are gone are gone, and a snapshot that is too old is not shown at all.
// It knows no store and no listener.
package gauges
