// Package metrics is the readable reference of the derived metrics
// (docs/metrics.md): attempts are folded into operations, operations into
// figures. Every figure or family of figures that one walk gives has its own
// file with its formula; [Formulas] lists them in the order of every report.
//
// It is pure: no clock, no storage, no transport; it imports the domain and the
// standard library only. Other implementations of the same figures (the SQL on
// ClickHouse) are held to it by the conformance scripts below.
package metrics
