"""Throughput by users, with the same Swift and workers for all runs."""

import ssbench

scenario = ssbench.load_scenario("smoke")
with ssbench.Bench(ssbench.BenchOptions(workers=2, concurrency=8, local_swift=True)) as bench:
    for users in (2, 8):
        outcome = bench.run(ssbench.override(scenario, user_count=users, operation_count=100))
        if outcome.path is None or outcome.interrupted:
            break
        report = ssbench.report(outcome.path)
        rate, p50 = report.figure("rate") or 0, report.figure("p50")
        print(f"{users} users: {rate:.0f}/s", "" if p50 is None else f"p50 {p50 * 1000:.1f} ms")
