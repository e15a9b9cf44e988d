// Package des holds the two machines of a discrete-event simulation: [Queue], the
// events in their order of virtual time, and [Station], servers behind one line.
// Both are plain data without a clock, a source of randomness or a goroutine.
//
// What the events are and what is served is none of its business.
package des
