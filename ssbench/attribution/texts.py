"""An attribution in words and tables, for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

from ssbench.attribution.findings import Attribution, Finding
from ssbench.attribution.ranks import Difference
from ssbench.attribution.tables import Coverage, PartRow, Row, SlowOperation

#: Most rows of a table that are printed; JSON has all.
_ROWS = 20
_SLOWEST = 5


def write(attribution: Attribution, out: TextIO) -> None:
    """Write coverage, the answer, and the tables."""
    out.write("Coverage\n")
    out.writelines(f"  {line}\n" for line in _coverage(attribution.coverage))
    out.write("\nWhat stands out\n")
    out.writelines(f"  {line}\n" for line in answer(attribution))
    _parts(attribution.parts, out)
    _table("Proxies", "requests", attribution.proxies, out)
    _table("Nodes", "requests", attribution.nodes, out)
    _table("Devices", "requests", attribution.devices, out)
    _table("Partitions with most requests", "requests", attribution.partitions, out)
    _slowest(attribution.slowest, out)
    _errors("Errors in Swift's logs", attribution.errors, out)
    _errors(
        "Errors in Swift's logs beside the results (initial uploads, repeated attempts, clean-up)",
        attribution.other_errors,
        out,
    )


def answer(attribution: Attribution) -> list[str]:
    """Return the findings as sentences; never empty."""
    sentences = [sentence(finding) for finding in attribution.findings]
    if not attribution.coverage.compared:
        return [*sentences, "Cannot be told: no operation has all its object servers' lines."]
    if not any(finding.kind in ("slow", "late") for finding in attribution.findings):
        sentences.insert(0, "Nothing: no proxy, node, process or device makes requests take longer.")
    return sentences


def sentence(finding: Finding) -> str:
    """Return what a finding says."""
    return _SENTENCES[finding.kind](finding)


def _together(finding: Finding) -> str:
    return f"{_listed(finding.members)} are all the devices of {finding.level} {finding.name}"


def _late(finding: Finding) -> str:
    return (
        f"late replica: {finding.name}: {_count(finding.requests, 'write')} answered without it,"
        f" after {seconds(finding.seconds)} (median)"
    )


def _unfelt(finding: Finding) -> str:
    return (
        f"{finding.name}: slow by its own log ({_longer(finding.difference)}, in"
        f" {_count(finding.requests, 'read')}), but nobody waited: requests with it take no longer"
    )


def _untold(finding: Finding) -> str:
    names = [finding.name, *finding.same]
    verb = "it is" if len(names) == 1 else "each is"
    return f"{_listed(names)}: cannot be told: {verb} in every request, or in too few"


def _broken(finding: Finding) -> str:
    return (
        f"{finding.name}: answered 507 to {_count(finding.requests, 'request')}: not mounted, full or broken;"
        " handoffs took its place"
    )


def _error(finding: Finding) -> str:
    return f"{finding.name}: {finding.detail}, {_count(finding.requests, 'time')} by the proxies' logs"


def _slow(finding: Finding) -> str:
    who = f"{finding.level} {finding.name}" if finding.level != "device" else finding.name
    if finding.members:
        who += f" ({_listed(finding.members)})"
    what = finding.group or "requests"
    text = f"{who}: {what} with it take {_longer(finding.difference)}, {_probability(finding.probability)}"
    if len(finding.groups) > 1:
        each = (f"{name} {_signed(found.median)}" for name, found in finding.groups.items())
        text += f" ({', '.join(each)})"
    if finding.own and finding.difference and finding.group in (None, "reads"):
        shown = finding.own.median
        largest = max(finding.difference.median, finding.difference.mean)
        text += (
            f"; its own log shows {_signed(shown)}"
            if shown >= largest / 4
            else "; its own log does not show it: the time passes before its clock starts"
            " (network, queue, a busy process)"
        )
    if finding.same:
        text += f"; cannot be told from {_listed(finding.same)}, which took part in the same requests"
    return text


_SENTENCES: dict[str, Callable[[Finding], str]] = {
    "slow": _slow,
    "together": _together,
    "late": _late,
    "unfelt": _unfelt,
    "untold": _untold,
    "507": _broken,
    "error": _error,
}


def _longer(difference: Difference | None) -> str:
    if difference is None:
        return "longer"
    by_mean = difference.mean > 2 * difference.median
    value = difference.mean if by_mean else difference.median
    kind = "mean: not all of them" if by_mean else "median"
    return f"{seconds(value)} longer ({kind}, {value / difference.base:+.0%})"


def _probability(value: float | None) -> str:
    return "" if value is None else "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def seconds(value: float | None) -> str:
    """Format seconds: in ms below one."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:.2f} s" if abs(value) >= 1 else f"{value * 1e3:.3g} ms"


def _signed(value: float) -> str:
    return f"{'+' if value >= 0 else ''}{seconds(value)}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _listed(names: Sequence[str]) -> str:
    if len(names) > 6:
        return f"{', '.join(names[:5])} and {len(names) - 5} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _coverage(coverage: Coverage) -> Iterator[str]:
    good = coverage.operations - coverage.failed

    def share(number: int) -> str:
        return f"{number:,}" + (f" ({number / good:.1%})" if good else "")

    yield f"operations:                              {coverage.operations:,}, {coverage.failed:,} failed"
    yield f"successes with a proxy's line:           {share(coverage.with_proxy)}"
    yield f"successes with all object server lines:  {share(coverage.complete)}"
    yield f"compared with each other:                {share(coverage.compared)}"
    for number, what in (
        (coverage.without_id, "operations without a transaction id: timed out or cut off, or not from Swift"),
        (coverage.retried, "operations tried more than once: not compared"),
        (
            coverage.concurrent,
            "reads answered by several servers (concurrent_gets): not compared, slow ones among them",
        ),
        (coverage.cut, "lines cut or of an unknown layout: not used"),
        (coverage.duplicates, "lines more than once: used once"),
    ):
        if number:
            yield f"{number:,} {what}"
    yield from coverage.reasons


def _pair(pair: tuple[float, float] | None) -> list[str]:
    return ["-", "-"] if pair is None else [seconds(value) for value in pair]


def _parts(rows: Sequence[PartRow], out: TextIO) -> None:
    table = [
        [
            "operation",
            "requests",
            "client",
            "p99",
            "to proxy",
            "p99",
            "proxy",
            "p99",
            "slowest server",
            "p99",
            "more servers",
        ]
    ]
    for row in rows:
        pairs = [*_pair(row.latency), *_pair(row.client), *_pair(row.proxy), *_pair(row.backend)]
        table.append([row.operation, f"{row.requests:,}", *pairs, f"{row.extra:,}"])
    _print("Where the time goes (median and 99th percentile)", table, out)


def _table(title: str, noun: str, rows: Sequence[Row], out: TextIO) -> None:
    if not rows:
        return
    table = [["", noun, "errors", "own p50", "p99", "client p50", "p99", "longer with it"]]
    for row in rows[:_ROWS]:
        longer = "-" if row.longer is None else f"{_signed(row.longer.median)}"
        pairs = [*_pair(row.seconds), *_pair(row.latency)]
        table.append([row.name, f"{row.requests:,}", f"{row.errors:,}", *pairs, longer])
    if all(row.longer is None for row in rows):
        table = [line[:-1] for line in table]
    _print(title, table, out)
    if len(rows) > _ROWS:
        out.write(f"  {len(rows) - _ROWS:,} more\n")


def _slowest(rows: Sequence[SlowOperation], out: TextIO) -> None:
    table = [["operation", "client", "to proxy", "proxy", "slowest server", "more servers", "who"]]
    for row in rows[:_SLOWEST]:
        parts = [seconds(each) for each in (row.latency, row.client, row.proxy_own, row.backend)]
        who = ", ".join(each for each in (row.proxy, row.device, row.process) if each)
        table.append([row.operation, *parts, str(row.extra), who])
    if rows:
        _print("Slowest operations", table, out)


def _errors(title: str, errors: Sequence[tuple[str, str, int]], out: TextIO) -> None:
    if errors:
        _print(title, [[kind, where or "-", f"{count:,}"] for kind, where, count in errors[:_ROWS]], out)


def _print(title: str, table: Sequence[Sequence[str]], out: TextIO) -> None:
    widths = [max(len(line[place]) for line in table) for place in range(len(table[0]))]
    out.write(f"\n{title}\n")
    for line in table:
        words = [
            word.ljust(width) if place == 0 else word.rjust(width)
            for place, (word, width) in enumerate(zip(line, widths, strict=True))
        ]
        out.write(f"  {'  '.join(words).rstrip()}\n")
