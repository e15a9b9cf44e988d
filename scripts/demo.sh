#!/usr/bin/env bash
# The demo: a simulated day with a masked outage, from records to exact figures.
# Everything it makes lies in out/demo and is made anew each time.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=out/demo
day=${DEMO_DAY:-$(date -u -d 'yesterday' +%Y-%m-%d)}
mkdir -p $dir

# Each demo has a store of its own. An engine ends 10 s after its last client;
# the stores of earlier demos go once theirs has.
for old in $dir/store.*; do
	[ -d "$old" ] || continue
	bin/engine status --data "$old" >/dev/null 2>&1 || rm -rf "$old"
done
store=$dir/store.$$
export RETRYLENS_STORE=embedded:$store

say() { printf '\n== %s\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }

say "A day of 60 operations a minute; from 08:00 to 16:00 one zone of a provider fails"
run bin/ingest sim --seed 1 --hours 24 --start "$day" --out $dir/attempts.ndjson.zst
say "Into a real ClickHouse"
run bin/ingest import $dir/attempts.ndjson.zst
say "The day in thirds: error_ratio stays flat while amplification and latency climb"
run bin/analyze report --from "$day" --to "$(date -u -d "$day + 1 day" +%Y-%m-%d)" --group-by provider --bucket 8h
say "The outage alone, every figure"
run bin/analyze report --from "${day}T08:00:00Z" --to "${day}T16:00:00Z" --provider openai
say "One operation of it, attempt by attempt"
# One whose answer came after the caller had given up: its usage arrived as a
# revision.
id=$(bin/ingest sim --seed 1 --hours 24 --start "$day" --out - | grep "\"operation_started_at\":\"${day}T1[0-4]" | grep -m1 '"revision":1' | sed 's/.*"logical_id":"\([^"]*\)".*/\1/' || true)
run bin/analyze op "$id"
say "Kept for a look around: export RETRYLENS_STORE=$RETRYLENS_STORE; bin/analyze report --help"
