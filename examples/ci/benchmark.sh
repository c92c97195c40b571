#!/bin/sh
# Measure a store four times (or $RUNS) and compare it with two baselines.
#
# The store is the one that ST_AUTH or OS_AUTH_URL names; without them ssbench starts one on this machine.
# Exit codes are those of `ssbench-master compare`: 0 as good as both baselines, 5 worse, 6 undecided.
#
# candidate/             stat files of these runs
# fixed/                 the baseline that stays until somebody wants another one (baseline.txt)
# last/                  the runs before these that were as good, where UPDATE_BASELINE is set
# comparison-*.xml       JUnit: a test case for each condition
# comparison.md          what changed, with intervals
#
# Each of the baselines that is not there becomes that of these runs, unless these are not good enough. Against the last one alone, a store that
# becomes 5 % slower with each change would never fail.
set -eu

store=
[ -n "${ST_AUTH:-}${OS_AUTH_URL:-}" ] || store=--local-swift

rm -rf candidate comparison*
mkdir candidate

# Without a condition on errors a single failed operation is exit code 1. Requests that were retried are in
# no error, and a comparison has no condition on them.
worst=0
ssbench-master run-scenario -f store.yaml --workers 2 --repeat "${RUNS:-4}" --results-dir candidate $store \
    --fail-if 'errors > 0.1%' --fail-if 'retries > 1%' --undecided pass || worst=$?
case $worst in
    0) ;;
    5) echo "Too many operations failed, or too many requests were retried: see the log." > comparison.md ;;
    *) exit $worst ;;
esac

compare() { # BASELINE FORMAT FILE
    ssbench-master compare "$1"/*.stat.gz --to candidate/*.stat.gz --results-dir candidate --force \
        --fail-if 'p50 > +10%' --fail-if 'rate < -10%' --fail-if 'errors > 0.1%' --format "$2" --output "$3"
}

for baseline in fixed last; do
    if ! ls "$baseline"/*.stat.gz > /dev/null 2>&1; then
        [ $worst = 0 ] || continue
        cp -r candidate "$baseline"
        echo "There was no $baseline baseline: these runs are it." >> comparison.md
        continue
    fi
    compare "$baseline" markdown comparison-part.md || true # the next one has the exit code
    { echo "## Compared with the $baseline baseline" && cat comparison-part.md; } >> comparison.md
    rm comparison-part.md
    code=0
    compare "$baseline" junit "comparison-$baseline.xml" || code=$?
    case $code in
        0) ;;
        6) [ $worst = 5 ] || worst=6 ;;
        5) worst=5 ;;
        *) exit $code ;;
    esac
done

# What is undecided may be worse: the baselines stay as they are.
if [ $worst = 0 ] && [ -n "${UPDATE_BASELINE:-}" ]; then
    rm -rf last
    cp -r candidate last
fi
exit $worst
