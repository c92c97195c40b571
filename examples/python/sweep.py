"""Throughput and latency by users, with the same Swift and workers for all runs."""

from typing import Any

import ssbench


def print_step(done: Any) -> None:
    step = done.kept.step  # of the run that has just ended
    print(f"{step.value:g} users: {step.rate:.0f}/s p50 {1000 * step.p50:.1f} ms")


found = ssbench.sweep(
    "smoke",
    "users=2,8",
    bench=ssbench.BenchOptions(workers=2, local_swift=True),
    on_run=print_step,
).found
if found is not None:
    print(found.conclusion)
