"""Tables of a run: operations and classes, workers, storage URLs, errors, slowest operations, parameters."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from ssbench.document import Cell, Column, Detail, Element, Lines, Note, Table, Tone, columns_of
from ssbench.document.columns import plural
from ssbench.figures import FIGURES
from ssbench.figures.units import megabytes, milliseconds, rate, share
from ssbench.operations import OPERATIONS
from ssbench.reports import steps
from ssbench.reports.figures import bounded, object_path, utc
from ssbench.reports.verdict import beside
from ssbench.results import NO_WORKER
from ssbench.statistics import Figures, Interval, Line, RunStatistics, Slowest
from ssbench.statistics.censored import Censored
from ssbench.statistics.figures import rates
from ssbench.statistics.parts import Parts
from ssbench.verdict.asked import loads_by_group

#: Characters of the scenario file beyond this are cut off: the page stays small whatever the run was.
_MOST_TEXT = 20_000

_LATENCIES = ("p50 ms", "p95 ms", "p99 ms", "p99.9 ms", "max ms")
_FIGURES = ("ops", "ops/s", "MB/s", "errors", *_LATENCIES)


def operations(statistics: RunStatistics) -> Iterator[Element]:
    """Yield a table with a row for each operation, one by size class where there are several, and notes."""
    sections = (*statistics.sections[1:], statistics.total)
    figures = _of_lines()
    names = [each.operation.name.upper() if each.operation else "ALL" for each in sections]
    rows = [
        (name, *_of_line(section.lines[0], statistics)) for name, section in zip(names, sections, strict=True)
    ]
    yield Table([Column("operation", is_number=False), *figures], rows, has_sum=True)
    classes = [
        (name, line.size_class or "", *_of_line(line, statistics))
        for name, section in zip(names, sections, strict=True)
        if len(section.lines) > 2 and section.operation
        for line in section.lines[1:]
    ]
    heads = [*columns_of("operation", "size class", texts=2), *figures]
    yield Table(heads, classes, keys=2, title="By size class", detail=Detail.VERBOSE)
    of = "are those of the last byte, of successes"
    if statistics.delivery is not None:
        of = "count from when operations were due, of successes"
        if statistics.not_begun:
            of += " and of those that never began (\u2265: at least, as these still waited at the end)"
    held_up = statistics.total.held_up.count
    left_out = (
        f" The latency of {plural(held_up, 'operation')} is left out, because a worker itself stalled."
        if held_up
        else ""
    )
    yield Note(
        f"Latencies {of}. A dash stands where fewer than ten"
        " latencies lie beyond a percentile, or where a run was too short for an interval."
        f"{left_out}"
    )
    yield steps.table(statistics)
    yield _parts(statistics)


def _of_lines() -> list[Column]:
    """Return the columns of what :func:`_of_line` yields."""
    return [
        *columns_of("ops", "%", "errors", "ops/s", texts=0),
        Column("95 % interval", detail=Detail.PAGE),
        Column("MB/s"),
        *(Column(head, short=head.removesuffix(" ms")) for head in _LATENCIES),
    ]


def _of_line(line: Line, statistics: RunStatistics) -> Iterator[str | Cell]:
    everything = statistics.total.count + statistics.total.failed
    yield f"{line.count:,}"
    yield share(line.count + line.failed, everything).removesuffix(" %")
    yield _errors(line.failed)
    yield rate(line.requests_per_second)
    yield _interval(line.rate_interval)
    yield FIGURES["mb_per_s"].text(line, statistics)
    yield from _percentiles(line.latency)


def _interval(interval: Interval | None) -> str:
    return "-" if interval is None else f"{rate(max(0.0, interval.low))} to {rate(interval.high)}"


def _parts(statistics: RunStatistics) -> Table:
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
    return Table(columns_of(*heads, "sent again", "found nothing"), rows, detail=Detail.PAGE)


def workers(statistics: RunStatistics) -> Iterator[Table]:
    """Yield a table with a row for each worker, and one of when the load generator stalled."""
    facts = {each.worker_id: each for each in statistics.fleet}
    rows: list[Sequence[str | Cell]] = []
    for worker_id, figures in _by(statistics, "worker"):
        fact = facts.get(worker_id)
        rows.append(
            [
                "unknown" if worker_id == NO_WORKER else str(worker_id),
                fact.host if fact else "",
                *_figures(statistics, figures),
                _cpu(fact.cpu_share if fact else None),
                *((milliseconds(fact.lag_p99), milliseconds(fact.lag_max)) if fact else ("-", "-")),
            ]
        )
    seen = {worker_id for worker_id, _ in _by(statistics, "worker")}
    rows += [
        [
            str(each.worker_id),
            each.host,
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
        rows.append(["master", statistics.run.host, *("" for _ in _FIGURES), *own])
    heads = ("worker", "host", *_FIGURES, "CPU of a core", "lag p99 ms", "lag max ms")
    if rows:
        yield Table(columns_of(*heads, texts=2), rows)
        yield _gaps(statistics)


def _cpu(share_: float | None) -> str:
    return "-" if share_ is None else f"{share_:.0%}"


def _gaps(statistics: RunStatistics) -> Table:
    """Return when the load generator itself stalled; none where it did not."""
    rows = [
        [
            "master" if gap.worker_id is None else str(gap.worker_id),
            f"{gap.start - (statistics.start or 0.0):.3f}",
            f"{gap.seconds:.3f}",
        ]
        for gap in statistics.generator.gaps
    ]
    return Table(columns_of("stalled: worker", "at s", "for s"), rows)


def stages(statistics: RunStatistics) -> Table:
    """Return a row for each stage; none of a run without stages."""
    rows = []
    for stage in statistics.stages:
        total, course = stage.numbers.total, stage.numbers.course
        rows.append(
            [
                stage.name,
                str(stage.load),
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
    return Table(columns_of(*heads, texts=2), rows)


def storage_urls(statistics: RunStatistics) -> Iterator[Table]:
    """Yield a table with a row for each storage URL; none where it is not known of any operation."""
    urls = statistics.run.storage_urls
    found = _by(statistics, "storage_url")
    if not any(0 <= place < len(urls) for place, _ in found):
        return
    rows = [
        [
            urls[place] if 0 <= place < len(urls) else "unknown",
            *_figures(statistics, figures),
        ]
        for place, figures in found
    ]
    yield Table(columns_of("storage URL", *_FIGURES), rows)


def sides(statistics: RunStatistics) -> Iterator[Element]:
    """Yield a table with a row for each side and operation; none of a run without two sides."""
    names, groups = statistics.run.sides, statistics.groups
    if not names or "group" not in groups.keys:
        return
    rows = [
        [
            operation.name.upper() if operation else str(code),
            names[side] if side < len(names) else "unknown",
            *_figures(statistics, figures),
        ]
        for (code, side), figures in groups.by("operation", "group").items()
        for operation in (OPERATIONS.get(code),)
    ]
    yield Table(columns_of("operation", "side", *_FIGURES, texts=2), rows, keys=2)
    yield Note("compare with this stat file alone says whether the sides differ.")


def by_group(statistics: RunStatistics) -> Iterator[Element]:
    """Yield what each group of users was asked for beside what it delivered, and a row for each operation."""
    asked = [
        (each.group, "; ".join(beside(each.asked, each.delivered))) for each in loads_by_group(statistics)
    ]
    yield Table(columns_of("group", "delivered of what was asked for", texts=2), asked)
    rows = [
        (
            group.name,
            section.operation.name.upper() if section.operation else "ALL",
            *_of_line(section.lines[0], group.numbers),
        )
        for group in statistics.by_group
        for section in (*group.numbers.sections[1:], group.numbers.total)
    ]
    yield Table([*columns_of("group", "operation", texts=2), *_of_lines()], rows, keys=2)


def errors(statistics: RunStatistics) -> Iterator[Element]:
    """Yield the causes of errors, of retries, and operations that could not be sent."""
    if statistics.errors:
        total = statistics.total.count + statistics.total.failed
        rows: list[Sequence[str | Cell]] = []
        for name, cause in statistics.errors.items():
            of = [
                f"{operation.name.upper()} {count:,}"
                for code, count in sorted(cause.operations.items())
                if (operation := OPERATIONS.get(code))
            ]
            statuses = [str(status) for status in sorted(cause.statuses) if status > 0]
            rows.append(
                [
                    name,
                    ", ".join(of),
                    ", ".join(statuses[:5]),
                    _code(cause.trans_id),
                    f"{cause.count:,}",
                    share(cause.count, total).removesuffix(" %"),
                    milliseconds(cause.times.supported_percentile(50)),
                    milliseconds(cause.times.maximum),
                ]
            )
        heads = ("cause", "operations", "HTTP status", "first transaction id", "errors", "% of all")
        yield Table(columns_of(*heads, "ms to fail: median", "max", texts=4), rows)
    if statistics.retries:
        retries = [(name, f"{count:,}") for name, count in statistics.retries.items()]
        yield Table(columns_of("cause of retries", "retries"), retries)
    if statistics.not_sendable:
        unsent = [(each.name.upper(), name, f"{n:,}") for each, name, n in statistics.not_sendable]
        yield Table(columns_of("no object for", "size class", "not sent", texts=2), unsent)


def slowest(statistics: RunStatistics) -> Table:
    """Return the slowest operations, with transaction ids to copy."""
    rows = [_slow(statistics, each) for each in statistics.slowest]
    columns = columns_of("operation", "ms", "at s", "first byte", "bytes", "retries", "worker")
    return Table([*columns, *columns_of("object", "transaction id", "storage URL", texts=3)], rows, keys=1)


def _slow(statistics: RunStatistics, slow: Slowest) -> list[str | Cell]:
    urls = statistics.run.storage_urls
    operation = OPERATIONS.get(slow.operation)
    where = urls[slow.storage_url] if 0 <= slow.storage_url < len(urls) else ""
    begun = slow.completed - slow.latency - (statistics.start or 0.0)
    return [
        operation.name.upper() if operation else str(slow.operation),
        milliseconds(slow.latency),
        f"{begun:.3f}",
        milliseconds(slow.first_byte),
        f"{slow.size:,}" if slow.size >= 0 else "-",
        str(slow.retries),
        "-" if slow.worker == NO_WORKER else str(slow.worker),
        object_path(statistics.run, slow),
        _code(slow.trans_id),
        where,
    ]


def _code(text: str | None) -> Cell:
    return Cell(text or "", is_code=True)


def parameters(statistics: RunStatistics) -> Iterator[Element]:
    """Yield all that is known of how the run was done."""
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
        ("popularity", scenario.popularity),
        ("reuse", scenario.reuse),
        ("bodies", scenario.body),
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
    rows = [[name, str(value)] for name, value in known if value is not None and value != ""]
    classes = [
        [
            each.name if each.shape is None else f"{each.name} ({each.shape})",
            f"{each.size_min:,}",
            f"{each.size_max:,}",
            f"{each.initial_files:,}",
            ", ".join(f"{name} {weight:g}" for name, weight in each.weights.items() if weight),
        ]
        for each in scenario.size_classes
    ]
    heads = ("size class", "smallest (bytes)", "largest", "initial objects", "weights")
    yield Table(columns_of("parameter", "value", texts=2), rows)
    yield Table(columns_of(*heads), classes)
    if scenario.data:
        yield _file(scenario.data)


def _file(data: object) -> Lines:
    text = json.dumps(data, indent=2, ensure_ascii=False, default=str)
    if len(text) > _MOST_TEXT:
        text = text[:_MOST_TEXT] + "\n..."
    return Lines(text.split("\n"), "The scenario file")


def _by(statistics: RunStatistics, key: str) -> list[tuple[int, Figures]]:
    groups = statistics.groups
    return [(value, each) for (value,), each in groups.by(key).items()] if key in groups.keys else []


def _figures(statistics: RunStatistics, figures: Figures) -> Iterator[str | Cell]:
    operations_, moved = rates(figures, statistics.course.window if statistics.course else None)
    yield f"{figures.count:,}"
    yield rate(operations_)
    yield megabytes(moved if figures.moved else None)
    yield _errors(figures.failed)
    yield from _percentiles(figures.latency)


def _percentiles(latencies: Censored) -> Iterator[str]:
    for rank in (50, 95, 99, 99.9, 100):
        yield bounded(latencies, rank)


def _errors(number: int) -> str | Cell:
    return Cell(f"{number:,}", Tone.BAD) if number else "0"
