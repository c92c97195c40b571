"""What an operation costs, by turns with another checkout of ssbench.

    python bench/against.py FOLDER [--rounds N] [--seconds S] [--only WORD ...] [--json FILE]

"no-op" is 24 users of no-op operations on two workers, "GET" 16 users that read 4 kB objects from nginx on
one (from the system's packages: ``sudo apt-get install nginx-extras``), all with the defaults. Each prints
the rate and the CPU an operation of master and workers, of this checkout by the other's, from pairs of runs.
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from pathlib import Path

import spread as spreads
from dispatch import SCENARIO
from program import Ran, run
from saving import save
from whole_worker import Case, scenario
from yardsticks import Nginx, require

HERE = Path(__file__).parents[1]

spread = partial(spreads.spread, middle="9.4g")


FIGURES = ("rate", "master_us", "worker_us", "cpu_us")


def figures(ran: Ran) -> dict[str, float]:
    master, worker = ran.master_cpu * 1e6, ran.worker_cpu * 1e6
    return dict(zip(FIGURES, (ran.rate, master, worker, master + worker), strict=True))


def noop(seconds: float) -> Ran:
    return run(["--noop", "--user-count=24", f"--run-seconds={seconds:.0f}", "--workers=2"], SCENARIO)


def get(url: str, seconds: float) -> Ran:
    arguments = [f"--storage-url={url}/v1/a", "--token=AUTH_tk0123456789abcdef", "--workers=1"]
    return run([*arguments, f"--run-seconds={seconds:.0f}"], scenario(Case("GET", 4096, 16), 500))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--only", nargs="*", default=["no-op", "GET"], choices=["no-op", "GET"])
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "against.json")
    options = parser.parse_args()
    results = {}
    for name in options.only:
        if name == "GET":
            require("nginx")
        with Nginx() as nginx:
            found: dict[Path, list[dict[str, float]]] = {HERE: [], options.folder: []}
            for _ in range(options.rounds):
                for folder, measured in found.items():
                    os.environ["PYTHONPATH"] = str(folder)
                    ran = noop(options.seconds) if name == "no-op" else get(nginx.url(), options.seconds)
                    measured.append(figures(ran))
        results[name] = {str(folder): measured for folder, measured in found.items()}
        ours, other = found.values()
        for figure in FIGURES:
            mine, theirs = [one[figure] for one in ours], [one[figure] for one in other]
            ratio = [one / two for one, two in zip(mine, theirs, strict=True)]
            print(
                f"{name:6} {figure:10} {spread(mine):28} other {spread(theirs):28} ratio {spread(ratio)}",
                flush=True,
            )
    save(options.json, results=results)


if __name__ == "__main__":
    main()
