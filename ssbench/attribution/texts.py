"""An attribution in words and tables, for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TextIO

from ssbench.attribution.pictures import pictures
from ssbench.attribution.records import Attribution
from ssbench.attribution.sentences import count, listed, seconds, sentence
from ssbench.attribution.tables import Coverage, PartRow, Row, SlowOperation
from ssbench.document import View
from ssbench.document.text import section as lines_of
from ssbench.figures.units import milliseconds

#: Most rows of a table that are printed; JSON has all.
_ROWS = 20
_SLOWEST = 5

#: With more than this share of the operations incomplete, an all-clear would be false.
_FEW_INCOMPLETE = 0.01

#: Where devices take part in more than this share of the writes, two are in all of them.
_MOST_OF_WRITES = 0.5

_CLEAR = "No outlier found"

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
    for each in pictures(attribution):
        view = View(encoding=getattr(out, "encoding", None) or "utf-8")
        out.writelines(f"{line}\n" for line in ("", *lines_of(each, view)))
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


def section(title: str, texts: Iterable[str], out: TextIO) -> None:
    """Write a section of paragraphs; nothing where there are none."""
    if lines := list(texts):
        out.write(f"\n{title}\n")
        _paragraphs(lines, out)


def _paragraphs(texts: Iterable[str], out: TextIO) -> None:
    """Write each text in lines that fit a terminal."""
    for text in texts:
        lines = textwrap.wrap(
            text, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
        )
        out.writelines(f"{line}\n" for line in lines)


def answer(attribution: Attribution) -> list[str]:
    """Return the findings as sentences; never empty. What could not be compared comes last."""
    findings = sorted(attribution.findings, key=lambda finding: finding.kind == "untold")
    sentences = [sentence(finding) for finding in findings]
    coverage = attribution.coverage
    if not coverage.compared:
        return [*sentences, "Inconclusive: no operation has all its object servers' lines."]
    good = coverage.operations - coverage.failed
    if coverage.incomplete > _FEW_INCOMPLETE * good:
        sentences.append(
            f"{coverage.incomplete / good:.0%} of the operations lack a line of an object server: what is"
            " slow in a server without a log cannot be seen in its own times."
            + (f" No log is of {listed(attribution.unlogged)}." if attribution.unlogged else "")
        )
    if is_clear(attribution):
        sentences.insert(0, outcome(attribution))
        if sentences[0].startswith(_CLEAR) and attribution.in_writes > _MOST_OF_WRITES:
            sentences.append(
                f"A device takes part in {attribution.in_writes:.0%} of the writes: two that are slow in"
                " writes alone, at once, hide each other."
            )
    return [*map(_overloaded, attribution.overload[:1]), *attribution.overload[1:], *sentences]


def _overloaded(sentence: str) -> str:
    return f"{sentence}. What clients and servers took is then partly its doing: all below is doubtful."


def is_clear(attribution: Attribution) -> bool:
    """Whether nothing stands out: nobody is slow or broken, as far as could be compared."""
    return all(finding.kind == "untold" for finding in attribution.findings)


def outcome(attribution: Attribution) -> str:
    """Return the answer in few words where nothing stands out."""
    coverage = attribution.coverage
    good = coverage.operations - coverage.failed
    if coverage.incomplete > _FEW_INCOMPLETE * good:
        return "Inconclusive: no outlier was found, but logs are missing."
    if attribution.overload:
        return "Inconclusive: no outlier was found, but the load generator was overloaded."
    if attribution.detectable is None or attribution.detectable > (attribution.request or 0):
        return "Inconclusive: no outlier was found, but these are too few requests for a slow device to show."
    some = " among those that can be compared" if attribution.findings else ""
    least = attribution.detectable
    return (
        f"{_CLEAR}{some}: no proxy, node, process or device makes requests slower"
        f" ({attribution.comparisons:,} comparisons). Any device whose reads and deletes took"
        f" {seconds(least)} more ({least / (attribution.request or least):.0%} of a request) would have been"
        " found, in 9 of 10 such runs."
    )


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
    notes = [f"{count(number, noun)} {what}" for number, noun, what in counts if number]
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
            told.append(count(row.extra, "more server"))
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
