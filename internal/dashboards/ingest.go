package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

const ingestAbout = "Do records arrive, are they kept, and does the store take them?"

// ingestSQL is what the store knows of ingest.
func ingestSQL() Dashboard {
	b := newBoard(clickhouse{}, "ingest", "ingest health", ingestAbout+" What the services themselves count, by the second, is in the dashboard for Prometheus: the store has their latest word only.")
	b.section("How far to trust the figures")
	trust(b)
	b.section("Ingest services")
	b.services()
	b.rejected()
	b.section("Emitters")
	b.gaps()
	b.arrivals()
	b.section("Rollups and store")
	b.passes()
	b.tables()
	return b.d
}

// services are the ingest services and their latest words.
func (b *board) services() {
	b.put(16, 7, panel{
		title: "Services heard of within 10 minutes", unit: "short",
		about: "The latest word of each: every 30 s, counts since it started. None: no ingest service runs, or it cannot reach the store.",
	}.table(b.plugin(), query{targets: tableSQL(lines("SELECT node, started, last, rejected AS rejected_lines, dead AS dead_letters, bytes AS spool_bytes, age AS spool_age_ms", "FROM", "(", speaking, ")", "ORDER BY node"))},
		column{name: "spool_bytes", unit: "bytes"}, column{name: "spool_age_ms", unit: "ms"}, column{name: "dead_letters", steps: badAboveZero},
		column{name: "started", unit: "dateTimeAsIso"}, column{name: "last", unit: "dateTimeAsIso"}))
}

func (b *board) rejected() {
	const runs = "SELECT max(rejected_lines) AS rejected, max(dead_letters) AS dead FROM " + database + ".ingest_status GROUP BY node, started_at"
	b.fact(4, fact{title: "Rejected lines", unit: "short", about: "Lines that were refused, with their reason, to who sent them: of every run of a service that is remembered.", query: "SELECT sumOrNull(rejected) AS rejected_lines\nFROM\n(\n" + runs + "\n)"})
	b.fact(4, fact{title: "Dead letters", unit: "short", steps: badAboveZero, about: "Records that the store refused for good; they lie in a dead-letter file beside the spool.", query: "SELECT sumOrNull(dead) AS dead_letters\nFROM\n(\n" + runs + "\n)"})
}

func (b *board) gaps() {
	b.put(12, 9, panel{
		title: "Emitters with gaps", unit: "short", about: missingText + " An emitter is one process from its start to its end.",
	}.table(b.plugin(), query{targets: tableSQL(lines("SELECT tenant, emitter, counted, received, counted - received AS missing", "FROM", "(", emitters, ")", "WHERE missing > 0", "ORDER BY missing DESC, tenant, emitter", "LIMIT 100"))},
		column{name: "tenant", unit: "string"}, column{name: "emitter", unit: "string"}, column{name: "missing", steps: badAboveZero}))
}

func (b *board) arrivals() {
	b.put(12, 9, stacked(panel{
		title: "Attempts by the minute of their operation", unit: "short", about: b.about("attempts") + " A gap is a time without calls, or records that did not arrive.",
		targets: clickhouse{}.over("attempts"),
	}.series(b.plugin(), "attempts")))
}

func (b *board) passes() {
	b.put(12, 8, panel{
		title: "Passes of the finaliser", unit: "short", about: "Passes, the minutes that they computed anew, and minutes that were changed after their attempts had expired and so are not counted.",
		targets: timeSQL(lines("SELECT", "    $__timeInterval(finished_at) AS time,", "    count() AS passes,", "    sum(p.minutes) AS minutes,", "    sum(p.expired) AS expired",
			"FROM "+database+".rollup_runs AS p", "WHERE kind = 'pass' AND $__timeFilter(finished_at)", "GROUP BY time", "ORDER BY time")),
	}.series(b.plugin(), "passes", "minutes", "expired"))
}

func (b *board) tables() {
	b.put(12, 8, panel{
		title: "Tables on this node", unit: "short", about: "Active parts of the tables. Rows of attempts hold repeats and old revisions until parts are merged; on a cluster only this node's are seen.",
	}.table(b.plugin(), query{targets: tableSQL(lines("SELECT table, sum(p.rows) AS rows, sum(bytes_on_disk) AS bytes, count() AS parts", "FROM system.parts AS p", "WHERE active AND database = '"+database+"'", "GROUP BY table", "ORDER BY bytes DESC"))},
		column{name: "table", unit: "string"}, column{name: "bytes", unit: "bytes"}))
}

// alerts are those that analyze serve keeps in the store.
func (b *board) alerts() {
	b.put(columns, 8, panel{
		title: "Alerts", unit: "string", about: "Episodes of alerts of analyze serve within the time range, the latest first. Other filters do not apply. What to do stands in the runbook of the rule.",
	}.table(b.plugin(), query{targets: tableSQL(lines("SELECT rule, severity, status, group_key, active_at, fired_at, resolved_at", "FROM "+database+".alerts FINAL",
		"WHERE active_at < $__toTime AND (resolved_at IS NULL OR resolved_at >= $__fromTime)", "ORDER BY active_at DESC", "LIMIT 100"))},
		column{name: "active_at", unit: "dateTimeAsIso"}, column{name: "fired_at", unit: "dateTimeAsIso"}, column{name: "resolved_at", unit: "dateTimeAsIso"}))
}

// states are the detector's verdicts.
func (b *board) states() {
	p := prometheus{}
	var matchers string
	for _, l := range p.filters() {
		matchers += ", " + l + "=~`${" + l + ":regex}`"
	}
	q := merged([]string{"holds"}, []string{"max by (" + labels + `, state) (retrylens_detector_state{state!~"healthy|flaky"` + matchers + "}) == 1"})
	b.put(columns, 7, panel{
		title: "What the detector sees", unit: "short",
		about: "Series that are not healthy or flaky: masked_outage (retries hide it), outage, recovering, and signs such as metastable and hidden_layer. Empty is good, if the detector runs: see the snapshot's age.",
	}.table(p.plugin(), q, groupColumns(p.filters(), p.filters())...))
}

// promSeries is a curve of ingest serve.
type promSeries struct{ expr, legend string }

func (b *board) curves(title, about, unit string, series ...promSeries) {
	var targets []variants.Dataquery
	var names []string
	for i, s := range series {
		targets = append(targets, ranged(i, s.expr, s.legend))
		names = append(names, s.legend)
	}
	b.put(12, 8, panel{title: title, about: about, unit: unit, targets: targets}.series(PrometheusPlugin, names...))
}

// ingestProm is what the ingest services count.
func ingestProm() Dashboard {
	b := newBoard(ingestGauges{}, "ingest", "ingest health", ingestAbout)
	b.section("Now")
	for _, f := range []fact{
		{title: "Services up", unit: "short", about: "Scrapes of ingest services that succeed.", query: "count(" + scraped("spool_bytes") + ")"},
		{title: "The store refuses", unit: "short", steps: badAboveZero, about: "Services whose last insert failed for a reason that does not pass by itself: a missing table, a right withdrawn. Records wait in the spool.", query: "sum(" + scraped("store_refuses") + ")"},
		{title: "Oldest record in a spool", unit: "s", steps: []dashboard.Threshold{above(60, orange), above(600, vermilion)}, about: "How long the oldest record waits for the store; 0 = nothing waits.", query: "max(" + scraped("spool_oldest_age_seconds") + ")"},
		{title: "Fullest spool", unit: "percentunit", steps: []dashboard.Threshold{above(0.5, orange), above(0.8, vermilion)}, about: "Bytes / what they may become. A full spool refuses records: emitters keep them.", query: "max(" + scraped("spool_bytes") + " / " + scraped("spool_limit_bytes") + ")"},
		{title: "Dead letters", unit: "short", steps: badAboveZero, about: "Since the services started: records that the store refused and that lie in a dead-letter file.", query: "sum(" + scraped("dead_letters_total") + ")"},
		{title: "Spool bytes not kept", unit: "short", steps: badAboveZero, about: "Runs of bytes that were no record: quarantined, or still in their segment.", query: "sum(" + scraped("quarantined_total") + ") + sum(" + scraped("spool_unkept") + ")"},
	} {
		b.fact(4, f)
	}
	b.section("In and out")
	b.curves("Records", "Accepted: durable and acknowledged to who sent them. Inserted: acknowledged by the store, repeats included. What is between them is in the spool.", "cps",
		promSeries{"sum(rate(" + scraped("accepted_total") + "[$__rate_interval]))", "accepted"}, promSeries{"sum(rate(" + scraped("inserted_total") + "[$__rate_interval]))", "inserted"})
	b.curves("Requests by answer", "accepted, or the code of a problem.", "reqps", promSeries{"sum by (answer) (rate(" + scraped("requests_total") + "[$__rate_interval]))", "{{answer}}"})
	b.curves("Lines refused by reason", "Field and kind of reason; the answer tells who sent them. Empty: none was refused.", "cps", promSeries{"sum by (reason) (rate(" + scraped("rejected_total") + "[$__rate_interval]))", "{{reason}}"})
	b.curves("How long inserts take", "Failed ones included; within a bucket of a factor 2.", "s",
		promSeries{"histogram_quantile(0.5, sum by (le) (rate(" + scraped("insert_seconds_bucket") + "[$__rate_interval])))", "p50"},
		promSeries{"histogram_quantile(0.99, sum by (le) (rate(" + scraped("insert_seconds_bucket") + "[$__rate_interval])))", "p99"})
	b.section("Spool and store")
	b.curves("Spool", "Bytes that wait, and what they may become.", "bytes", promSeries{"sum(" + scraped("spool_bytes") + ")", "waiting"}, promSeries{"sum(" + scraped("spool_limit_bytes") + ")", "limit"})
	b.curves("Oldest record in a spool", "By service: how long the oldest record waits for the store.", "s", promSeries{scraped("spool_oldest_age_seconds"), "{{instance}}"})
	b.curves("Inserts that failed and are tried again", "By kind of error. Empty: none failed.", "cps", promSeries{"sum by (kind) (rate(" + scraped("insert_retries_total") + "[$__rate_interval]))", "{{kind}}"})
	b.curves("Fsyncs and segments", "Fsyncs a second bound how many requests are acknowledged a second; segments are the files that wait.", "short",
		promSeries{"sum(rate(" + scraped("spool_syncs_total") + "[$__rate_interval]))", "fsyncs a second"}, promSeries{"sum(" + scraped("spool_segments") + ")", "segments"})
	b.section("Process")
	b.curves("Memory", "Resident memory of the services.", "bytes", promSeries{"process_resident_memory_bytes" + services + " and on (job, instance) " + scraped("spool_bytes"), "{{instance}}"})
	b.curves("Goroutines", "Of the services: one for each connection and a few beside.", "short", promSeries{"go_goroutines" + services + " and on (job, instance) " + scraped("spool_bytes"), "{{instance}}"})
	b.section("How far to trust the figures (analyze serve)")
	trust(b)
	return b.d
}

const services = "{job=~`${job:regex}`, instance=~`${instance:regex}`}"

// scraped is a metric of ingest serve.
func scraped(metric string) string { return "retrylens_ingest_" + metric + services }

// ingestGauges is Prometheus with the variables of the ingest services.
type ingestGauges struct{ prometheus }

func (ingestGauges) variables() []dashboard.VariableModel {
	out := []dashboard.VariableModel{datasourceVariable(PrometheusPlugin)}
	for _, l := range []string{"job", "instance"} {
		out = append(out, nameVariable(l, PrometheusPlugin, ".*", &dashboard.StringOrMap{Map: map[string]any{
			"query": "label_values(retrylens_ingest_spool_bytes, " + l + ")", "refId": "PrometheusVariableQueryEditor-VariableQuery",
		}}))
	}
	return out
}
