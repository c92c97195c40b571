"""What an operation costs, by turns with another checkout of ssbench.

    python bench/against.py FOLDER [--rounds N] [--seconds S] [--only WORD ...] [--json FILE]

"no-op" is 24 users of no-op operations on two workers, "groups-N" 100 in N groups. "GET" and "verify" are 16
users that read 4 kB objects from nginx on one, "GET-groups-N" 100 in N groups (from the system's packages:
``sudo apt-get install nginx-extras``), "few" and "many" 32 that upload 1 MB to it over and over to 100 or
1,000 objects, "PUT" 32 that upload 4 kB to the store of ``bench/uploads.py``, which sends no ETag. All have
the defaults. Each prints the rate and the CPU an operation of master and workers, of this checkout by the
other's, from pairs of runs.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import spread as spreads
from dispatch import SCENARIO
from program import Ran, run
from saving import save
from served import served
from uploads import swallow
from whole_worker import Case, scenario
from yardsticks import Nginx, require

HERE = Path(__file__).parents[1]

spread = partial(spreads.spread, middle="9.4g")


FIGURES = ("rate", "master_us", "worker_us", "cpu_us")


def figures(ran: Ran) -> dict[str, float]:
    master, worker = ran.master_cpu * 1e6, ran.worker_cpu * 1e6
    return dict(zip(FIGURES, (ran.rate, master, worker, master + worker), strict=True))


def noop(seconds: float) -> Ran:
    return run(["--noop", "--user-count=24", f"--run-seconds={seconds:g}", "--workers=2"], SCENARIO)


def in_groups(whole: dict[str, object], groups: int, seconds: float) -> dict[str, object]:
    """Return a scenario of 100 users in groups, each with the operations of ``whole``."""
    rows = [{"name": f"g{number}", "users": 100 // groups} for number in range(groups)]
    kept = {key: value for key, value in whole.items() if key not in {"user_count", "operation_count"}}
    return {**kept, "run_seconds": seconds, "groups": rows}


def grouped(groups: int, seconds: float) -> Ran:
    return run(["--noop", "--workers=2"], in_groups(SCENARIO, groups, seconds))


def requests(
    case: Case, objects: int, arguments: list[str], url: str, seconds: float, groups: int = 0
) -> Ran:
    arguments = [f"--storage-url={url}/v1/a", "--token=AUTH_tk0123456789abcdef", "--workers=1", *arguments]
    whole = scenario(case, objects)
    if groups:
        return run(arguments, in_groups(whole, groups, seconds))
    return run([*arguments, f"--run-seconds={seconds:g}"], whole)


def in_nginx(case: Case, objects: int, *arguments: str, groups: int = 0) -> Callable[[float], Ran]:
    def measured(seconds: float) -> Ran:
        require("nginx")
        with Nginx() as nginx:
            return requests(case, objects, [*arguments], nginx.url(), seconds, groups)

    return measured


def put(seconds: float) -> Ran:
    with served(swallow) as url:
        return requests(Case("PUT", 4096, 32), 1000, [], url, seconds)


CASES: dict[str, Callable[[float], Ran]] = {
    "no-op": noop,
    **{f"groups-{groups}": partial(grouped, groups) for groups in (1, 20, 50)},
    "GET": in_nginx(Case("GET", 4096, 16), 500),
    **{f"GET-groups-{each}": in_nginx(Case("GET", 4096, 100), 500, groups=each) for each in (1, 20, 50)},
    "verify": in_nginx(Case("GET", 4096, 16), 500, "--verify"),
    "PUT": put,
    "few": in_nginx(Case("PUT", 1_000_000, 32), 100),
    "many": in_nginx(Case("PUT", 1_000_000, 32), 1000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--only", nargs="*", default=[*CASES], choices=CASES)
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "against.json")
    options = parser.parse_args()
    results = {}
    for name in options.only:
        found: dict[Path, list[dict[str, float]]] = {HERE: [], options.folder: []}
        for turn in range(options.rounds):
            for folder in [*found][:: -1 if turn % 2 else 1]:
                os.environ["PYTHONPATH"] = str(folder)
                found[folder].append(figures(CASES[name](options.seconds)))
        results[name] = {str(folder): measured for folder, measured in found.items()}
        ours, other = found.values()
        for figure in FIGURES:
            mine, theirs = [one[figure] for one in ours], [one[figure] for one in other]
            ratio = [one / two for one, two in zip(mine, theirs, strict=True)]
            print(
                f"{name:13} {figure:10} {spread(mine):28} other {spread(theirs):28} ratio {spread(ratio)}",
                flush=True,
            )
    save(options.json, results=results)


if __name__ == "__main__":
    main()
