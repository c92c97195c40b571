"""How often two equal Swifts are called different, and whether CPU planted in a server is named there.

    python bench/two_swifts.py [--way ab|versus] [--planted SERVER ...] [--cost MS] [--runs N] [--seconds S]
                               [--pairs P] [--json FILE]

Needs ``pip install '.[swift]'``. Each run starts both Swifts anew. What is planted is a busy wait in each
request of a server (``proxy``, ``object``, ``container``) of the second one, in so many runs for each server
that is named; without ``--cost`` it is 2 % of the median latency of a run that is made first. Of equal ones a
run should show nothing (*silent*); of others CPU of that server alone (*CPU*), and the sentence on the parts
should name that server (*by part*). ``--way versus`` takes ``--pairs`` pairs of runs for each. Printed are
also the differences of CPU, latencies and rates that were found, and half of their 95 % intervals.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import spread as spreads
from saving import save

from ssbench.comparison.comparison_report import make_comparison_json
from ssbench.comparison.paired_sides import compare_sides
from ssbench.results.reading import open_results
from ssbench.statistics.summary import summarize

#: Of each server that something may be planted in: the module and class of its application, the figure of its
#: CPU, and what a sentence on the parts calls it.
_SERVERS = {
    "proxy": ("swift.proxy.server:Application", "proxy_cpu", "the proxy's own part"),
    "object": ("swift.obj.server:ObjectController", "object_cpu", "the object servers' part"),
    "container": ("swift.container.server:ContainerController", "listings_cpu", "the container updates"),
}

#: Python runs it in each process with its folder in PYTHONPATH: servers then heed a setting of ours.
_PLANT = """
import importlib, sys, time

def plant(cls):
    make, call = cls.__init__, cls.__call__
    def __init__(self, conf, *args, **more):
        make(self, conf, *args, **more)
        self.planted_seconds = float(conf.get("planted_seconds", 0))
    def __call__(self, env, start_response):
        end = time.thread_time() + self.planted_seconds
        while time.thread_time() < end:
            pass
        return call(self, env, start_response)
    cls.__init__, cls.__call__ = __init__, __call__

if "ssbench.local_swift._serve" in sys.orig_argv:
    for place in PLACES:
        module, _, name = place.partition(":")
        if any(word.startswith(module.split(".")[1].replace("obj", "object")) for word in sys.orig_argv):
            plant(getattr(importlib.import_module(module), name))
"""


@dataclass(frozen=True)
class Compared:
    """What a comparison says."""

    shown: list[str]  # figures of all operations that it calls different
    #: By how much CPU, latencies and rates of all operations differ, by the keys of figures; logarithms.
    differences: dict[str, float]
    half: dict[str, float]  # half of their intervals
    answer: str  # the sentence on the parts
    p50: float | None  # median latency of the first side, in seconds; None: too few operations ended


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--way", choices=["ab", "versus"], default="ab")
    parser.add_argument("--planted", choices=["none", *_SERVERS], nargs="+", default=["none"])
    parser.add_argument("--cost", type=float, metavar="MS")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "two_swifts.json")
    options = parser.parse_args()
    asked = {key: str(value) for key, value in vars(options).items()}
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        places = [place for place, *_ in _SERVERS.values()]
        (folder / "sitecustomize.py").write_text(_PLANT.replace("PLACES", repr(places)))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [name, os.environ.get("PYTHONPATH", "")]))
        cost = (options.cost or 0.0) / 1000
        if options.cost is None and options.planted != ["none"]:
            median_latency = compare(folder, options, "proxy", 0.0, 0).p50
            if median_latency is None:
                sys.exit("too few operations for a median latency: say --cost, or more --seconds")
            cost = 0.02 * median_latency
        for planted in options.planted:
            rows.append(measure(folder, options, planted, 0.0 if planted == "none" else cost))
            save(options.json, asked=asked, rows=rows)
    for row in rows:
        print("; ".join(row["texts"]))


def measure(folder: Path, options: argparse.Namespace, planted: str, cost: float) -> dict[str, Any]:
    """Make the runs of a row; return what they found."""
    server = None if planted == "none" else planted
    found: list[Compared] = []
    for number in range(1, options.runs + 1):
        found.append(compare(folder, options, server or "proxy", cost, number))
        each = found[-1]
        numbers = ", ".join(
            f"{key} {value:+.2%} +-{each.half[key]:.2%}" for key, value in each.differences.items()
        )
        print(f"{planted} {number}: {each.shown or 'silent'}; {numbers}; {each.answer}", flush=True)
    counts = count(found, server)
    texts = [f"{planted}, {1000 * cost:.3g} ms, by --{options.way}"]
    texts += [f"{name}: {number} of {len(found)}" for name, number in counts.items()]
    for key in [each for each in found[0].differences if all(each in run.differences for run in found)]:
        differences = [each.differences[key] for each in found]
        halves = spreads.spread([each.half[key] for each in found], 100)
        deviation = stdev(differences) if len(found) > 1 else math.nan
        found_text = f"mean {fmean(differences):+.2%}, standard deviation {deviation:.2%}"
        texts.append(f"{key}: {found_text}, half intervals {halves} %")
    return {"planted": planted, "cost": cost, "counts": counts, "texts": texts, "runs": [*map(asdict, found)]}


def count(found: list[Compared], server: str | None) -> dict[str, int]:
    """Return how many runs said what is true."""
    if server is None:
        return {"silent": sum(not each.shown for each in found)}
    _, figure, part = _SERVERS[server]
    own = [[key for key in each.shown if key.endswith("_cpu")] == [figure] for each in found]
    by_part = [part in each.answer for each in found]
    either = [one or two for one, two in zip(own, by_part, strict=True)]
    return {"CPU": sum(own), "by part": sum(by_part), "named by one of them": sum(either)}


def compare(folder: Path, options: argparse.Namespace, server: str, cost: float, seed: int) -> Compared:
    """Compare two Swifts, in the second of which each request to a server uses more CPU, in seconds."""
    for name, seconds in (("plain", 0.0), ("planted", cost)):
        (folder / f"{name}.yaml").write_text(
            f"{server}-server: {{app: {{planted_seconds: '{seconds:.9f}'}}}}\n", "utf-8"
        )
    stats, report = folder / f"{seed}.stat.gz", folder / f"{seed}.json"
    words: list[object] = [
        "-f",
        "smoke",
        "-u",
        4,
        "--workers",
        1,
        "-r",
        options.seconds,
        "--seed",
        seed or 99,
    ]
    if options.way == "ab":
        words += ["--ab", f"plain={folder}/plain.yaml", f"planted={folder}/planted.yaml"]
    else:
        words += ["--repeat", options.pairs, "--local-swift", "--swift-config", folder / "plain.yaml"]
        words += [f"--versus=--swift-config {folder}/planted.yaml"]
    command = [sys.executable, "-P", "-m", "ssbench.cli.master", "run-scenario", "-s", stats, "--force", "-q"]
    command += ["--json", report, "-R", *words]
    done = subprocess.run([*map(str, command)], check=False, capture_output=True, text=True, timeout=900)
    if done.returncode not in {0, 5, 6}:
        sys.exit(f"run {seed} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    made: dict[str, Any] = json.loads(report.read_text())
    compared = made
    if options.way == "ab":
        compared = json.loads(make_comparison_json(compare_sides(summarize(open_results(stats)))))
    [row] = [each for each in compared["rows"] if each["operation"] == "ALL"]
    changes: dict[str, Any] = row["changes"]
    known = {key: each for key, each in changes.items() if key != "errors" and each["high"] is not None}
    return Compared(
        [key for key, each in changes.items() if each["word"] and each["word"] != "no difference shown"],
        {key: math.log1p(each["change"]) for key, each in known.items()},
        {key: (each["high"] - each["low"]) / 2 for key, each in known.items()},
        made["by_part"]["answer"] if made["by_part"] else "",
        changes.get("p50", {}).get("before"),
    )


if __name__ == "__main__":
    main()
