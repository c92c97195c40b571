"""An attribution in words and tables, for people."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

from ssbench.attribution.findings import Attribution, Finding
from ssbench.attribution.ranks import Difference
from ssbench.attribution.tables import Coverage, PartRow, Row, SlowOperation
from ssbench.figures.units import milliseconds

#: Most rows of a table that are printed; JSON has all.
_ROWS = 20
_SLOWEST = 5

#: Columns of a terminal.
_WIDTH = 80
#: A name has this many columns of a table at least.
_LEAST_NAME = 8

#: What the tables mean by longer.
LONGER = (
    "own: by its own log; client: operations that it took part in; longer: the median difference of these to"
    " operations of the same kind without it, and of two the slower one's to the other's, significant or"
    " not: only what is listed above stands out"
)

#: How to read the slowest operations.
SLOWEST = (
    "The slowest server of a write is often a healthy one, which waited for the others: the slow ones are"
    " named above, from all operations."
)


def write(attribution: Attribution, out: TextIO) -> None:
    """Write coverage, the answer, and the tables."""
    out.write("Coverage\n")
    for what, value in coverage_facts(attribution.coverage):
        out.write(f"  {what + ':':40} {value}\n")
    _paragraphs(coverage_notes(attribution.coverage), out)
    out.write("\nWhat stands out\n")
    _paragraphs(answer(attribution), out)
    _parts(attribution.parts, out)
    _table("Proxies", attribution.proxies, out)
    _table("Nodes", attribution.nodes, out)
    _table("Devices", attribution.devices, out)
    if attribution.proxies or attribution.devices:
        _paragraphs([LONGER], out)
    _table("Partitions with most requests", attribution.partitions, out)
    _slowest(attribution.slowest, out)
    _errors("Errors in Swift's logs", attribution.errors, out)
    _errors(
        "Errors in Swift's logs beside the results (initial uploads, repeated attempts, clean-up)",
        attribution.other_errors,
        out,
    )


def _paragraphs(texts: Iterable[str], out: TextIO) -> None:
    """Write each text in lines that fit a terminal."""
    for text in texts:
        lines = textwrap.wrap(
            text, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
        )
        out.writelines(f"{line}\n" for line in lines)


def answer(attribution: Attribution) -> list[str]:
    """Return the findings as sentences; never empty."""
    # Those about which nothing is known come last.
    findings = sorted(attribution.findings, key=lambda finding: finding.kind == "untold")
    sentences = [sentence(finding) for finding in findings]
    if not attribution.coverage.compared:
        return [*sentences, "Cannot be told: no operation has all its object servers' lines."]
    if not any(finding.kind in ("slow", "late") for finding in attribution.findings):
        some = "of those that can be compared, " if _is_untold(attribution) else ""
        sentences.insert(0, f"Nothing: {some}no proxy, node, process or device makes requests take longer.")
    return sentences


def nobody(attribution: Attribution) -> str:
    """Return the answer in few words where nobody is slow, late or broken."""
    some = "Nobody of those that can be compared" if _is_untold(attribution) else "Nobody"
    return f"{some} makes requests slow"


def _is_untold(attribution: Attribution) -> bool:
    return any(finding.kind == "untold" for finding in attribution.findings)


def sentence(finding: Finding) -> str:
    """Return what a finding says."""
    return _SENTENCES[finding.kind](finding)


def _together(finding: Finding) -> str:
    return f"{listed(finding.members)} are all the devices of {finding.level} {finding.name}"


def _late(finding: Finding) -> str:
    return (
        f"late replica: {finding.name}: {_count(finding.requests, 'write')} answered without it,"
        f" after {seconds(finding.seconds)} (median)"
    )


def _unfelt(finding: Finding) -> str:
    return (
        f"{finding.name}: slow by its own log ({_longer(finding.difference)}, in"
        f" {_count(finding.requests, 'read')}), but nobody waited as far as this run can tell: requests with"
        " it take no longer than by chance"
    )


def _untold(finding: Finding) -> str:
    names = [finding.name, *finding.same]
    verb = "it is" if len(names) == 1 else "each is"
    return f"{listed(names)}: cannot be told: {verb} in every request, or in too few"


def _broken(finding: Finding) -> str:
    return (
        f"{finding.name}: answered 507 to {_count(finding.requests, 'request')}: not mounted, full or broken;"
        " handoffs took its place"
    )


def _error(finding: Finding) -> str:
    return f"{finding.name}: {finding.detail}, {_count(finding.requests, 'time')} by the proxies' logs"


def _slow(finding: Finding) -> str:
    if finding.detail == "last":
        return (
            f"{finding.name}: writes wait for it: its replica takes {_longer(finding.difference)} than the"
            f" others of the same write by their own logs, {_probability(finding.probability)}"
        )
    who = f"{finding.level} {finding.name}" if finding.level != "device" else finding.name
    if finding.members:
        who += f" ({listed(finding.members)})"
    what = finding.group or "requests"
    text = f"{who}: {what} with it take {_longer(finding.difference)}, {_probability(finding.probability)}"
    if len(finding.groups) > 1:
        each = (f"{name} {_signed(found.median)}" for name, found in finding.groups.items())
        text += f" ({', '.join(each)})"
    if finding.own and finding.difference:
        text += _own(finding.own, finding.difference, finding.group)
    if finding.same:
        text += f"; cannot be told from {listed(finding.same)}, which took part in the same requests"
    return text


def _own(own: Difference, felt: Difference, group: str | None) -> str:
    """Return what the server's own times say of it; those of writes tell only what follows the data."""
    shown = own.median >= max(felt.median, felt.mean) / 4
    if group == "writes":
        return (
            f"; its replica takes {_signed(own.median)} beside the others of the same write" if shown else ""
        )
    if shown:
        return f"; its own log shows {_signed(own.median)}"
    return (
        "; its own log does not show it: the time passes before its clock starts"
        " (network, queue, a busy process)"
    )


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


def listed(names: Sequence[str]) -> str:
    """Return names as a person lists them, the first of many."""
    if len(names) > 6:
        return f"{', '.join(names[:5])} and {len(names) - 5} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def coverage_facts(coverage: Coverage) -> list[tuple[str, str]]:
    """Return what was counted, and how many."""
    good = coverage.operations - coverage.failed

    def share(number: int) -> str:
        return f"{number:,}" + (f" ({number / good:.1%})" if good else "")

    return [
        ("operations", f"{coverage.operations:,}, {coverage.failed:,} failed"),
        ("successes with a proxy's line", share(coverage.with_proxy)),
        ("successes with all object server lines", share(coverage.complete)),
        ("compared with each other", share(coverage.compared)),
        ("lines of the run", f"{coverage.lines_of_run:,} of {coverage.lines:,}"),
    ]


def coverage_notes(coverage: Coverage) -> list[str]:
    """Return what is missing or left out, and likely reasons."""
    counts = (
        (
            coverage.without_id,
            "operation",
            "without a transaction id: timed out or cut off, or not from Swift",
        ),
        (coverage.retried, "operation", "tried more than once: not compared"),
        (
            coverage.concurrent,
            "read",
            "answered by several servers (concurrent_gets): not compared, slow ones among them",
        ),
        (coverage.cut, "line", "cut or of an unknown layout: not used"),
        (coverage.duplicates, "line", "more than once: used once"),
    )
    notes = [f"{_count(number, noun)} {what}" for number, noun, what in counts if number]
    return [*notes, *coverage.reasons]


def _pair(pair: tuple[float, float] | None) -> list[str]:
    return ["-", "-"] if pair is None else [milliseconds(value) for value in pair]


def _parts(rows: Sequence[PartRow], out: TextIO) -> None:
    heads = ["operation", "ops", "client", "p99", "to proxy", "p99", "proxy", "p99", "server", "p99", "more"]
    table = [heads]
    for row in rows:
        pairs = [*_pair(row.latency), *_pair(row.client), *_pair(row.proxy), *_pair(row.backend)]
        table.append([row.operation, f"{row.requests:,}", *pairs, f"{row.extra:,}"])
    _print("Where the time goes (median and 99th percentile, ms; server: the slowest)", table, out)
    if any(row.extra for row in rows):
        out.write("  more: how many of these took more servers than usual (failed attempts, handoffs)\n")


def _table(title: str, rows: Sequence[Row], out: TextIO) -> None:
    if not rows:
        return
    table = [["", "requests", "errors", "own p50", "p99", "client p50", "p99", "longer"]]
    for row in rows[:_ROWS]:
        longer = "-" if row.longer is None else f"{row.longer.median * 1e3:+.3g}"
        pairs = [*_pair(row.seconds), *_pair(row.latency)]
        table.append([row.name, f"{row.requests:,}", f"{row.errors:,}", *pairs, longer])
    if all(row.longer is None for row in rows):
        table = [line[:-1] for line in table]
    _print(f"{title} (ms)", table, out)
    if len(rows) > _ROWS:
        out.write(f"  {len(rows) - _ROWS:,} more\n")


def _slowest(rows: Sequence[SlowOperation], out: TextIO) -> None:
    if not rows:
        return
    out.write("\nSlowest operations\n")
    _paragraphs([SLOWEST], out)
    for row in rows[:_SLOWEST]:
        parts = (("to proxy", row.client), ("proxy", row.proxy_own), ("slowest server", row.backend))
        told = [f"{name} {seconds(value)}" for name, value in parts]
        who = [each for each in (row.device, row.process) if each]
        if row.extra:
            told.append(_count(row.extra, "more server"))
        text = f"{row.operation} {seconds(row.latency)}: {', '.join(told)}"
        text += f" ({', '.join(who)})" if who else ""
        text += f"; by {row.proxy}" if row.proxy else ""
        text += f"; with {listed(row.named)}, named above" if row.named else ""
        _paragraphs([f"{text}; {row.trans_id}" if row.trans_id else text], out)


def _errors(title: str, errors: Sequence[tuple[str, str, int]], out: TextIO) -> None:
    if errors:
        _print(title, [[kind, where or "-", f"{count:,}"] for kind, where, count in errors[:_ROWS]], out)


def _print(title: str, table: Sequence[Sequence[str]], out: TextIO) -> None:
    """Write a table that fits a terminal: names that leave no room for it have a line of their own."""
    widths = [max(len(line[place]) for line in table) for place in range(len(table[0]))]
    numbers = sum(widths[1:]) + 2 * len(widths)
    widths[0] = min(widths[0], max(_WIDTH - numbers, _LEAST_NAME))
    out.write(f"\n{title}\n")
    for name, *cells in table:
        if len(name) > widths[0]:
            out.write(f"  {name}\n")
            name = ""  # noqa: PLW2901 - it is written
        words = [word.rjust(width) for word, width in zip(cells, widths[1:], strict=True)]
        out.write(f"  {'  '.join((name.ljust(widths[0]), *words)).rstrip()}\n")
