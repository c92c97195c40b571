"""The report of a sweep or of a search for the highest load: a row for each step, in several formats."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from ssbench.capacity.knee import Knee
from ssbench.capacity.objective import Finding
from ssbench.capacity.search import Answer
from ssbench.capacity.steps import Step
from ssbench.capacity.variables import Variable
from ssbench.figures import MIN_BEYOND
from ssbench.figures.units import megabytes, milliseconds, rate
from ssbench.printable import printable
from ssbench.reports.columns import WIDTH, bars, paragraph, width
from ssbench.reports.verdict import Tone

_MEGABYTE = 1e6

#: Between two columns.
_GAP = "  "


@dataclass(frozen=True, slots=True)
class Capacity:
    """What was found.

    ``words`` say of each step what it was judged by, and ``findings`` the judgment of each condition, none
    where the step was not judged; both are empty in a sweep. ``conclusion`` is the result of all steps,
    ``notes`` are further remarks. ``knee`` is that of a sweep, where there were enough steps, ``answer`` that
    of a search.
    """

    title: str
    variable: Variable
    steps: tuple[Step, ...]
    words: tuple[str, ...]
    conclusion: str
    tone: Tone
    notes: tuple[str, ...] = ()
    findings: tuple[tuple[Finding, ...], ...] = ()
    knee: Knee | None = None
    answer: Answer | None = None


HEADS = ("s", "ops/s", "95 %", "MB/s", "p50 ms", "p99 ms", "errors", "flight", "CPU")


def cells(step: Step) -> list[str]:
    """Return what a row says of a step, after its value; the order is that of :data:`HEADS`."""
    interval = step.interval
    return [
        f"{step.seconds:.0f}",
        rate(step.rate),
        f"{rate(max(0.0, interval.low))}-{rate(interval.high)}" if interval else "-",
        megabytes(step.moved),
        *(milliseconds(seconds) for seconds in _percentiles(step)),
        f"{step.failed:,}",
        rate(step.in_flight),
        "-" if step.generator is None else f"{step.generator:.0%}{' !' if step.generator_limited else ''}",
    ]


def _percentiles(step: Step) -> tuple[float, float]:
    """Return p50 and p99, NaN where too few operations support them."""
    known = step.supported or 0
    return (step.p50 if known >= 50 else math.nan, step.p99 if known >= 99 else math.nan)


def heads(found: Capacity) -> list[str]:
    """Return the heads of the columns: the figures that are judged come after the value."""
    judged = next(filter(None, found.findings), ())
    return [found.variable.head, *(each.condition.subject for each in judged), *HEADS]


def rows(found: Capacity) -> list[list[str]]:
    """Return the cells of each step, below :func:`heads`."""
    most = max(map(len, found.findings), default=0)
    findings = found.findings or ((),) * len(found.steps)
    return [
        [f"{step.value:g}", *(map(_judged, each) if each else ["-"] * most), *cells(step)]
        for step, each in zip(found.steps, findings, strict=True)
    ]


def _judged(finding: Finding) -> str:
    return "-" if finding.value is None else finding.condition.spell_measured(finding.value)


def text(found: Capacity, encoding: str = "utf-8") -> str:
    """Return the report as text, in lines that fit a terminal."""
    lines = ["", *paragraph(found.title), "", *_table(found)]
    if len(found.steps) > 1:
        values = sorted({step.value for step in found.steps})
        shown = bars((_mean_rate(found, value) for value in values), encoding)
        lines += ["", *paragraph(f"ops/s at {', '.join(f'{value:g}' for value in values)}: {shown}")]
    lines += ["", *(part for line in _legend(found) for part in paragraph(line)), ""]
    if any(found.words):
        for step, words in zip(found.steps, found.words, strict=True):
            lines += paragraph(f"{found.variable.words(step.value)}, {step.seconds:.0f} s: {words}")
        lines.append("")
    for sentence in (*found.notes, found.conclusion):
        lines += paragraph(sentence)
    plain = "".join(printable(line).rstrip() + "\n" for line in lines)
    return plain.encode(encoding, "replace").decode(encoding)


def _mean_rate(found: Capacity, value: float) -> float:
    """Return the mean rate of all steps with a value."""
    rates = [step.rate for step in found.steps if step.value == value and math.isfinite(step.rate)]
    return sum(rates) / len(rates) if rates else 0.0


def _legend(found: Capacity) -> Iterator[str]:
    since = ", from when they were due" if found.variable is Variable.RATE else ""
    few = f"- where fewer than {MIN_BEYOND} lie beyond"
    yield "s: seconds of the step; 95 %: the interval of ops/s"
    yield f"p50, p99: of all operations{since}; {few}"
    users = "" if found.variable is Variable.RATE else ", to be compared with users"
    yield f"flight: operations in flight, ops/s x mean latency (Little's law){users}"
    yield "CPU: of its core, the busiest worker; ! where the generator was the limit"


def _table(found: Capacity) -> Iterator[str]:
    if not found.steps:
        yield "No step was completed."
        return
    value, *columns = map(_aligned, zip(heads(found), *rows(found), strict=True))
    judged = len(columns) - len(HEADS)
    parts = [columns] if _fit(value, columns) else [columns[:judged], columns[judged:]]
    for place, block in enumerate(block for part in parts for block in _folded(value, part)):
        if place:
            yield ""
        yield from (_GAP.join(row) for row in zip(value, *block, strict=True))


def _aligned(column: Sequence[str]) -> list[str]:
    """Return the cells of a column with blanks before them."""
    most = max(map(width, column))
    return [" " * (most - width(cell)) + cell for cell in column]


def _folded(value: Sequence[str], columns: Iterable[Sequence[str]]) -> Iterator[list[Sequence[str]]]:
    """Yield columns in blocks that fit a terminal beside the values."""
    block: list[Sequence[str]] = []
    for column in columns:
        if block and not _fit(value, [*block, column]):
            yield block
            block = []
        block.append(column)
    if block:
        yield block


def _fit(value: Sequence[str], columns: Iterable[Sequence[str]]) -> bool:
    return sum(len(_GAP) + width(column[0]) for column in columns) + width(value[0]) <= WIDTH


def _records(found: Capacity) -> Iterator[dict[str, object]]:
    """Yield a step as plain data, with None for what is not known."""
    for step, words in zip(found.steps, found.words or ("",) * len(found.steps), strict=True):
        p50, p99 = _percentiles(step)
        low, high = (step.interval.low, step.interval.high) if step.interval else (None, None)
        record = {
            found.variable.value: step.value,
            "seconds": step.seconds,
            "users": step.users,
            "operations_per_second": step.rate,
            "operations_per_second_low": low,
            "operations_per_second_high": high,
            "bytes_per_second": step.moved,
            "mean_seconds": step.mean,
            "p50_seconds": p50,
            "p99_seconds": p99,
            "percentile_supported": step.supported,
            "succeeded": step.count,
            "failed": step.failed,
            "in_flight": step.in_flight,
            "worker_cpu_share": step.generator,
            "generator_full": step.generator_full,
            "generator_limits": "; ".join(step.limits) or None,
            "ended_early": step.ended_early,
            "judged_by": words or None,
            "stat_file": step.file,
        }
        yield _finite(record)


def _finite(record: Mapping[str, object]) -> dict[str, object]:
    """Return a record with None for numbers that JSON does not have."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in record.items()
    }


def _plain(record: Knee | Answer | None) -> dict[str, object] | None:
    return None if record is None else _finite(asdict(record))


def as_json(found: Capacity, _encoding: str = "utf-8") -> str:
    """Return the report as JSON."""
    whole: Mapping[str, object] = {
        "title": found.title,
        "varied": found.variable.value,
        "conclusion": found.conclusion,
        "notes": found.notes,
        "knee": _plain(found.knee),
        "answer": _plain(found.answer),
        "steps": list(_records(found)),
    }
    return json.dumps(whole, indent=2) + "\n"


def as_csv(found: Capacity, _encoding: str = "utf-8") -> str:
    """Return the steps as CSV, a line each after the names of the columns; empty where nothing is known."""
    out = io.StringIO()
    records = list(_records(found))
    writer = csv.DictWriter(out, list(records[0]) if records else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue()


def page(found: Capacity, _encoding: str = "utf-8") -> str:
    """Return the report as a page with charts; needs Bokeh."""
    # Only here: Bokeh takes seconds to import, and need not be installed.
    import numpy as np  # noqa: PLC0415

    from ssbench.reports import html_page, html_tables  # noqa: PLC0415
    from ssbench.reports.html_charts import COLOURS, GREY, RED, Chart, Curve  # noqa: PLC0415

    steps: Sequence[Step] = sorted(found.steps, key=lambda step: step.value)
    x = np.array([step.value for step in steps], np.float64)

    def curve(name: str, values: list[float], colour: str, dash: str = "solid") -> Curve:
        return Curve(name, x, np.array(values, np.float64), colour, width=2.0, dash=dash, pointed=True)

    unit = found.variable.unit
    bounds = [step.interval for step in steps]
    rates = [
        curve("ops/s", [step.rate for step in steps], COLOURS[0]),
        curve("95 % from", [each.low if each else math.nan for each in bounds], GREY, "dotted"),
        curve("95 % to", [each.high if each else math.nan for each in bounds], GREY, "dotted"),
    ]
    latencies = [
        curve("p50", [1000 * _percentiles(step)[0] for step in steps], COLOURS[1]),
        curve("p99", [1000 * _percentiles(step)[1] for step in steps], RED, "dashed"),
    ]
    flight = [
        curve("ops/s x mean latency", [step.in_flight for step in steps], COLOURS[2]),
        curve("users", [float(step.users) for step in steps], GREY, "dotted"),
    ]
    charts = [
        Chart("Rate", "ops/s", rates, axis=unit),
        Chart(
            "Throughput", "MB/s", [curve("MB/s", [s.moved / _MEGABYTE for s in steps], COLOURS[3])], axis=unit
        ),
        Chart("Latency", "ms", latencies, axis=unit, digits=2),
        Chart(
            "Latency against rate",
            "ms",
            [replace(each, x=np.array([step.rate for step in steps], np.float64)) for each in latencies],
            axis="ops/s",
            digits=2,
            note=f"Along each line: {', '.join(f'{step.value:g}' for step in steps)} {unit}.",
        ),
        Chart("Little's law: operations in flight", "", flight, axis=unit),
    ]
    names, lines = heads(found), [[*map(html_page.escape, row)] for row in rows(found)]
    if any(found.words):
        names.append("judged by")
        for line, words in zip(lines, found.words, strict=True):
            line.append(f"<div class=long>{html_page.escape(words)}</div>")
    names.append("stat file")
    for line, step in zip(lines, found.steps, strict=True):
        line.append(html_page.escape(step.file))
    table = html_tables.table(names, lines, texts=0)
    table += "".join(f"<p class=note>{html_page.escape(line)}</p>" for line in _legend(found))
    parts = [html_page.Part("Steps", charts if len(steps) > 1 else (), table)]
    return html_page.page(found.title, found.tone.value, found.conclusion, found.notes, "", parts)
