package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// fact is a number that is no figure.
type fact struct {
	title, about, unit string
	query              string // SQL or PromQL
	steps              []dashboard.Threshold
}

func (b *board) fact(w uint32, f fact) {
	targets := tableSQL(f.query)
	if b.name() == "prometheus" {
		targets = []variants.Dataquery{instant(0, f.query)}
	}
	b.put(w, 4, panel{title: f.title, about: f.about, unit: f.unit, targets: targets, steps: f.steps}.stat(b.plugin()))
}

// emitters is what each emitting process counted and what arrived.
const emitters = "SELECT tenant, emitter, max(max_seq) + 1 AS counted, groupBitmapMerge(seqs) AS received FROM " + database + ".emitter_seqs GROUP BY tenant, emitter"

// waiting is what the finaliser has not seen.
const waiting = "SELECT minute, mark, min(marked_at) AS since FROM " + database + ".rollup_marks GROUP BY minute, mark HAVING sum(sign) > 0"

const (
	coverageText = "Records received / records that emitters counted, of all tenants and ever: what is missing cannot be in any figure. Unknown when no record has emitter and seq."
	missingText  = "Records that emitters counted and that never arrived, of all tenants and ever."
	lagText      = "Age of the oldest change that the rollups do not hold yet. Reports and pages read it from attempts; dashboards lack it."
)

// trust puts what the figures cannot have seen.
func trust(b *board) {
	facts := sqlTrust
	if b.name() == "prometheus" {
		facts = promTrust
	}
	for _, f := range facts {
		b.fact(uint32(columns/len(facts)), f)
	}
}

var coverageSteps = []dashboard.Threshold{above(0, vermilion), above(0.99, orange), above(0.999, blue)}

var sqlTrust = []fact{
	{
		title: "Coverage", unit: "percentunit", steps: coverageSteps, about: coverageText,
		query: "SELECT sum(received) / nullIf(sum(counted), 0) AS coverage_ratio\nFROM\n(\n" + emitters + "\n)",
	},
	{
		title: "Records missing", unit: "short", steps: badAboveZero, about: missingText,
		query: "SELECT sumOrNull(counted - received) AS records_missing\nFROM\n(\n" + emitters + "\n)",
	},
	{
		title: "Finaliser lag", unit: "s", steps: []dashboard.Threshold{above(300, orange), above(3600, vermilion)}, about: lagText,
		query: "SELECT if(count() = 0, 0, greatest(0, dateDiff('millisecond', min(since), now64(3)))) / 1000 AS finaliser_lag_seconds\nFROM\n(\n" + waiting + "\n)",
	},
	{
		title: "Newest rollup", unit: "s", steps: []dashboard.Threshold{above(300, orange), above(3600, vermilion)},
		about: "How long ago the newest minute began that the rollups hold. It grows while nobody calls, when records do not arrive, and when no finaliser runs.",
		query: "SELECT if(count() = 0, NULL, dateDiff('second', max(bucket), now())) AS newest_rollup_age_seconds\nFROM " + database + ".rollups\nWHERE level = 'minute' AND kind = 'bucket'",
	},
	{
		title: "Known usage", unit: "percentunit", about: describe(knownUsage),
		query: "SELECT\n    " + selected([]string{knownUsage}) + "\nFROM " + between(wide) + homeRows,
	},
	{
		title: "Spool age", unit: "s", steps: []dashboard.Threshold{above(60, orange), above(600, vermilion)},
		about: "Age of the oldest record that waits in the spool of an ingest service heard of within 10 minutes. Unknown when none was.",
		query: "SELECT maxOrNull(age) / 1000 AS spool_age_seconds\nFROM\n(\n" + speaking + "\n)",
	},
}

// speaking are the ingest services that said something lately.
const speaking = "SELECT node, argMax(started_at, at) AS started, max(at) AS last, argMax(rejected_lines, at) AS rejected, argMax(dead_letters, at) AS dead, argMax(spool_bytes, at) AS bytes, argMax(spool_age_ms, at) AS age FROM " +
	database + ".ingest_status GROUP BY node HAVING last > now64(3) - toIntervalMinute(10)"

var promTrust = []fact{
	{title: "Coverage", unit: "percentunit", steps: coverageSteps, about: coverageText, query: "min(retrylens_coverage_ratio)"},
	{title: "Records missing", unit: "short", steps: badAboveZero, about: missingText, query: "max(retrylens_records_missing)"},
	{title: "Finaliser lag", unit: "s", steps: []dashboard.Threshold{above(300, orange), above(3600, vermilion)}, about: lagText, query: "max(retrylens_finaliser_lag_seconds)"},
	{
		title: "Snapshot age", unit: "s", steps: []dashboard.Threshold{above(120, orange), above(300, vermilion)}, query: "max(retrylens_snapshot_age_seconds)",
		about: "How old the oldest of the windows is that analyze serve shows. A window older than 8 of its intervals is not shown at all.",
	},
	{title: "Snapshots that failed", unit: "short", query: "sum(increase(retrylens_snapshot_failures_total[1h]))", about: "In the last hour: the store could not be asked."},
	{title: "Spool age", unit: "s", steps: []dashboard.Threshold{above(60, orange), above(600, vermilion)}, about: "Age of the oldest record that waits in a spool.", query: "max(retrylens_spool_age_seconds)"},
}
