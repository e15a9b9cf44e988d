// Package alerts tests paging from attempts to a receiver, with a real engine, a real
// Prometheus and a real Alertmanager.
package alerts
