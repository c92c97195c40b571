"""A test of one's own that a store must pass: pytest examples/python/test_store.py."""

import ssbench

pytest_plugins = ["ssbench.local_swift.pytest_plugin"]


def test_reads_are_fast(ssbench_swift: ssbench.Credentials) -> None:
    report = ssbench.run_scenario("smoke", users=2, operations=320, credentials=ssbench_swift)
    assert not report.exit_code, report.verdict.reasons
    p95 = report.figure("read.p95")
    assert p95 is not None, "too few reads for a 95th percentile"
    assert p95 < 5.0  # seconds
