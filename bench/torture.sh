#!/bin/bash
# Long torture: both kinds (controllers killed and frozen; five hosts behind a bad network), again and again with new seeds.
#
#     bench/torture.sh [seconds in all, 1800 by default] [seconds a round, 150 by default]
#
# Each round is the e2e test of the suite, made longer; it ends with the whole check: every acknowledged job ran exactly once, cancelled
# ones never, no id twice, answers linearizable. Prints one line a round and stops at the first failure, whose log and seed it names.
# The network needs root; without it that half is skipped and says so. TORTURE_PROGRAM names a test program that is built already.
set -u
total=${1:-1800} round=${2:-150}
cd "$(dirname "$0")/.." || exit 1
program=${TORTURE_PROGRAM:-}
if [ -z "$program" ]; then
  cargo test -q -p spur --test e2e --no-run || exit 1
  program=$(cargo test -p spur --test e2e --no-run --message-format=json 2>/dev/null |
    python3 -c 'import json,sys; print([r["executable"] for r in map(json.loads, sys.stdin) if r.get("executable") and r["target"]["name"]=="e2e"][-1])')
fi
log=$(mktemp -d /tmp/spur-torture-XXXXXX)
end=$(($(date +%s) + total)) number=0
while [ "$(date +%s)" -lt $end ]; do
  for test in network::a_bad_network_loses_doubles_and_reorders_nothing torture::nothing_is_lost_doubled_or_told_in_the_wrong_order; do
    number=$((number + 1)) seed=$((RANDOM * 32768 + RANDOM + 1)) file=$log/$number
    if ! (cd crates/spur && SPUR_TORTURE=$round SPUR_SEED=$seed "$program" --exact "$test" --nocapture) >"$file" 2>&1; then
      echo "round $number: $test FAILED with SPUR_SEED=$seed SPUR_TORTURE=$round; see $file"
      tail -20 "$file"
      exit 1
    fi
    echo "$(date +%T) round $number: ${test%%::*} seed $seed: $(grep -E 'jobs, |skipped' "$file" | tail -1)"
  done
done
echo "$number rounds, nothing lost, doubled or told in the wrong order"
