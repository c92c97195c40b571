"""What drawing operations and keeping track of objects costs the master, in microseconds each.

    python bench/workload.py [OPERATIONS]

For each batch size: draw a batch with next_jobs(), then tell finished() for each of it, as the
master does. Medians of the rounds, with the range; then the bytes an object of the inventory takes.

    python bench/workload.py --popularity [OBJECTS]

For each way of choosing objects, the same with so many objects (default: 10 million) of one size class, in
batches of 64, with creates, updates and deletes: microseconds each, and bytes an object.
"""

import argparse
import gc
import statistics
import time
import tracemalloc

from ssbench.scenario.chosen_objects import make_population
from ssbench.scenario.draws import Workload
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.population import Population
from ssbench.scenario.sizes import Lognormal
from ssbench.scenario.structured_values import Popularity, Reuse

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


#: Ways of choosing objects, each with the distribution of sizes that it is measured with.
CHOICES = {
    "rotate": (None, None, None),
    "rotate, lognormal sizes": (None, None, Lognormal(20_000, 1.2, 1000, 10**6)),
    "uniform": (Popularity("uniform"), None, None),
    "sequential": (Popularity("sequential"), None, None),
    "zipf 0.99": (Popularity("zipf", 0.99), None, None),
    "latest 0.99": (Popularity("latest", 0.99), None, None),
    "hotspot": (Popularity("hotspot", objects=0.2, requests=0.8), None, None),
    "zipf 0.99, reuse": (Popularity("zipf", 0.99), Reuse(0.5, 1, 1000), None),
}


def chosen(name: str, objects: int, operations: int = 100_000) -> tuple[list[float], float]:
    """Return microseconds of CPU time an operation of each round, and the bytes an object at the peak."""
    popularity, reuse, shape = CHOICES[name]
    weights = {"create": 20.0, "read": 55.0, "update": 15.0, "delete": 10.0}
    sizes = SizeClass("one", 1000, 10**6, objects, weights, shape)
    drawn = Scenario("bench", (sizes,), 64, 1, popularity=popularity, reuse=reuse)
    tracemalloc.start()
    state = make_population(drawn, Workload(drawn, 1))
    for number in range(1, objects + 1):
        state.add_initial(0, number, 4096)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    gc.collect()
    figures = []
    for _ in range(ROUNDS):
        started = time.thread_time()
        for _ in range(operations // 64):
            for operation, size_class, container, number, _size in state.next_jobs(64):
                state.finished(operation, size_class, container, number, True)
        figures.append((time.thread_time() - started) / operations * 1e6)
    return figures, peak / objects


def by_popularity(objects: int) -> None:
    for name in CHOICES:
        figures, size = chosen(name, objects)
        print(
            f"{name:24s} {statistics.median(figures):.3f} us an operation"
            f" ({min(figures):.3f} - {max(figures):.3f}), {size:.1f} bytes an object"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("operations", type=int, nargs="?", default=500_000)
    parser.add_argument("--popularity", type=int, nargs="?", const=10_000_000, metavar="OBJECTS")
    options = parser.parse_args()
    if options.popularity is not None:
        by_popularity(options.popularity)
        return
    operations = options.operations
    counts = (1, 8, 64, 512)
    rounds: dict[int, list[float]] = {count: [] for count in counts}
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
