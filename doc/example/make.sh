#!/bin/sh
# Two storage policies of a Swift on this machine, in turn, eight runs each: makes all files beside it anew.
set -eu
cd "$(dirname "$0")"
runs=$(mktemp -d)
ssbench-master run-scenario -f smoke -p gold --local-swift --workers 1 -u 4 -r 5 --seed 1 \
    --repeat 8 --pause 1 --versus='-p silver --label silver' --label gold -s "$runs/run.stat" -q
ssbench-master compare "$runs"/run.a-*.stat.gz --to "$runs"/run.b-*.stat.gz --html comparison.html --force >comparison.txt
for side in a b; do
    for run in "$runs"/run.$side-*.stat.gz; do
        ssbench-master export "$run" --output "$runs/$(basename "$run" .stat.gz).csv"
    done
done
(cd "$runs" && tar --sort=name --mtime=@0 --owner=0 --group=0 -czf results.tar.gz ./*.csv)
mv "$runs/results.tar.gz" .
rm -r "$runs"
