"""How near a made scenario is to its log: a known scenario, its log, a scenario of that, and its log.

    python bench/traffic.py [--exponents Z ...] [--seeds N ...] [--json FILE]

Logs are written as scenarios are drawn, without a store: 60,000 requests in 1,200 seconds for 20,000 objects,
of which some come and go.
Printed are the largest differences: of shares of operations in points, of size quantiles in per cent; Zipf's
exponent of both; distinct objects, and the dispersion at 1 s, of the second by that of the first; and of each
hit ratio the difference, with that of the log's own halves behind it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from saving import save

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

from logged_traffic import KNOWN_SCENARIO, write_scenario_log

from ssbench.logs.log_files import LogFile
from ssbench.logs.logged_requests import read_requests
from ssbench.logs.request_formats import find_request_format
from ssbench.scenario.scenario_reading import check_scenario_text
from ssbench.traffic.made_scenario import make_scenario
from ssbench.traffic.traffic_figures import CACHE_SHARES, TRAFFIC_FIGURES, Traffic, compute_figures

#: Figures whose greatest difference is printed: creates and updates are uploads in a log.
SHARES = ("read", "head", "list", "put", "delete")


def write_and_read(text: str, seed: int) -> Traffic:
    """Write the log of a scenario, and read it."""
    with tempfile.TemporaryDirectory(prefix="ssbench-bench-") as folder:
        log = Path(folder) / "proxy.log"
        write_scenario_log(log, check_scenario_text(text, "scenario"), seed)
        return Traffic(read_requests([LogFile(log, "n")], find_request_format("swift")))


def figures_of(traffic: Traffic) -> dict[str, float]:
    """Return figures by their titles."""
    titles = (each.title for each in TRAFFIC_FIGURES)
    return dict(zip(titles, compute_figures(traffic), strict=True))


def compare(exponent: float, seed: int) -> dict[str, Any]:
    """Return how the log of the made scenario differs from that of the known one."""
    traffic = write_and_read(KNOWN_SCENARIO % exponent, seed)
    made = make_scenario(traffic, "made")
    log, again = figures_of(traffic), figures_of(write_and_read(made.text, seed + 1))
    first, second = map(figures_of, traffic.split())
    sizes = [f"size of objects, p{rank}" for rank in (5, 25, 50, 75, 95)]
    hits = [f"hit ratio by objects, {100 * share:g} % cached" for share in CACHE_SHARES]
    return {
        "exponent": exponent,
        "seed": seed,
        "shares": 100 * max(abs(again[name] - log[name]) for name in SHARES),
        "sizes": 100 * max(abs(again[name] / log[name] - 1) for name in sizes),
        "zipf": [log["Zipf exponent"], again["Zipf exponent"]],
        "created": again["uploads of new objects"] / log["uploads of new objects"],
        "objects": again["objects"] / log["objects"],
        "dispersion": again["dispersion at 1 s"] / log["dispersion at 1 s"],
        "hits": [again[name] - log[name] for name in hits],
        "halves": [abs(first[name] - second[name]) for name in hits],
        "misfits": made.remarks,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--exponents", type=float, nargs="+", default=[0.6, 0.8, 1.0, 1.2])
    parser.add_argument("--seeds", type=int, nargs="+", default=[3, 5, 7])
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "traffic.json")
    options = parser.parse_args()
    shares = "  ".join(f"hit {100 * share:g} % (halves)" for share in CACHE_SHARES)
    print(f"zipf seed  shares sizes  zipf of both  objects  dispersion  {shares}")
    made = []
    for exponent in options.exponents:
        for seed in options.seeds:
            found = compare(exponent, seed)
            made.append(found)
            hits = "  ".join(
                f"{hit:+.3f} ({half:.3f})" for hit, half in zip(found["hits"], found["halves"], strict=True)
            )
            print(
                f"{exponent:4} {seed:4} {found['shares']:6.2f} {found['sizes']:5.1f}"
                f"    {found['zipf'][0]:.2f} {found['zipf'][1]:.2f}  {found['objects']:7.3f}"
                f"  {found['dispersion']:10.2f}  {hits}",
                *(f"! {each}" for each in found["misfits"]),
                flush=True,
            )
    save(options.json, made=made)


if __name__ == "__main__":
    main()
