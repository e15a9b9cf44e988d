// Package dashboards runs every query of the dashboards for Grafana: the SQL on a real engine,
// as the user that may only read, compared with the reference fold; the PromQL on a real
// Prometheus that scrapes real services. What Grafana makes of variables and macros is in
// grafana_test.go. It holds tests only.
package dashboards
