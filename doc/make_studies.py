"""Makes ``swift-features.rst`` and ``swift-by-release.rst``, of the suites ``features`` and ``releases``.

    python doc/make_studies.py [features] [releases] [--rounds N] [--seconds S] [--results-dir DIR] [--keep]

It needs ``pip install '.[swift]'`` and, for the releases that are not in the user's cache yet, PyPI. Without
options it takes some fifteen minutes of a machine that does nothing else. Called again after an interruption,
with the same folder, it goes on where it was. ``--keep`` makes no run: the pages are made of those that are
there.
"""

from __future__ import annotations

import argparse
import html
import json
import math
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from ssbench.results.reading import open_results
from ssbench.statistics.confidence import t_quantile
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize

DOC = Path(__file__).resolve().parent
SERVERS = {"proxy": "#3b6ea8", "listings": "#c98a2b", "object": "#5b8c5a"}
#: What CPU of servers a row has for an operation, in milliseconds, by round.
CpuRounds = dict[str, list[float]]


@dataclass(frozen=True)
class Study:
    """A suite and its page."""

    page: str
    title: str
    between: str  # the key of the suite whose values are compared
    text: str


@dataclass(frozen=True)
class Measured:
    """The runs of a row."""

    figures: dict[str, Any]  # as the report of the suite has them
    cpu: CpuRounds
    runs: list[RunStatistics]


#: By what is compared: the rows by the value of the key.
Groups = dict[str, dict[str, Measured]]

STUDIES = {
    "features": Study(
        "swift-features.rst",
        "What features of Swift cost",
        "set",
        """Each feature is compared with a Swift that has one replica of everything and no filters besides
        those that ``ssbench-master local-swift`` has anyway (``plain``). ``keymaster`` is the filter without
        encryption; ``ratelimit`` has limits that are not reached; ``slo-4`` and ``dlo-4`` are objects of four
        segments; ``replicas-3`` and ``ec-2-1`` (two fragments and one of parity) have three devices of one
        object server. ``link`` is PUT, GET and DELETE of a symbolic link, ``plain`` there of an object.""",
    ),
    "releases": Study(
        "swift-by-release.rst",
        "Swift by release",
        "store",
        """Each release is compared with the first one. All have the same rings, pipelines and devices, the
        newest eventlet that can be had, and the same Python.""",
    ),
}

#: What the page of each begins with.
MACHINE = """**These are figures of one machine of {cores} cores with everything on loopback**: load, proxy,
account, container and object servers share the cores, and the disks are one temporary folder. They say what
the code costs, and nothing of networks, of disks or of a cluster. {text}"""
MEASURED = """Measured on {began:%Y-%m-%d} from {began:%H:%M} to {ended:%H:%M} UTC by ssbench {version} on
Linux, {model}, Python {python}, by four users of one worker: {rounds} rounds of {seconds:g} s for each row,
in turn. {shared}"""
SHARED = """The machine was shared: in {busy} of {runs} runs other programs used its CPU, with a load average
of {load:.0f} in half of them. Rates and latencies say little then; CPU says more."""
AGAIN = """To make them again::

  ssbench-master suite {name} --rounds {rounds} -r {seconds:g} --workers 1
  python doc/make_studies.py {name} --rounds {rounds} --seconds {seconds:g}   # with this page"""
LEGEND = """Changes of operations a second and of the median latency (p50) have 95 % intervals; ``*`` marks
those that are significant among all rows and figures of the suite together, the others may be chance. CPU is
that of all processes of a server for one operation (of several requests, if it has these), by rounds;
``listings`` is the account and container server. The change of CPU is that of all servers together; its
interval is of that row alone, from rounds next to each other."""
CHART = """.. image:: {stem}.svg
   :alt: CPU of the servers for an operation, by row"""


def main() -> int:
    """Make the pages; return 1 where a suite failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("studies", nargs="*", metavar="STUDY", help="features, releases (both)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--results-dir", type=Path, default=Path.cwd() / "studies")
    parser.add_argument("--keep", action="store_true", help="make no run")
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("--rounds: expected 2 or more, because intervals are by rounds")
    for name in options.studies or STUDIES:
        if not options.keep:
            code = run(name, options)
            if code not in {0, 5, 6}:  # what conditions say is in the table
                return code
        report = json.loads((options.results_dir / f"{name}.json").read_text("utf-8"))
        page, chart = make_page(name, report)
        (DOC / f"{Path(STUDIES[name].page).stem}.svg").write_text(chart, "utf-8")
        (DOC / STUDIES[name].page).write_text(page, "utf-8")
    return 0


def run(name: str, options: argparse.Namespace) -> int:
    """Run a suite, or go on with it; return its exit code."""
    results = options.results_dir / name
    command = [sys.executable, "-P", "-m", "ssbench.cli.master", "suite", name, "--workers", "1", "--force"]
    command += ["-r", str(options.seconds), "--rounds", str(options.rounds), "--results-dir", str(results)]
    command += ["--json", str(options.results_dir / f"{name}.json"), "-R"]
    if any(results.glob("*.stat.gz")):
        command.append("--resume")
    results.mkdir(parents=True, exist_ok=True)
    return subprocess.run(command, check=False).returncode


# -- What was measured -----------------------------------------------------------------------------


def read_cpu(runs: Sequence[RunStatistics]) -> CpuRounds:
    """Return the CPU of each kind of server, and of all of them."""
    found = {kind: [1e3 * each.server_cpu[kind].seconds for each in runs] for kind in SERVERS}
    return found | {"all": [sum(each) for each in zip(*found.values(), strict=True)]}


def format_ratio(before: Sequence[float], after: Sequence[float]) -> str:
    """Return the change of a figure with its 95 % interval, of rounds that stood next to each other."""
    logs = [math.log(two / one) for one, two in zip(before, after, strict=False)]
    half = t_quantile(0.975, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    low, middle, high = (math.expm1(fmean(logs) + each) for each in (-half, 0, half))
    return f"{middle:+.0%} ({low:+.0%} to {high:+.0%})"


def format_change(change: dict[str, Any] | None) -> str:
    """Return a change as the suite's report has it; a star where it is significant among all of them."""
    if change is None:
        return "not known"
    star = "" if change["word"] == "no difference shown" else " *"
    low, high = ("unknown" if each is None else f"{each:+.0%}" for each in (change["low"], change["high"]))
    return f"{change['change']:+.0%} ({low} to {high}){star}"


# -- The page --------------------------------------------------------------------------------------


def make_page(name: str, report: dict[str, Any]) -> tuple[str, str]:
    """Return the page of a suite, and its chart."""
    study, between = STUDIES[name], report["between"]
    first, changes = between["before"], {row["name"]: row["changes"] for row in between["rows"]}
    groups: Groups = {}
    for row in report["rows"]:
        runs = [summarize(open_results(Path(file))) for file in row["stat_files"]]
        group, side = name_group(runs[0], name)
        groups.setdefault(group, {})[side] = Measured(row["figures"], read_cpu(runs), runs)
    parts = [study.title, "=" * len(study.title), "", "\n\n".join(describe(name, report, groups)), ""]
    for group, sides in groups.items():
        parts += [group, "-" * len(group), "", *make_table(group, first, sides, changes), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n", make_chart(groups)


def name_group(run: RunStatistics, suite: str) -> tuple[str, str]:
    """Return what the rows that are compared with that of a run are called, and its value there."""
    options: dict[str, Any] = run.run.options
    words = options["row_words"]
    key = STUDIES[suite].between
    row = options["row"].removesuffix("".join(f" {word}" for word in words.values()))
    others = [row, *(word for each, word in words.items() if each != key)]
    return " ".join(others), words[key].partition("=")[2] or words[key]


def describe(name: str, report: dict[str, Any], groups: Groups) -> Iterator[str]:
    """Yield the paragraphs that the page begins with."""
    every = [each for sides in groups.values() for side in sides.values() for each in side.runs]
    began = [datetime.fromtimestamp(began, UTC) for each in every if (began := each.run.started) is not None]
    warnings = [text for row in report["rows"] for text in row["warnings"]]
    loads = [float(each) for text in warnings for each in re.findall(r"load average ([\d.]+) at the", text)]
    busy = sum("was shared" in text for text in warnings)
    shared = SHARED.format(busy=busy, runs=len(every), load=median(loads)) if busy and loads else ""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text("utf-8"))
    seconds = median(each.run.scenario.run_seconds or 0 for each in every)
    yield fill(MACHINE.format(cores=os.cpu_count(), text=STUDIES[name].text))
    yield fill(
        MEASURED.format(
            began=min(began),
            ended=max(began),
            version=every[0].run.version,
            model=model[1] if model else "a CPU of unknown kind",
            python=f"{sys.version_info[0]}.{sys.version_info[1]}",
            rounds=report["rounds"],
            seconds=seconds,
            shared=shared,
        )
    )
    yield AGAIN.format(name=name, rounds=report["rounds"], seconds=seconds)
    yield fill(LEGEND)
    yield CHART.format(stem=Path(STUDIES[name].page).stem)


def fill(text: str) -> str:
    """Return a paragraph in lines of the width of the documentation."""
    return textwrap.fill(" ".join(text.split()), 120, break_on_hyphens=False, break_long_words=False)


def make_table(
    group: str, first: str, sides: dict[str, Measured], changes: dict[str, dict[str, Any]]
) -> Iterator[str]:
    """Yield the table of the rows that are compared with each other."""
    heads = ["", "ops/s", "p50", "CPU of proxy, ms", "listings", "object", "CPU of all servers"]
    yield from (".. list-table::", "   :header-rows: 1", "")
    rows = [heads]
    for side, measured in sides.items():
        found = measured.cpu
        mean = [f"{fmean(found[kind]):.2f}" for kind in SERVERS]
        if side == first:
            rate, p50 = (measured.figures.get(key, {}).get("mean", math.nan) for key in ("rate", "p50"))
            own = [f"{rate:.1f}/s", "not known" if math.isnan(p50) else f"{p50 * 1e3:.0f} ms"]
            rows.append([side, *own, *mean, f"{fmean(found['all']):.2f} ms"])
        else:
            known = changes.get(f"{group}: {side}", {})
            own = [format_change(known.get(key)) for key in ("rate", "p50")]
            rows.append([side, *own, *mean, format_ratio(sides[first].cpu["all"], found["all"])])
    for row in rows:
        for number, cell in enumerate(row):
            yield f"   {' ' if number else '*'} - {cell}".rstrip()


def make_chart(groups: Groups) -> str:
    """Return bars of the CPU of the servers for an operation, as SVG."""
    rows = [(f"{group}: {side}", each.cpu) for group, sides in groups.items() for side, each in sides.items()]
    scale = 380 / max(fmean(found["all"]) for _, found in rows)
    parts = []
    for number, (title, found) in enumerate(rows):
        top, left = 30 + 16 * number, 200.0
        parts.append(f'<text x="192" y="{top + 10}" text-anchor="end">{html.escape(title)}</text>')
        for kind, colour in SERVERS.items():
            wide = scale * fmean(found[kind])
            parts.append(f'<rect x="{left:.1f}" y="{top}" width="{wide:.1f}" height="12" fill="{colour}"/>')
            left += wide
        parts.append(f'<text x="{left + 6:.1f}" y="{top + 10}">{fmean(found["all"]):.1f} ms</text>')
    for number, (kind, colour) in enumerate(SERVERS.items()):
        parts.append(f'<text x="{200 + 80 * number}" y="18" fill="{colour}">{kind}</text>')
    high = 40 + 16 * len(rows)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 660 {high}" width="660" height="{high}"'
        ' font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="#fff"/>'
        + "".join(parts)
        + "</svg>\n"
    )


if __name__ == "__main__":
    sys.exit(main())
