"""A short report in Markdown, as GitHub and GitLab show it, for a pull request or a job's summary."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ssbench.document import Tone
from ssbench.document.columns import plural
from ssbench.figures import FIGURES
from ssbench.figures.units import rate, share
from ssbench.printable import printable
from ssbench.reports.figures import bounded, utc
from ssbench.reports.options import ReportOptions
from ssbench.reports.verdict import judged, verdict
from ssbench.statistics import RunStatistics
from ssbench.statistics.waits import sentence

_MARKS = {Tone.GOOD: "\u2705", Tone.DOUBTFUL: "\u26a0\ufe0f", Tone.BAD: "\u274c"}
#: What Markdown or HTML would take for more than a character.
_SPECIAL = re.compile(r"([\\`*_\[\]#|<>&~$])")


def report(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the report."""
    found = verdict(statistics, options)
    name = escape(statistics.run.scenario.name)
    lines = [f"### {_MARKS[found.tone]} {name}: {escape(found.title)}", "", _what(statistics), ""]
    lines += [*_table(statistics), ""]
    if found.tone is not Tone.GOOD or judged(statistics, options).judgments:
        lines += [*(f"- {escape(sentence)}" for sentence in found.sentences), ""]
    lines += _errors(statistics)
    lines += _waits(statistics)
    lines += _warnings(statistics)
    return "".join(f"{line}\n" for line in lines).rstrip("\n") + "\n"


def escape(text: str) -> str:
    """Return a text that Markdown shows as it is, on one line."""
    # No text from a stat file is to notify the person of that name.
    return _SPECIAL.sub(r"\\\1", printable(text)).replace("@", "@\u2060")


def _what(statistics: RunStatistics) -> str:
    run, scenario = statistics.run, statistics.run.scenario
    facts = [
        plural(scenario.user_count, "user"),
        plural(statistics.worker_count, "worker"),
        f"{statistics.duration:,.1f} s",
        f"policy {scenario.policy}" if scenario.policy else "",
        f"seed {run.seed}" if run.seed is not None else "",
        utc(statistics.start),
        f"ssbench {run.version}",
    ]
    return escape(", ".join(filter(None, facts)))


def _table(statistics: RunStatistics) -> Iterator[str]:
    yield "| | ops | % | errors | ops/s | MB/s | p50 ms | p95 ms | p99 ms | p99.9 ms | max ms |"
    yield "|---|" + "--:|" * 10
    everything = statistics.total.count + statistics.total.failed
    for section in (*statistics.sections[1:], statistics.total):
        latencies = section.lines[0].latency
        cells = [
            section.operation.name.upper() if section.operation else "**ALL**",
            f"{section.count:,}",
            share(section.count + section.failed, everything).removesuffix(" %"),
            f"{section.failed:,}",
            rate(section.requests_per_second),
            FIGURES["mb_per_s"].text(section, statistics),
            *(bounded(latencies, rank) for rank in (50, 95, 99, 99.9, 100)),
        ]
        yield f"| {' | '.join(cells)} |"


def _errors(statistics: RunStatistics) -> Iterator[str]:
    if statistics.errors:
        yield from ("| errors | cause | first transaction id |", "|--:|---|---|")
        for name, cause in statistics.errors.items():
            trans_id = f"`{printable(cause.trans_id).replace('`', '')}`" if cause.trans_id else ""
            yield f"| {cause.count:,} | {escape(name)} | {trans_id.replace('|', '')} |"
        yield ""


def _waits(statistics: RunStatistics) -> Iterator[str]:
    if statistics.waits:
        yield from (f"- {escape(sentence(wait))}" for wait in statistics.waits)
        yield ""


def _warnings(statistics: RunStatistics) -> Iterator[str]:
    if statistics.warnings:
        yield from ("<details><summary>Warnings</summary>", "")
        yield from (f"- {escape(warning)}" for warning in statistics.warnings)
        yield from ("", "</details>", "")
