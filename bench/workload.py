"""What drawing operations and keeping track of objects costs the master, in microseconds each.

    python bench/workload.py [OPERATIONS]

For each batch size: draw a batch with next_jobs(), then tell finished() for each of it, as the
master does. Medians of the rounds, with the range; then the bytes an object of the inventory takes.
"""

import gc
import statistics
import sys
import time
import tracemalloc

from ssbench.scenario.model import Scenario, SizeClass
from ssbench.workload.draws import Workload
from ssbench.workload.population import Population

ROUNDS = 7
INVENTORY = 2_000_000


def scenario(initial: int) -> Scenario:
    profile = (20.0, 55.0, 15.0, 10.0)
    names = ("zero", "tiny", "small")
    return Scenario(
        name="bench",
        size_classes=tuple(SizeClass(name, 4096, 65536, initial, profile) for name in names),
        user_count=64,
        operation_count=1,
    )


def prepared(initial: int) -> Population:
    drawn = scenario(initial)
    state = Population(drawn, Workload(drawn, 1))
    for index, size_class in enumerate(drawn.size_classes):
        for number in range(1, size_class.initial_files + 1):
            state.add_initial(index, number, 4096)
    return state


def seconds(count: int, operations: int) -> float:
    state = prepared(10_000)
    gc.collect()
    next_jobs, finished = state.next_jobs, state.finished
    started = time.perf_counter()
    for _ in range(operations // count):
        for operation, size_class, container, number, _size in next_jobs(count):
            finished(operation, size_class, container, number, True)
    return time.perf_counter() - started


def main() -> None:
    operations = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    counts = (1, 8, 64, 512)
    rounds = {count: [] for count in counts}
    for _ in range(ROUNDS):  # all batch sizes in each round, so that noise hits them alike
        for count in counts:
            rounds[count].append(seconds(count, operations) / operations * 1e6)
    for count, figures in rounds.items():
        print(
            f"batch {count:4d}: {statistics.median(figures):.3f} us an operation"
            f" ({min(figures):.3f} - {max(figures):.3f})"
        )
    tracemalloc.start()
    state = prepared(INVENTORY // 3)
    for _ in range(INVENTORY // 1000):  # turn the line round, when it takes most
        for operation, size_class, container, number, _size in state.next_jobs(1000):
            state.finished(operation, size_class, container, number, True)
    _, peak = tracemalloc.get_traced_memory()
    objects = INVENTORY + sum(1 for _ in state.leftovers())
    print(f"inventory: {peak / objects:.1f} bytes an object at the peak, {objects} objects")


if __name__ == "__main__":
    main()
