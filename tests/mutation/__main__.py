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
import random
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from mutants import Mutant, compiles, places
from reach import Reach, environment_of_tests, measure

ROOT = Path(__file__).parents[2]

#: What is changed; each part has the same share of a sample.
PARTS = {
    "dispatch": tuple(
        f"ssbench/fleet/{name}.py"
        for name in (
            "account",
            "ahead",
            "allocation",
            "dispatch",
            "history",
            "ledger",
            "roster",
            "worker_state",
        )
    ),
    "statistics": ("ssbench/statistics/*.py",),
    "attribution": ("ssbench/attribution/*.py",),
}

#: A mutant has so many seconds of CPU time to begin, and then so many times as long as its tests take without
#: it. A busy machine takes none of that; waits of tests have time-outs of their own.
BEGIN, SLOWER = 30.0, 5.0

#: In any case it ends after so many times as many seconds.
BUSY = 20.0


class Ended(NamedTuple):
    """How the tests of a mutant ended."""

    part: str
    mutant: Mutant
    tests: int
    killed: bool
    in_time: bool = True


def main() -> int:
    """Run a sample; return 0 if enough of it was noticed."""
    options = arguments()
    began = monotonic()
    with tempfile.TemporaryDirectory(prefix="ssbench-mutation-") as temporary:
        patterns = [pattern for part in PARTS.values() for pattern in part]
        # Lines of other sources are other lines.
        folder = (options.reach or Path(temporary)).resolve() / digest(patterns)
        if not (folder / "seconds.json").exists():
            folder.mkdir(parents=True, exist_ok=True)
            if not measure(ROOT, patterns, folder, options.processes):
                print("mutation: the tests fail without a mutant", file=sys.stderr)
                return 2
        reach = Reach(ROOT, folder)
        drawn = [*sample(options.parts, options.mutants, options.seed)]
        print(f"{len(drawn)} mutants, --seed {options.seed}", flush=True)
        with ThreadPoolExecutor(options.processes) as pool:
            if not all(pool.map(lambda part: unharmed(part, drawn, reach), options.parts)):
                print("mutation: tests of a mutant fail without it", file=sys.stderr)
                return 2
            ended = []
            for each in pool.map(lambda item: run(*item, reach), drawn):
                ended.append(each)
                if not each.killed:
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
        "--reach",
        type=Path,
        metavar="FOLDER",
        help="keep there which tests reach which line, for as long as the sources stay the same; tests that"
        " were added since are left out until the folder is deleted",
    )
    options = parser.parse_args()
    if unknown := set(options.parts) - PARTS.keys():
        parser.error(f"no part {min(unknown)!r}; there are {', '.join(PARTS)}")
    if options.mutants < 1 or options.processes < 1:
        parser.error("--mutants and --processes have to be 1 or more")
    options.parts = options.parts or [*PARTS]
    return options


def digest(patterns: Sequence[str]) -> str:
    """Return what tells these sources from others."""
    sources = (path.read_bytes() for pattern in patterns for path in sorted(ROOT.glob(pattern)))
    return hashlib.sha256(b"\0".join(sources)).hexdigest()[:12]


def sample(parts: Sequence[str], size: int, seed: int) -> Iterator[tuple[str, Mutant]]:
    """Yield mutants, no two of one place, each with its part."""
    for number, part in enumerate(parts):
        draw = random.Random(f"{seed} {part}")  # so that a part by itself has the same mutants
        share = size * (number + 1) // len(parts) - size * number // len(parts)
        sources = {
            str(path.relative_to(ROOT)): path.read_bytes()
            for pattern in PARTS[part]
            for path in sorted(ROOT.glob(pattern))
        }
        there = [place for path, source in sources.items() for place in places(source, path)]
        draw.shuffle(there)
        for place in there:
            mutant = draw.choice(place)
            if share and compiles(mutant.apply(sources[mutant.path])):
                share -= 1
                yield part, mutant


def unharmed(part: str, drawn: Sequence[tuple[str, Mutant]], reach: Reach) -> bool:
    """Return whether the tests of the first mutant of a part pass with a change that is none."""
    first = next((mutant for its, mutant in drawn if its == part and reach.tests(mutant)), None)
    return first is None or not run(part, first._replace(end=first.start, text=""), reach).killed


def run(part: str, mutant: Mutant, reach: Reach) -> Ended:
    """Run the tests that reach a mutant until one fails."""
    tests = reach.tests(mutant)
    if not tests:
        return Ended(part, mutant, 0, killed=False)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "mutated", *tests]
    change = json.dumps([mutant.path, mutant.start, mutant.end, mutant.text])
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment_of_tests() | {"MUTANT": change},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    most = BEGIN + SLOWER * reach.seconds(tests)
    try:
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (round(most), round(most) + 1))
        code = process.wait(BUSY * most)
        return Ended(part, mutant, len(tests), code != 0, code not in {-signal.SIGXCPU, -signal.SIGKILL})
    except subprocess.TimeoutExpired:
        return Ended(part, mutant, len(tests), killed=True, in_time=False)
    finally:
        if process.poll() is None:  # its children too
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


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
    count = sum(each.killed for each in ended)
    percent = 100 * count / max(len(ended), 1)
    late = sum(not each.in_time for each in ended)
    print(f"{name}: {count} of {len(ended)} killed, {percent:.0f} %; {late} of them by the time limit")
    return percent


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("mutation: interrupted")
