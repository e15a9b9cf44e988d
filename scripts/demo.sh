#!/usr/bin/env bash
# The demo: two providers, one flaky, one in a masked outage, from records to exact
# figures. Everything it makes lies in out/demo and is made anew each time.
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
from="${day}T08:00:00Z" to="${day}T08:40:00Z"

say "A day of 120 operations a minute, half of them to each provider. From 08:00 to 08:40 both have trouble"
run bin/ingest sim --scenario side_by_side --seed 1 --hours 24 --ops-per-minute 120 --start "$day" --out $dir/attempts.ndjson.zst
say "Into a real ClickHouse"
run bin/ingest import $dir/attempts.ndjson.zst
say "What a dashboard shows: error_ratio, hour by hour. Both look alike, both look fine. The other columns tell them apart:
   anthropic is flaky (a retry helps; only the longest take longer, as an overload asks for a long backoff);
   openai is in a masked outage"
run bin/analyze report --from "${day}T07:00:00Z" --to "${day}T10:00:00Z" --group-by provider --bucket 1h
say "The forty minutes alone: amplification, retry_success_ratio, p50 and orphaned spend"
run bin/analyze report --from "$from" --to "$to" --group-by provider
say "As a check, exit code 3: the error ratio passes, the amplification does not"
run bin/analyze report --from "$from" --to "$to" --group-by provider --fail-on 'error_ratio>0.01' --fail-on 'amplification>1.2' >/dev/null || echo "(exit code $?)"
say "One operation of it, attempt by attempt"
# One whose answer came after the caller had given up: its usage arrived as a
# revision.
id=$(bin/ingest sim --scenario side_by_side --seed 1 --hours 24 --ops-per-minute 120 --start "$day" --out - 2>/dev/null |
	grep "\"operation_started_at\":\"${day}T08:[0-3]" | grep '"provider":"openai"' | grep -m1 '"revision":1' | sed 's/.*"logical_id":"\([^"]*\)".*/\1/' || true)
run bin/analyze op "$id"
say "Kept for a look around: export RETRYLENS_STORE=$RETRYLENS_STORE; bin/analyze report --help"
say "Other incidents: bin/ingest sim --list"
