"""Follow a run while it goes on: a line for each block of results, and the slowest operation at the end."""

import ssbench
from ssbench.results.block import ResultBlock

slowest: list[float] = []


def look(block: ResultBlock) -> None:
    times = block.last_byte[~block.failed]
    slowest.append(max(times.tolist(), default=0.0))
    print(f"{len(block)} operations, {block.failed.sum()} errors")


report = ssbench.run_scenario("smoke", operations=200, local_swift=True, on_results=look)
print(f"slowest {max(slowest):.3f} s; {report.verdict.outcome.value}: {report.path}")
