// Package alerts turns figures into pages: rules in YAML whose conditions are written
// in the figures' own names, the state of every alert from pending to resolved, and
// its delivery to Alertmanagers, a webhook or a stream, with Prometheus's logic of
// resending. It asks a [Source] for reports and keeps its state in a [Journal]; it
// knows no store, no page and no detector, whose verdicts reach it as names of states.
package alerts
