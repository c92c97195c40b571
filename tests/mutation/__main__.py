"""Change the program in small ways and see whether its unit tests notice: ``tox -e mutation``.

The tests run once, to see which of them reach which line. Then for each mutant of a sample those run that
reach it, until one fails. What no test notices is printed. Some of that is no fault of the tests, because
the change has no effect, so the threshold is below 100 %.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from mutants import Mutant, compiles, places
from pytest_runs import Noticed, file_of, noticed
from reach import Reach, measure
from separate import Call, Died, results

ROOT = Path(__file__).parents[2]

#: What is changed; each part has the same share of a sample.
PARTS = {
    "dispatch": tuple(
        f"ssbench/fleet/{name}.py"
        for name in ("allocation", "dispatcher", "prefetch", "roster", "worker_state")
    ),
    "statistics": ("ssbench/statistics/*.py",),
    "attribution": tuple(
        f"ssbench/cluster/{name}.py"
        for name in (
            "attribution_*",
            "changes",
            "finding*",
            "join*",
            "log_*",
            "node_addresses",
            "operation_times",
            "own_times",
            "possible_causes",
            "rank_tests",
            "request_spans",
            "server_times",
            "suspect_search",
        )
    ),
}

#: What may change a result besides the tests themselves.
PROGRAM = (
    "ssbench/**/*.py",
    "scenarios/*.yaml",
    "tests/conftest.py",
    "tests/helpers/**/*.py",
    "tests/mutation/marks.py",
)

#: A mutant has so many seconds to import what its tests need, and then so many times as long as they take.
BEGIN, SLOWER = 120.0, 20.0


class Ended(NamedTuple):
    """How the tests of a mutant ended."""

    part: str
    mutant: Mutant
    tests: int
    by: str | None
    late: bool


def main() -> int:
    """Run a sample; return 0 if enough of it was noticed."""
    options = arguments()
    os.chdir(ROOT)
    began = monotonic()
    sources = {part: read(patterns) for part, patterns in PARTS.items()}
    drawn = [each for part in options.parts for each in sample(part, sources[part], options)]
    print(f"{len(drawn)} mutants, --seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="ssbench-mutation-") as temporary:
        kept = Kept((options.keep or Path(temporary)).resolve())
        everything = {path: source for part in sources.values() for path, source in part.items()}
        tests = measure(ROOT, everything, kept.reach(), kept.folder, options.processes)
        print(f"{len(tests)} tests, {monotonic() - began:.0f} seconds", flush=True)
        ended = []
        for each in run(drawn, Reach(everything, tests), kept, options.processes):
            ended.append(each)
            if each.by is None:
                print(survivor(each), flush=True)
    print(f"{monotonic() - began:.0f} seconds")
    return 0 if killed(ended, options.parts) >= options.threshold else 1


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__.splitlines()[0].split(":")[0])
    parser.add_argument("parts", nargs="*", help=f"what to change: {', '.join(PARTS)}; default: all")
    parser.add_argument("--mutants", type=int, default=200, help="how many to try (default 200)")
    parser.add_argument("--seed", type=int, default=1, help="another seed draws other mutants (default 1)")
    parser.add_argument("--threshold", type=float, default=85, help="percent to be killed (default 85)")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="how many run at once")
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FOLDER",
        help="keep results there, and go on from there where it was interrupted, or where tests were added",
    )
    options = parser.parse_args()
    if unknown := set(options.parts) - PARTS.keys():
        parser.error(f"no part {min(unknown)!r}; there are {', '.join(PARTS)}")
    if options.mutants < 1 or options.processes < 1:
        parser.error("--mutants and --processes have to be 1 or more")
    options.parts = options.parts or [*PARTS]
    return options


def read(patterns: Sequence[str]) -> dict[str, bytes]:
    """Return the sources of a part by their paths."""
    found = {}
    for pattern in patterns:
        paths = sorted(ROOT.glob(pattern))
        if not paths:
            raise SystemExit(f"mutation: there is no {pattern}; PARTS in {__file__} names it")
        found.update({str(path.relative_to(ROOT)): path.read_bytes() for path in paths})
    return found


def sample(
    part: str, sources: Mapping[str, bytes], options: argparse.Namespace
) -> Iterator[tuple[str, Mutant]]:
    """Yield the mutants of a part, no two of one place.

    A place has its rank by its own line, so that a change of the program leaves all others in the sample.
    """
    number = options.parts.index(part)
    count = len(options.parts)
    share = options.mutants * (number + 1) // count - options.mutants * number // count
    seen: Counter[str] = Counter()
    ranked = []
    for path, source in sources.items():
        for place in places(source, path):
            name = f"{options.seed} {path} {place[0].shown(source)}"
            seen[name] += 1
            rank = hashlib.sha256(f"{name} {seen[name]}".encode()).digest()
            ranked.append((rank, place[rank[-1] % len(place)]))
    for _, mutant in sorted(ranked):
        if share and compiles(mutant.apply(sources[mutant.path])):
            share -= 1
            yield part, mutant


def run(drawn: Sequence[tuple[str, Mutant]], reach: Reach, kept: Kept, processes: int) -> Iterator[Ended]:
    """Run the tests of each mutant, those of which there is no result yet, and yield how they ended."""
    calls = []
    for part, mutant in drawn:
        tests = reach.tests(mutant)
        key = kept.key(mutant, tests)
        known = kept.noticed(key) if tests else Noticed(None)
        if known:
            yield Ended(part, mutant, len(tests), *known)
        else:
            seconds = reach.seconds(tests)
            most = BEGIN + SLOWER * sum(seconds.values())
            calls.append(Call((part, mutant, len(tests), key), (mutant, seconds), most))
    for (part, mutant, count, key), result in results(noticed, calls, processes):
        found = Noticed("its end", late=True) if isinstance(result, Died) else result
        kept.add(key, found)
        yield Ended(part, mutant, count, *found)


class Kept:
    """A folder of results: which tests reach which line, and which mutants they noticed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "reach").mkdir(parents=True, exist_ok=True)
        program = hashlib.sha256(sys.version.encode())
        for path in sorted({path for pattern in PROGRAM for path in ROOT.glob(pattern)}):
            program.update(hashlib.sha256(path.read_bytes()).digest())
        self._tests = {
            str(path.relative_to(ROOT)): _digest(program.hexdigest(), str(path), path.read_text())
            for path in sorted(ROOT.glob("tests/unit/**/test_*.py"))
        }
        self._path = folder / "noticed.jsonl"
        lines = self._path.read_text().splitlines() if self._path.exists() else ()
        self._noticed = {key: Noticed(*found) for key, *found in map(json.loads, lines)}

    def reach(self) -> dict[str, Path]:
        """Return for each file of tests the file that has what they reach, or will have it."""
        return {name: self.folder / "reach" / f"{digest}.json" for name, digest in self._tests.items()}

    def key(self, mutant: Mutant, tests: Sequence[str]) -> str:
        """Return what a result depends on."""
        files = sorted({self._tests[file_of(name)] for name in tests})
        return _digest(*mutant, *tests, *files)

    def noticed(self, key: str) -> Noticed | None:
        """Return a result of before."""
        return self._noticed.get(key)

    def add(self, key: str, noticed: Noticed) -> None:
        """Keep a result."""
        with self._path.open("a") as file:
            file.write(json.dumps([key, *noticed]) + "\n")


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def survivor(ended: Ended) -> str:
    """Return what to print of a mutant that no test noticed."""
    mutant = ended.mutant
    before, after = mutant.shown((ROOT / mutant.path).read_bytes())
    tests = f"{ended.tests} tests" if ended.tests else "no test reaches it"
    return f"{mutant.path}:{mutant.line}: {before}  ->  {after}  ({tests})"


def killed(ended: Sequence[Ended], parts: Sequence[str]) -> float:
    """Print how many of each part were killed; return the percentage of all."""
    for part in parts:
        _print_share(part, [each for each in ended if each.part == part])
    return _print_share("all", ended)


def _print_share(name: str, ended: Sequence[Ended]) -> float:
    count = sum(each.by is not None for each in ended)
    percent = 100 * count / max(len(ended), 1)
    late = sum(each.late for each in ended)
    print(f"{name}: {count} of {len(ended)} killed, {percent:.0f} %; {late} of them by a time limit")
    return percent


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # so that what runs is ended too
        signal.signal(number, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("mutation: interrupted")
