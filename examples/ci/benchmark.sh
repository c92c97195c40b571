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
# Each of the baselines that is not there becomes that of these runs. Against the last one alone, a store that
# becomes 5 % slower with each change would never fail.
set -eu

store=
[ -n "${ST_AUTH:-}${OS_AUTH_URL:-}" ] || store=--local-swift

rm -rf candidate comparison*
mkdir candidate
ssbench-master run-scenario -f store.yaml --workers 2 --repeat "${RUNS:-4}" --results-dir candidate $store

compare() { # BASELINE FORMAT FILE
    ssbench-master compare "$1"/*.stat.gz --to candidate/*.stat.gz --results-dir candidate --force \
        --fail-if 'p50 > +10%' --fail-if 'rate < -10%' --fail-if 'errors > 0.1%' --format "$2" --output "$3"
}

worst=0
for baseline in fixed last; do
    if ! ls "$baseline"/*.stat.gz > /dev/null 2>&1; then
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
