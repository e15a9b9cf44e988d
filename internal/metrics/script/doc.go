// Package script is the small language in which the derived metrics are held
// to their definitions: load attempts, ask for figures, compare. The same
// scripts run on every implementation of [Folder]: the Go fold and the SQL.
//
// A script is lines; # starts a comment. A word that holds spaces is quoted.
//
//	case NAME                 starts a case with no attempts
//	attempt KEY=VALUE...      one record, by the keys of the wire format; times
//	                          may be times of day. Left out: tenant=t
//	                          logical_id=a provider=openai attempt=0
//	                          started_at=12:00 outcome=success (error beside an
//	                          error_class), operation_started_at = that of the
//	                          operation's first line
//	query KEY=VALUE...        from, to, as_of, group_by=a,b bucket=1m0s
//	                          filter.DIMENSION=a,b; the lines below are about its
//	                          report. Without one: everything, as of the next noon
//	rows N                    the report has N rows
//	expect [DIM=VALUE...] FIGURE VALUE
//	                          of the one row with these dimensions; VALUE is null,
//	                          a number or a fraction. A figure with entries takes
//	                          all of them as KEY=VALUE..., or none
//	provisional true|false
//	completeness FIELD VALUE  records_missing, known_usage_ratio
//	gap EMITTER N             so many records are missing of the emitter
//	refused TEXT              the query is an error that holds TEXT
package script
