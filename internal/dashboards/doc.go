// Package dashboards makes the dashboards for Grafana: overview, provider, spend and ingest,
// each for ClickHouse and for Prometheus. Figures, units and descriptions are those of
// internal/metrics; the SQL reads the view rollups_between, the PromQL the gauges of
// analyze serve and ingest serve. It knows no store, and nothing that is served imports it;
// test/dashboards runs every query.
package dashboards
