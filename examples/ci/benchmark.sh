#!/bin/sh
# Measure a store four times (or $RUNS) and compare it with the baseline.
#
# The store is the one that ST_AUTH or OS_AUTH_URL names; without them ssbench starts one on this machine.
# Exit codes are those of `ssbench-master compare`: 0 as good as the baseline, 5 worse, 6 undecided.
#
# candidate/       stat files of these runs
# baseline/        stat files to compare them with; the runs become the baseline where there is none
# comparison.xml   JUnit: a test case for each condition
# comparison.md    what changed, with intervals
set -eu

store=
[ -n "${ST_AUTH:-}${OS_AUTH_URL:-}" ] || store=--local-swift

rm -rf candidate
mkdir candidate
ssbench-master run-scenario -f store.yaml --workers 2 --repeat "${RUNS:-4}" --results-dir candidate $store

if ! ls baseline/*.stat.gz > /dev/null 2>&1; then
    cp -r candidate baseline
    echo "There was no baseline: these runs are the baseline of the next ones." | tee comparison.md
    exit 0
fi

compare() {
    ssbench-master compare baseline/*.stat.gz --to candidate/*.stat.gz --results-dir candidate \
        --fail-if 'p50 > +10%' --fail-if 'rate < -10%' --fail-if 'errors > 0.1%' --force "$@"
}
compare --format markdown --output comparison.md || true # the next line has its exit code
compare --format junit --output comparison.xml
