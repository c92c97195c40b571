"""The real program under faults at random: nothing may be lost, counted twice, or leak.

    python bench/soak.py --seconds N [--seed S] [--workers W] [--noop] [--json FILE]

Workers are killed, started anew, stopped and continued, and the proxy of an embedded Swift
(``pip install '.[swift]'``) is stopped and restarted while a master runs a benchmark. A first
master is killed in the middle; the same workers serve the second one, which has to end by itself. Work
ports are blocked and links dropped on the way. Then a run loses the reader of its output, and the last
one its Swift, for good.
``--planted`` is another kind: one run on a store in this process, which logs each request with an id of its
own and does wrong itself now and then. The log is compared with the export of the run: nothing may be
recorded and not done, done and not recorded, done twice, after a delete, beside a write of the same object,
or at another time, unless a fault explains it.
``--noop`` does without Swift: some hundred times the operations, so more of the master's book-keeping
and less of the rest. Same seed, same faults, at about the same moments.

Prints one table and a verdict; exit code 1 when anything is wrong. Worker 0 is stopped now and then
but never killed, so that what it holds can be compared over the whole time.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http import HTTPStatus
from pathlib import Path

import numpy as np
import swiftclient
from soak_faults import CONCURRENCY, INITIAL, NETWORK_TIMEOUT, Faults, Fleet
from watched import Watched

from ssbench.local_swift import LocalSwift
from ssbench.results.block import LOST_CAUSE, UNFINISHED_CAUSE
from ssbench.results.reading import open_results
from ssbench.scenario.names import MARK_PREFIX
from ssbench.scenario.operations import CREATE
from ssbench.statistics.summary import summarize
from ssbench.store import contract

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from history import PlantedSwift, check, rows_of

#: What a fault may end an operation with. HTTP 404: an object is read while it is deleted, or deleted
#: again because the first answer was cut off.
KNOWN = frozenset(
    {
        None,
        LOST_CAUSE,
        UNFINISHED_CAUSE,
        contract.RESET,
        contract.CLOSED,
        contract.SHORT_BODY,
        contract.CONNECT_REFUSED,
    }
    | {contract.CONNECT_TIMEOUT, contract.READ_TIMEOUT, "HTTP 401", "HTTP 404", "HTTP 503"}
)

#: Seconds that the master may take besides its time: workers, containers, uploads, last operations,
#: clean-up; all of it under faults.
ALLOWANCE = 120.0


class Verdict:
    """Figures, and what is wrong."""

    def __init__(self) -> None:
        self.figures: dict[str, object] = {}
        self.wrong: list[str] = []
        #: Readings through the run: (seconds, bytes, descriptors, connections), by process.
        self.series: dict[str, list[tuple[float, int, int, int]]] = {}

    def expect(self, right: bool, otherwise: str) -> None:
        if not right:
            self.wrong.append(otherwise)

    def show(self) -> None:
        width = max(map(len, self.figures))
        for name, value in self.figures.items():
            print(f"{name:{width}}  {value}")
        for text in self.wrong:
            print(f"WRONG: {text}")
        print(f"Verdict: {len(self.wrong)} things are wrong" if self.wrong else "Verdict: all is well")


def rage(faults: Faults, master: Watched, fleet: Fleet, until: float, measured: float = math.inf) -> None:
    """Let things go wrong until the master ends, or that time.

    Or for so many seconds of its benchmark, and until each kind of fault has had its turn.
    """
    look_at, enough = 0.0, math.inf
    measures = ends = False
    while master.runs and (now := time.monotonic()) < until and not (now >= enough and faults.all_dealt):
        # Before the benchmark, a Swift that is away ends the run, rightly.
        if not measures and "Starting the benchmark" in master.said:
            measures = True
            enough = now + measured
        faults.step(now, server=measures)
        # Of the master while it measures only: the clean-up and reports bring modules of their own.
        ends = ends or "Results saved" in master.said
        if now >= look_at:
            look_at = now + 1.0
            for program in (*([master] if measures and not ends else []), *fleet.workers.values()):
                program.look(fleet.port)
        time.sleep(0.05)
    faults.heal()


def check_results(verdict: Verdict, stats: Path, what: str) -> Counter[str | None]:
    """Each operation is there once, and ended in a known way; returns the causes."""
    results = open_results(stats)
    found: Counter[str | None] = Counter()
    workers: Counter[int] = Counter()
    created: list[np.ndarray] = []
    trans_ids: list[str | None] = []
    for block in results.blocks():
        found[None] += len(block) - int(block.failed.sum())
        found.update(failure.cause for failure in block.failures.values() if failure.cause is not None)
        workers.update(block.worker[~block.failed].tolist())
        rows = block.operation == CREATE.code
        created.append(block.size_class[rows].astype(np.int64) << 40 | np.asarray(block.object)[rows])
        trans_ids += [text for text, failed in zip(block.trans_id, block.failed, strict=True) if not failed]
    names = np.concatenate(created) if created else np.empty(0)
    verdict.expect(len(np.unique(names)) == len(names), f"{what}: creates of one object appear twice")
    answered = [trans_id for trans_id in trans_ids if trans_id is not None]
    verdict.expect(len(set(answered)) == len(answered), f"{what}: transaction ids appear twice")
    verdict.expect(found.keys() <= KNOWN, f"{what}: unknown causes {set(found) - KNOWN}")
    summary = results.summary
    if summary is not None:
        not_sendable = sum(times for *_, times in summary.not_sendable)
        drawn = summary.counters["drawn"]
        count = found.total()
        # Those that waited for a write of their object when the run ended.
        not_begun = summary.counters["not_begun"]
        text = f"{what}: {count} results + {not_sendable} not sendable + {not_begun:.0f} not begun"
        verdict.expect(count + not_sendable + not_begun == drawn, f"{text} are not {drawn:.0f} operations")
        text = f"{what}: {found[LOST_CAUSE]} results lost, {summary.lost_jobs} lost jobs in the summary"
        verdict.expect(found[LOST_CAUSE] == summary.lost_jobs, text)
        known = {worker.worker_id for worker in summary.workers}
        verdict.expect(workers.keys() <= known, f"{what}: results of workers {set(workers) - known}")
        total = summarize(open_results(stats)).sections[0]
        counted = (total.count, total.failed - total.lost, total.lost)
        expected = (found[None], count - found[None] - found[LOST_CAUSE], found[LOST_CAUSE])
        text = f"{what}: the report counts {counted} successes, errors and lost ones, not {expected}"
        verdict.expect(counted == expected, text)
        verdict.figures["late results dropped"] = int(summary.counters["late_results"])
        verdict.figures["not sendable"] = not_sendable
    return found


def _exists(account: swiftclient.Connection, container: str, name: str) -> bool:
    try:
        account.head_object(container, name)
    except swiftclient.ClientException as error:
        if error.http_status != HTTPStatus.NOT_FOUND:
            raise
        return False
    return True


def names_left(swift: LocalSwift, base: str) -> Iterator[str]:
    """The objects of the containers of a run, less its initial ones.

    A listing may still have what is deleted: a busy container server takes deletions in later.
    """
    account = swiftclient.Connection(swift.auth_url, swift.user, swift.key, retries=2)
    initial = {f"{size}_{number:06d}" for size, count in INITIAL.items() for number in range(1, count + 1)}
    try:
        for container in account.get_account(prefix=base, full_listing=True)[1]:
            for each in account.get_container(container["name"], full_listing=True)[1]:
                if each["name"] not in initial and _exists(account, container["name"], each["name"]):
                    yield f"{container['name']}/{each['name']}"
    finally:
        account.close()


def check_growth(verdict: Verdict, program: Watched, name: str, descriptors: int, allowed: float) -> None:
    """Memory and descriptors late in the run are those of its beginning; ``allowed`` is in bytes."""
    begin = program.looks[0].when
    verdict.series[name] = [
        (round(look.when - begin, 1), look.resident, look.descriptors, look.connections)
        for look in program.looks[:: max(1, len(program.looks) // 100)]
    ]
    early, late = program.early_and_late("descriptors")
    verdict.figures[f"{name}: descriptors"] = f"{early:.0f} -> {late:.0f}"
    verdict.expect(late <= early + descriptors, f"{name}: descriptors grew from {early:.0f} to {late:.0f}")
    early, late = program.early_and_late("resident")
    text = f"{early / 1e6:.1f} -> {late / 1e6:.1f} MB"
    verdict.figures[f"{name}: memory"] = text
    verdict.expect(late <= 1.25 * early + 8e6 + allowed, f"{name}: memory grew: {text}")


def check_idle(verdict: Verdict, fleet: Fleet, idle_before: int) -> None:
    """Without a run, workers hold no connection, and worker 0 no descriptor more than at first."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        looks = {worker_id: worker.look(fleet.port) for worker_id, worker in fleet.workers.items()}
        idle = all(look is not None and look.connections == 0 for look in looks.values())
        if idle and (first := looks[0]) and first.descriptors <= idle_before + 2:
            break
        time.sleep(0.2)
    for worker_id, look in looks.items():
        verdict.expect(look is not None, f"worker {worker_id} has ended by itself")
        if look is not None:
            verdict.expect(not look.connections, f"idle worker {worker_id}: {look.connections} connections")
    if (look := looks[0]) is not None:
        verdict.figures["worker 0 idle: descriptors"] = f"{idle_before} -> {look.descriptors}"
        # One that tries to connect has one or two more at times.
        verdict.expect(look.descriptors <= idle_before + 2, f"idle worker 0: {look.descriptors} descriptors")


def check_account(verdict: Verdict, fleet: Fleet, swift: LocalSwift, said: str) -> None:
    """What the second run created is gone, but for what it says; cleanup-containers removes the rest."""
    found = sorted(names_left(swift, "second"))
    marks = [name for name in found if MARK_PREFIX in name]
    left = [name for name in found if name not in marks]
    told = re.search(r"(\d+) of the \d+ objects that the run created are still there", said)
    verdict.figures["objects left by the run"] = f"{len(left)}, {told[1] if told else 0} of them known to it"
    text = f"{len(left)} objects are left that the run does not tell of: {left[:5]}"
    verdict.expect(len(left) <= (int(told[1]) if told else 0), text)
    stays = "The mark of this run stays" in said
    verdict.expect(stays or not marks, f"marks are left that the run does not tell of: {marks}")
    for base in ("first", "second"):
        code = fleet.master("cleanup-containers", "--yes", "-b", base).process.returncode
        verdict.expect(code == 0, f"cleanup-containers -b {base} ended with {code}")
        verdict.expect(not list(names_left(swift, base)), f"{base}: objects survive cleanup-containers")


def check_broken_pipe(verdict: Verdict, fleet: Fleet, seed: int) -> None:
    """A run whose reader leaves in the middle does all its operations and ends as it should."""
    process, stats = fleet.start_into_pipe("pipe", seed, "--noop", "-o", 20_000)
    assert process.stdout is not None
    process.stdout.read(200)
    process.stdout.close()
    try:
        code = process.wait(60)
    except subprocess.TimeoutExpired:
        verdict.expect(False, "the run whose reader left did not end")
        return
    verdict.expect(code == 0, f"the run whose reader left ended with {code}")
    found = check_results(verdict, stats, "run whose reader left")
    verdict.figures["results after the reader left"] = found[None]


def check_dead_swift(verdict: Verdict, fleet: Fleet, swift: LocalSwift, seed: int) -> None:
    """A run whose Swift goes for good gives up, with its report and exit code 3."""
    master, stats = fleet.start_run("dead", seed, "-r", 600, "--give-up-after", 5, "--retries", 2)
    master.wait_for("Starting the benchmark", ALLOWANCE)
    time.sleep(1.0)  # some operations
    swift.proxy.kill()
    began = time.monotonic()
    try:
        code = master.process.wait(ALLOWANCE)
    except subprocess.TimeoutExpired:
        verdict.expect(False, f"the run without Swift did not give up within {ALLOWANCE:.0f} s")
        return
    verdict.figures["gave up without Swift after"] = f"{time.monotonic() - began:.1f} s"
    verdict.expect(code == 3, f"the run without Swift ended with {code}: {master.said[-500:]}")
    verdict.expect("ENDED EARLY" in master.printed, "the run without Swift printed no report")
    check_results(verdict, stats, "run without Swift")


def check_end(verdict: Verdict, fleet: Fleet) -> None:
    """All workers end when told to, and no program printed a traceback."""
    # It tells those that connect while it listens: on a machine with much load one may come later.
    for _ in range(3):
        fleet.master("kill-workers")
        deadline = time.monotonic() + 15.0
        for worker in fleet.workers.values():
            with suppress(subprocess.TimeoutExpired):  # one that has said that it ends still has to
                worker.process.wait(max(deadline - time.monotonic(), 0.0))
        if all(worker.process.poll() is not None for worker in fleet.workers.values()):
            break
    for worker in fleet.workers.values():
        verdict.expect(
            worker.process.poll() == 0, f"{worker.name}: kill-workers left {worker.process.poll()}"
        )
    for program in fleet.everybody:
        said = program.said + program.printed
        verdict.expect("Traceback" not in said, f"{program.name} printed a traceback:\n{said[-2000:]}")


def check_history(verdict: Verdict, stats: Path, planted: PlantedSwift) -> None:
    """What the store did is what the run says of it."""
    results = open_results(stats)
    for _ in results.blocks():  # what is known at the end of a run is behind them
        pass
    counters = results.summary.counters if results.summary is not None else {}
    again = int(sum(counters.get(name, 0) for name in ("passed_on", "handed_back", "in_doubt")))
    taken_back = int(counters.get("taken_back", 0))
    store = planted.store
    found = check(list(store.log), rows_of(stats), store.epoch, twice=again, taken_back=taken_back)
    verdict.figures["requests in the log of the store"] = len(store.log)
    verdict.figures |= {f"  {name}": count for name, count in found.counts.items()}
    verdict.wrong += found.wrong[:20]
    verdict.expect(len(found.wrong) <= 20, f"{len(found.wrong)} things are wrong in the history of the run")


def soak_history(options: argparse.Namespace, folder: Path, stack: ExitStack) -> Verdict:
    """One run on a store that logs everything, under all faults of workers and links."""
    verdict = Verdict()
    planted = stack.enter_context(PlantedSwift(options.seed, 0.01, NETWORK_TIMEOUT + 1.0))
    fleet = Fleet(folder, options.workers, None, stack, planted)
    for worker in fleet.workers.values():
        worker.wait_for("waiting for a master", 60)
    faults = Faults(random.Random(options.seed), fleet)
    began = time.monotonic()
    master, stats = fleet.start_run("history", options.seed, "-r", options.seconds)
    master.wait_for("Starting the benchmark", ALLOWANCE)
    rage(faults, master, fleet, began + options.seconds + ALLOWANCE, measured=options.seconds)
    try:
        code: int | None = master.process.wait(ALLOWANCE)
    except subprocess.TimeoutExpired:
        code = None
    verdict.expect(code in (0, 1), f"the master ended with {code}: {master.said[-500:]}")
    verdict.figures |= {"seconds": round(time.monotonic() - began, 1), "seed": options.seed, **faults.counts}
    if code in (0, 1):
        found = check_results(verdict, stats, "run")
        verdict.figures |= {f"  {cause or 'success'}": count for cause, count in found.most_common()}
        check_history(verdict, stats, planted)
    check_end(verdict, fleet)
    return verdict


def soak(options: argparse.Namespace, folder: Path, stack: ExitStack) -> Verdict:
    verdict = Verdict()
    swift = None if options.noop else stack.enter_context(LocalSwift())
    fleet = Fleet(folder, options.workers, swift, stack)
    for worker in fleet.workers.values():
        worker.wait_for("waiting for a master", 60)
    time.sleep(1.0)  # until it has tried to connect
    before = fleet.workers[0].look(fleet.port)
    assert before is not None
    faults = Faults(random.Random(options.seed), fleet)
    began = time.monotonic()

    first, first_stats = fleet.start_run("first", options.seed, "-r", options.seconds + ALLOWANCE)
    rage(faults, first, fleet, began + options.seconds + ALLOWANCE, measured=options.seconds * 0.2)
    first.wait_for("Starting the benchmark", 0)
    verdict.expect(first.runs, f"the first master ended by itself: {first.said[-500:]}")
    first.end()
    for worker in fleet.workers.values():
        worker.looks.clear()
    left = max(0.4 * options.seconds, began + options.seconds - time.monotonic())
    second, second_stats = fleet.start_run("second", options.seed + 1, "-r", left)
    due = time.monotonic() + left
    rage(faults, second, fleet, due + ALLOWANCE)
    ended = time.monotonic()
    verdict.expect(not second.runs, f"the master did not end within {ALLOWANCE:.0f} s of its time")
    code = second.process.poll()
    verdict.expect(code in (0, 1), f"the master ended with {code}: {second.said[-500:]}")
    verdict.figures |= {"seconds": round(ended - began, 1), "seed": options.seed, **faults.counts}
    if code in (0, 1):
        killed = check_results(verdict, first_stats, "first run")
        verdict.figures["results of the killed run"] = killed.total()
        found = check_results(verdict, second_stats, "second run")
        verdict.figures["results"] = found.total()
        verdict.figures |= {f"  {cause or 'success'}": count for cause, count in found.most_common()}
        verdict.figures["end after its time"] = f"{ended - due:.1f} s"
        # Four bytes are kept of each object that was ever created.
        check_growth(verdict, second, "master", 2 * options.workers + 4, 2.0 * found.total())
        # Idle at first; later a connection for each slot, perhaps one that it replaces, and two timers. What
        # is left when it is idle again is checked below.
        check_growth(verdict, fleet.workers[0], "worker 0", 2 * CONCURRENCY + 2, 0)
        check_idle(verdict, fleet, before.descriptors)
        if swift is not None:
            check_account(verdict, fleet, swift, second.said)
        check_broken_pipe(verdict, fleet, options.seed + 2)
        if swift is not None:
            check_dead_swift(verdict, fleet, swift, options.seed + 3)
    check_end(verdict, fleet)
    return verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (%(default)g)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the faults (random)")
    parser.add_argument("--workers", type=int, default=3, help="at least two (%(default)s)")
    parser.add_argument("--noop", action="store_true", help="without Swift")
    parser.add_argument("--planted", action="store_true", help="on a store that logs, see above")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave logs and stat files there")
    options = parser.parse_args()
    if options.workers < 2 or options.seconds < 5:
        parser.error("two workers and five seconds are the least")
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        verdict = (soak_history if options.planted else soak)(options, folder, stack)
    verdict.show()
    if options.json:
        options.json.write_text(json.dumps(vars(verdict), indent=1) + "\n")
    sys.exit(1 if verdict.wrong else 0)


if __name__ == "__main__":
    main()
