"""Tables of a report in HTML: operations and classes, workers, storage URLs, errors, slowest, parameters."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from ssbench.document.columns import plural
from ssbench.figures import FIGURES
from ssbench.figures.units import megabytes, milliseconds, rate, share
from ssbench.operations import OPERATIONS
from ssbench.reports.figures import bounded, object_path, utc
from ssbench.reports.html_page import escape
from ssbench.results import NO_WORKER
from ssbench.statistics import Figures, Interval, RunStatistics, Slowest
from ssbench.statistics.censored import Censored
from ssbench.statistics.figures import rates
from ssbench.statistics.parts import Parts

#: Rows of a table beyond this are only counted, and characters of the scenario file cut off: the page
#: stays small whatever the run was.
_MOST_ROWS = 200
_MOST_TEXT = 20_000
_MOST_CELL = 200
_MOST_WARNINGS = 50
_MOST_WARNING = 1000

_FIGURES = ("ops", "ops/s", "MB/s", "errors", "p50 ms", "p95 ms", "p99 ms", "p99.9 ms", "max ms")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, texts: int = 1, last: str = "") -> str:
    """Return a table; its first ``texts`` columns are texts, the others numbers. All cells are safe HTML.

    ``last`` is the class of its last row.
    """
    rows = list(rows)
    names = "".join(
        f"<th{'' if place < texts else ' class=number'}>{escape(head)}" for place, head in enumerate(heads)
    )
    lines = []
    for number, row in enumerate(rows[:_MOST_ROWS]):
        cells = "".join(
            f"<td{'' if place < texts else ' class=number'}>{cell}" for place, cell in enumerate(row)
        )
        lines.append(f"<tr{f' class={last}' if last and number == len(rows) - 1 else ''}>{cells}")
    more = len(rows) - _MOST_ROWS
    note = f"<p class=note>and {more:,} more; --json has all of them</p>" if more > 0 else ""
    body = "".join(lines)
    return f"<div class=table><table><thead><tr>{names}</thead><tbody>{body}</tbody></table></div>{note}"


def operations(statistics: RunStatistics) -> str:
    """Return a row for each operation, and for each size class where there are several."""
    rows = []
    everything = statistics.total.count + statistics.total.failed
    for section in (*statistics.sections[1:], statistics.total):
        name = section.operation.name.upper() if section.operation else "ALL"
        lines = section.lines if len(section.lines) > 2 and section.operation else section.lines[:1]
        for line in lines:
            rows.append(
                [
                    name,
                    escape(line.size_class or ""),
                    share(line.count + line.failed, everything).removesuffix(" %"),
                    f"{line.count:,}",
                    rate(line.requests_per_second),
                    _interval(line.rate_interval),
                    FIGURES["mb_per_s"].text(line, statistics),
                    _errors(line.failed),
                    *_percentiles(line.latency),
                ]
            )
    first, second, *others = _FIGURES
    heads = ("operation", "size class", "%", first, second, "95 % interval", *others)
    of = "are those of the last byte, of successes"
    if statistics.delivery is not None:
        of = "count from when operations were due, of successes"
        if statistics.not_begun:
            of += " and of those that never began (\u2265: at least, as these still waited at the end)"
    held_up = statistics.total.held_up.count
    left_out = (
        f" The latency of {plural(held_up, 'operation')} is left out, because a worker itself stood still."
        if held_up
        else ""
    )
    return table(heads, rows, texts=2, last="all") + (
        f"<p class=note>Latencies {of}. A dash stands where fewer than ten"
        " latencies lie beyond a percentile, or where a run was too short for an interval."
        f"{left_out}</p>" + _parts(statistics)
    )


def _interval(interval: Interval | None) -> str:
    return "-" if interval is None else f"{rate(max(0.0, interval.low))} to {rate(interval.high)}"


def _parts(statistics: RunStatistics) -> str:
    """Return how much of the latencies was connecting and pauses; none where nothing was."""
    rows = [
        [
            section.operation.name.upper() if section.operation else "ALL",
            *(
                cell
                for part in (section.parts.connecting, section.parts.pausing)
                for cell in (f"{part.count:,}", f"{part.seconds:.3f}", milliseconds(part.longest))
            ),
            f"{section.resent:,}",
            f"{section.parts.vanished:,}",
        ]
        for section in (*statistics.sections[1:], statistics.total)
        if section.resent or section.parts != Parts()
    ]
    heads = ("in the latencies of", "connected", "s in all", "longest ms", "paused", "s in all", "longest ms")
    return table((*heads, "sent again", "found nothing"), rows) if rows else ""


def workers(statistics: RunStatistics) -> str:
    """Return a row for each worker."""
    facts = {each.worker_id: each for each in statistics.fleet}
    rows = []
    for worker_id, figures in _by(statistics, "worker"):
        fact = facts.get(worker_id)
        rows.append(
            [
                "unknown" if worker_id == NO_WORKER else str(worker_id),
                escape(fact.host) if fact else "",
                *_figures(statistics, figures),
                _cpu(fact.cpu_share if fact else None),
                *((milliseconds(fact.lag_p99), milliseconds(fact.lag_max)) if fact else ("-", "-")),
            ]
        )
    seen = {worker_id for worker_id, _ in _by(statistics, "worker")}
    rows += [
        [
            str(each.worker_id),
            escape(each.host),
            "0",
            *("-" for _ in _FIGURES[1:]),
            _cpu(each.cpu_share),
            milliseconds(each.lag_p99),
            milliseconds(each.lag_max),
        ]
        for each in statistics.fleet
        if seen and each.worker_id not in seen
    ]
    master = statistics.generator.master
    if master is not None and rows:
        own = [_cpu(master.cpu_share), "-", milliseconds(master.lag_max)]
        rows.append(["master", escape(statistics.run.host), *("" for _ in _FIGURES), *own])
    heads = ("worker", "host", *_FIGURES, "CPU of a core", "lag p99 ms", "lag max ms")
    return table(heads, rows, texts=2) + _gaps(statistics) if rows else ""


def _cpu(share_: float | None) -> str:
    return "-" if share_ is None else f"{share_:.0%}"


def _gaps(statistics: RunStatistics) -> str:
    """Return when the load generator itself stood still; none where it did not."""
    rows = [
        [
            "master" if gap.worker_id is None else str(gap.worker_id),
            f"{gap.start - (statistics.start or 0.0):.3f}",
            f"{gap.seconds:.3f}",
        ]
        for gap in statistics.generator.gaps
    ]
    return table(("stood still: worker", "at s", "for s"), rows) if rows else ""


def stages(statistics: RunStatistics) -> str:
    """Return a row for each stage; none of a run without stages."""
    rows = []
    for stage in statistics.stages:
        total, course = stage.numbers.total, stage.numbers.course
        rows.append(
            [
                escape(stage.name[:_MOST_CELL]),
                escape(str(stage.load)),
                f"{course.window.seconds:.2f}" if course else "-",
                f"{total.count:,}",
                rate(total.requests_per_second),
                FIGURES["mb_per_s"].text(total, statistics),
                _errors(total.failed),
                *_percentiles(total.lines[0].latency),
                f"{total.due.late:,}" if stage.load.rate else "-",
                "-" if stage.numbers.not_begun is None else f"{stage.numbers.not_begun:,}",
            ]
        )
    heads = ("stage", "load", "seconds", *_FIGURES, "late", "not begun")
    return table(heads, rows, texts=2) if rows else ""


def lines(texts: Sequence[str]) -> str:
    """Return plain lines as they stand, with columns that belong together."""
    text = "\n".join(escape(each) for each in texts)
    return f"<pre>{text}</pre>" if texts else ""


def storage_urls(statistics: RunStatistics) -> str:
    """Return a row for each storage URL; none where it is not known of any operation."""
    urls = statistics.run.storage_urls
    found = _by(statistics, "storage_url")
    if not any(0 <= place < len(urls) for place, _ in found):
        return ""
    rows = [
        [
            escape(urls[place][:_MOST_CELL]) if 0 <= place < len(urls) else "unknown",
            *_figures(statistics, figures),
        ]
        for place, figures in found
    ]
    return table(("storage URL", *_FIGURES), rows)


def sides(statistics: RunStatistics) -> str:
    """Return a row for each side and operation; none of a run without two sides."""
    names, groups = statistics.run.sides, statistics.groups
    if not names or "group" not in groups.keys:
        return ""
    rows = [
        [
            operation.name.upper() if operation else str(code),
            escape(names[side][:_MOST_CELL]) if side < len(names) else "unknown",
            *_figures(statistics, figures),
        ]
        for (code, side), figures in groups.by("operation", "group").items()
        for operation in (OPERATIONS.get(code),)
    ]
    return table(("operation", "side", *_FIGURES), rows, texts=2) + (
        "<p class=note>compare with this stat file alone says whether the sides differ.</p>"
    )


def errors(statistics: RunStatistics) -> str:
    """Return the causes of errors, of retries, and operations that could not be sent."""
    parts = []
    if statistics.errors:
        total = statistics.total.count + statistics.total.failed
        rows = []
        for name, cause in statistics.errors.items():
            of = [
                f"{operation.name.upper()} {count:,}"
                for code, count in sorted(cause.operations.items())
                if (operation := OPERATIONS.get(code))
            ]
            statuses = [str(status) for status in sorted(cause.statuses) if status > 0]
            rows.append(
                [
                    escape(name[:_MOST_CELL]),
                    ", ".join(of),
                    ", ".join(statuses[:5]),
                    copied(cause.trans_id),
                    f"{cause.count:,}",
                    share(cause.count, total).removesuffix(" %"),
                    milliseconds(cause.times.supported_percentile(50)),
                    milliseconds(cause.times.maximum),
                ]
            )
        heads = ("cause", "operations", "HTTP status", "first transaction id", "errors", "% of all")
        parts.append(table((*heads, "ms to fail: median", "max"), rows, texts=4))
    if statistics.retries:
        rows = [[escape(name[:_MOST_CELL]), f"{count:,}"] for name, count in statistics.retries.items()]
        parts.append(table(("cause of retries", "retries"), rows))
    if statistics.not_sendable:
        rows = [[each.name.upper(), escape(name), f"{n:,}"] for each, name, n in statistics.not_sendable]
        parts.append(table(("no object for", "size class", "not sent"), rows, texts=2))
    return "".join(parts) or "<p>No operation failed, and none was tried again.</p>"


def slowest(statistics: RunStatistics) -> str:
    """Return the slowest operations, with transaction ids to copy."""
    rows = [_slow(statistics, each) for each in statistics.slowest]
    heads = ("operation", "object", "transaction id", "storage URL", "ms", "first byte", "at s")
    return table((*heads, "bytes", "retries", "worker"), rows, texts=4) if rows else "<p>None.</p>"


def _slow(statistics: RunStatistics, slow: Slowest) -> list[str]:
    urls = statistics.run.storage_urls
    operation = OPERATIONS.get(slow.operation)
    where = urls[slow.storage_url] if 0 <= slow.storage_url < len(urls) else ""
    begun = slow.completed - slow.latency - (statistics.start or 0.0)
    return [
        operation.name.upper() if operation else str(slow.operation),
        escape(object_path(statistics.run, slow)[:_MOST_CELL]),
        copied(slow.trans_id),
        escape(where[:_MOST_CELL]),
        milliseconds(slow.latency),
        milliseconds(slow.first_byte),
        f"{begun:.3f}",
        f"{slow.size:,}" if slow.size >= 0 else "-",
        str(slow.retries),
        "-" if slow.worker == NO_WORKER else str(slow.worker),
    ]


def copied(text: str | None) -> str:
    """Return a text with a button that copies it."""
    if not text:
        return ""
    return f"<code>{escape(text[:_MOST_CELL])}</code><button type=button class=copy>copy</button>"


def parameters(statistics: RunStatistics) -> str:
    """Return all that is known of how the run was done."""
    run, scenario = statistics.run, statistics.run.scenario
    known: list[tuple[str, object]] = [
        ("scenario", scenario.name),
        ("ssbench", run.version),
        ("master", run.host),
        ("run", run.run_id),
        ("seed", run.seed),
        ("first send", utc(statistics.start)),
        ("last completion", utc(statistics.end)),
        ("users", scenario.user_count),
        ("operations", scenario.operation_count),
        ("rate (ops/s)", scenario.rate),
        ("arrivals", scenario.arrivals if scenario.is_open else None),
        ("warm-up (s)", scenario.warmup or None),
        ("think time (s)", scenario.think_time or None),
        ("stages", "; ".join(f"{each.seconds:g} s: {each}" for each in scenario.stages)),
        ("run seconds", scenario.run_seconds),
        ("containers", scenario.container_count),
        ("container base", scenario.container_base),
        ("policy", scenario.policy),
        ("delete after (s)", scenario.delete_after),
        ("storage URLs", ", ".join(run.storage_urls)),
        *((f"--{name.replace('_', '-')}", value) for name, value in run.options.items()),
        *((name.replace("_", " "), f"{value:,.10g}") for name, value in statistics.counters.items()),
    ]
    rows = [
        [escape(name), escape(str(value)[:_MOST_CELL])]
        for name, value in known
        if value is not None and value != ""
    ]
    classes = [
        [
            escape(each.name),
            f"{each.size_min:,}",
            f"{each.size_max:,}",
            f"{each.initial_files:,}",
            escape(", ".join(f"{name} {weight:g}" for name, weight in each.weights.items() if weight)),
        ]
        for each in scenario.size_classes
    ]
    heads = ("size class", "smallest (bytes)", "largest", "initial objects", "weights")
    text = _file(scenario.data)
    return table(("parameter", "value"), rows, texts=2) + table(heads, classes) + text


def _file(data: object) -> str:
    if not data:
        return ""
    text = json.dumps(data, indent=2, ensure_ascii=False, default=str)
    if len(text) > _MOST_TEXT:
        text = text[:_MOST_TEXT] + "\n..."
    lines = "\n".join(escape(line) for line in text.split("\n"))
    return f"<details><summary>The scenario file</summary><pre>{lines}</pre></details>"


def warnings(texts: Sequence[str]) -> str:
    """Return warnings as a list; none where there are none."""
    items = [f"<li>{escape(text[:_MOST_WARNING])}" for text in texts[:_MOST_WARNINGS]]
    if len(texts) > _MOST_WARNINGS:
        items.append(f"<li>and {len(texts) - _MOST_WARNINGS:,} more")
    return f"<ul>{''.join(items)}</ul>" if items else ""


def _by(statistics: RunStatistics, key: str) -> list[tuple[int, Figures]]:
    groups = statistics.groups
    return [(value, each) for (value,), each in groups.by(key).items()] if key in groups.keys else []


def _figures(statistics: RunStatistics, figures: Figures) -> Iterator[str]:
    operations_, moved = rates(figures, statistics.course.window if statistics.course else None)
    yield f"{figures.count:,}"
    yield rate(operations_)
    yield megabytes(moved if figures.moved else None)
    yield _errors(figures.failed)
    yield from _percentiles(figures.latency)


def _percentiles(latencies: Censored) -> Iterator[str]:
    for rank in (50, 95, 99, 99.9, 100):
        yield bounded(latencies, rank)


def _errors(number: int) -> str:
    return f"<span class=bad-text>{number:,}</span>" if number else "0"
