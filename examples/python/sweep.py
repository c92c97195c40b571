"""Throughput by users, with the same Swift and workers for all runs."""

import ssbench

found = ssbench.sweep(
    "smoke",
    "users=2,8",
    bench=ssbench.BenchOptions(workers=2, local_swift=True),
    on_run=lambda done: print(f"{done.kept.step.value:g} users: {done.kept.step.rate:.0f}/s"),
).found
if found is not None:
    print(found.conclusion)
