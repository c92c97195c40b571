"""What an operation costs master and workers where few are due: CPU an operation at given rates.

    python bench/low_rates.py [--rounds N] [--seconds S] [--against FOLDER] [--only WORD ...]

Reads of small objects on two local workers with the defaults. "500/s" and the like are open loops of 64 users
against nginx (from the system's packages: ``sudo apt-get install nginx-extras``), "5 ms" are 8 users of a
store that takes 5 ms, "closed" are 16 users of nginx, as fast as they can. ``--against`` names another
checkout, whose program is run by turns with this one; "ratio" is this one by the other.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import spread as spreads
from in_flight import serve_after
from program import run
from saving import save
from served import reads, served
from yardsticks import Nginx, require

HERE = Path(__file__).parents[1]

spread = partial(spreads.spread, middle="7.4g")


OBJECTS = 500


class Case(NamedTuple):
    """``rate`` is that of an open loop, ``service`` the milliseconds that the store takes; 0: nginx."""

    name: str
    users: int
    rate: int = 0
    service: float = 0.0


CASES = [
    Case("500/s", 64, 500),
    Case("1500/s", 64, 1500),
    Case("10000/s", 64, 10_000),
    Case("5 ms", 8, service=5.0),
    Case("closed", 16),
]


@contextmanager
def store(case: Case) -> Iterator[str]:
    if case.service:
        with served(serve_after, case.service / 1000) as url:
            yield url
    else:
        with Nginx() as nginx:
            yield nginx.url()


def costs(program: Path, case: Case, url: str, seconds: float) -> dict[str, float]:
    """Run a case with the program of a checkout; return microseconds an operation, and the rate."""
    os.environ["PYTHONPATH"] = str(program)
    arguments = [f"--storage-url={url}/v1/a", "--token=AUTH_tk0123456789abcdef", "--workers=2"]
    arguments += [f"--rate={case.rate}"] if case.rate else []
    ran = run(arguments, reads("Low rates", seconds, case.users, OBJECTS))
    master, worker = ran.master_cpu * 1e6, ran.worker_cpu * 1e6
    return {"master": master, "worker": worker, "both": master + worker, "rate": ran.rate}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", nargs="*", default=[""], metavar="WORD")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "low_rates.json")
    options = parser.parse_args()
    require("nginx")
    programs = [HERE] + ([options.against] if options.against else [])
    results = {}
    for case in CASES:
        if not any(case.name.startswith(word) for word in options.only):
            continue
        found: dict[Path, list[dict[str, float]]] = {program: [] for program in programs}
        with store(case) as url:
            for _ in range(options.rounds):
                for program, measured in found.items():
                    measured.append(costs(program, case, url, options.seconds))
        results[case.name] = {str(program): measured for program, measured in found.items()}
        for what in ("master", "worker", "both", "rate"):
            figures = [[one[what] for one in measured] for measured in found.values()]
            line = f"{case.name:8} {what:7} {spread(figures[0]):24}"
            if options.against:
                ratios = [ours / other for ours, other in zip(*figures, strict=True)]
                line += f" other {spread(figures[1]):24} ratio {spread(ratios)}"
            print(line, flush=True)
    save(options.json, results=results)


if __name__ == "__main__":
    main()
