// Package datadir is the protocol between an engine and its clients: what the
// files of a data directory mean and who may write them.  It starts nothing and
// dials nothing.
//
//	engine.lock      flock'ed exclusively by the engine for as long as it lives
//	clients.lock     flock'ed shared by every client for as long as it is one;
//	                 exclusively by an engine that is about to leave
//	engine.json      where the running engine answers; written when it does
//	password         of the user retrylens, mode 0600
//	viewer.password  of the user viewer, mode 0600
//	extra.xml        optional: more XML for inside <clickhouse> of the config
//	engine.log       what a detached engine says: starts, stops, crashes
//	config/          config.xml and users.xml, there only while an engine starts
//	log/             ClickHouse's own log
//	files/           the only place that user_files_path names
//	clickhouse/      ClickHouse's data
//
// Only the kernel says who is alive.  A lock goes with the process that held it,
// however it ended, so a process id that was used again, or an engine.json that a
// kill -9 left behind, misleads nobody: without the lock it is not read.
package datadir
