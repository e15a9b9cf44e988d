// Package app joins the parts of Retrylens: it is the only place that knows the
// stores, the engine, the importer, the simulator and the renderers at once. A
// command turns its flags into one of the Options here, New checks them and Run
// does the work.
//
// Data goes to [Streams].Out, everything else to Streams.Err. No flag, no
// cobra and no os.Exit lives here; package cli has those.
package app
