"""What a run consists of, with the figures of each: several accounts, several addresses, and steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from ssbench.document.columns import keep_unbroken
from ssbench.document.elements import Column, Detail, Element, Note, Table, make_columns
from ssbench.document.units import format_count, format_latency, format_milliseconds
from ssbench.reports import run_tables
from ssbench.reports.key_figures import section_name
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.members import MemberCounts
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.sections import FiguresSection

#: Of more than these a table has the slowest and the fastest.
_MAX_MEMBER_ROWS = 12
_MEMBERS_AT_ENDS = 5

_STEP_RANKS = (50.0, 95.0, 99.0)


def make_account_elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield what there is to say of the accounts; nothing of a run with one."""
    return _member_elements("account", statistics, statistics.accounts, statistics.run.accounts)


def make_address_elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield what there is to say of the addresses of hosts; nothing where each has one."""
    return _member_elements("address", statistics, statistics.addresses, statistics.address_names)


def _member_elements(
    what: str, statistics: RunStatistics, found: Sequence[MemberCounts], names: Sequence[str]
) -> Iterator[Element]:
    if not found:
        return
    ordered = sorted(found, key=_member_median, reverse=True)
    found = [each for each in found if each.number >= 0] or found  # those that are known
    counts = [each.figures.count for each in found]
    texts = [f"{min(counts):,} to {max(counts):,} successes each"]
    known = [each for each in ordered if each in found and _member_median(each) >= 0]
    if known:
        slow, fast = known[0], known[-1]
        texts.append(
            f"median {format_latency(_member_median(fast))} to {format_latency(_member_median(slow))} (slowest"
            f" {_member_name(what, slow, names)})"
        )
    if failing := [each for each in found if each.figures.failed]:
        worst = max(failing, key=lambda each: each.figures.failed)
        texts.append(
            f"errors in {len(failing):,}, {worst.figures.failed:,} of them in {_member_name(what, worst, names)}"
        )
    number = f"{len(found):,} {what}{'es' if what == 'address' else 's'}" if len(found) > 1 else f"1 {what}"
    yield Note(f"{number}: {'; '.join(map(keep_unbroken, texts))}")
    shown, title = ordered, ""
    if len(ordered) > _MAX_MEMBER_ROWS:
        shown = [*ordered[:_MEMBERS_AT_ENDS], *ordered[-_MEMBERS_AT_ENDS:]]
        title = f"The {_MEMBERS_AT_ENDS} slowest and the {_MEMBERS_AT_ENDS} fastest by median, of {len(ordered):,}"
    causes = [Column("errors by cause", is_number=False)] if any(each.errors for each in found) else []
    yield Table(
        [*make_columns(what), *run_tables.make_figure_columns(), *causes],
        [
            [
                _member_name(what, each, names),
                *run_tables.make_figure_cells(statistics, each.figures),
                *[_member_errors(each)] * len(causes),
            ]
            for each in shown
        ],
        title=title,
        detail=Detail.VERBOSE,
    )


def _member_median(member: MemberCounts) -> float:
    """Return the median latency of a member in seconds; -1 where there is none."""
    found = member.figures.latency.supported_percentile(50)
    return -1.0 if found is None else found


def _member_name(what: str, member: MemberCounts, names: Sequence[str]) -> str:
    number = member.number
    if 0 <= number < len(names):
        return names[number]
    return "unknown" if number < 0 else f"{what} {number + 1}"


def _member_errors(member: MemberCounts) -> str:
    return ", ".join(f"{times:,} x {cause}" for cause, times in islice(member.errors.items(), 3))


def latencies_by_step(section: FiguresSection, statistics: RunStatistics) -> dict[str, Latencies]:
    """Return what each step of an operation took, by its name; nothing where it has none."""
    if section.operation is None:
        return {}
    names = statistics.run.scenario.steps_of(section.operation)
    return dict(zip(names, section.steps, strict=False))


def make_step_notes(statistics: RunStatistics) -> Iterator[Note]:
    """Yield a note for each operation that has steps: their means, and that of the whole."""
    for section in statistics.sections[1:]:
        if section.operation is not None and (found := latencies_by_step(section, statistics)):
            means = [f"{name} {_mean_of(each)}" for name, each in found.items()]
            whole = _mean_of(section.last_byte)
            yield Note(f"{section_name(section)} by step, mean ms: {', '.join(means)}; in all {whole}")


def make_step_table(statistics: RunStatistics) -> Table:
    """Return a table with a row for each step, and one for the whole; without rows where there are none."""
    rows = []
    for section in statistics.sections[1:]:
        if section.operation is not None and (found := latencies_by_step(section, statistics)):
            for name, each in {**found, "in all": section.last_byte}.items():
                ranks = [each.percentile(rank) if each.supports(rank) else None for rank in _STEP_RANKS]
                ends = (format_milliseconds(value) for value in (*ranks, each.maximum))
                rows.append([section_name(section), name, format_count(each.count), _mean_of(each), *ends])
    heads = make_columns("ops", "mean ms", "p50 ms", "p95 ms", "p99 ms", "max ms", texts=0)
    texts = [Column("operation", is_number=False), Column("step", is_number=False)]
    return Table([*texts, *heads], rows, title="By step", keys=2)


def _mean_of(latencies: Latencies) -> str:
    return format_milliseconds(latencies.mean)
