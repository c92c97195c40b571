"""The accounts and the addresses of a run that uses several: a line on how they differ, and their figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from ssbench.document import Column, Detail, Element, Note, Table, columns_of
from ssbench.document.columns import unbroken
from ssbench.figures.units import duration
from ssbench.reports import run_tables
from ssbench.statistics import Member, RunStatistics

#: Of more than these a table has the slowest and the fastest.
_MOST = 12
_AT_ENDS = 5


def accounts(statistics: RunStatistics) -> Iterator[Element]:
    """Yield what there is to say of the accounts; nothing of a run with one."""
    return _elements("account", statistics, statistics.accounts, statistics.run.accounts)


def addresses(statistics: RunStatistics) -> Iterator[Element]:
    """Yield what there is to say of the addresses of hosts; nothing where each has one."""
    return _elements("address", statistics, statistics.addresses, statistics.address_names)


def _elements(
    what: str, statistics: RunStatistics, found: Sequence[Member], names: Sequence[str]
) -> Iterator[Element]:
    if not found:
        return
    ordered = sorted(found, key=_median, reverse=True)
    found = [each for each in found if each.number >= 0] or found  # those that are known
    counts = [each.figures.count for each in found]
    texts = [f"{min(counts):,} to {max(counts):,} successes each"]
    known = [each for each in ordered if each in found and _median(each) >= 0]
    if known:
        slow, fast = known[0], known[-1]
        texts.append(
            f"median {duration(_median(fast))} to {duration(_median(slow))} (slowest"
            f" {_name(what, slow, names)})"
        )
    if failing := [each for each in found if each.figures.failed]:
        worst = max(failing, key=lambda each: each.figures.failed)
        texts.append(
            f"errors in {len(failing):,}, {worst.figures.failed:,} of them in {_name(what, worst, names)}"
        )
    number = f"{len(found):,} {what}{'es' if what == 'address' else 's'}" if len(found) > 1 else f"1 {what}"
    yield Note(f"{number}: {'; '.join(map(unbroken, texts))}")
    shown, title = ordered, ""
    if len(ordered) > _MOST:
        shown = [*ordered[:_AT_ENDS], *ordered[-_AT_ENDS:]]
        title = f"The {_AT_ENDS} slowest and the {_AT_ENDS} fastest by median, of {len(ordered):,}"
    causes = [Column("errors by cause", is_number=False)] if any(each.errors for each in found) else []
    yield Table(
        [*columns_of(what), *run_tables.figure_columns(), *causes],
        [
            [
                _name(what, each, names),
                *run_tables.figures_of(statistics, each.figures),
                *[_errors(each)] * len(causes),
            ]
            for each in shown
        ],
        title=title,
        detail=Detail.VERBOSE,
    )


def _median(member: Member) -> float:
    """Return the median latency of a member in seconds; -1 where there is none."""
    found = member.figures.latency.supported_percentile(50)
    return -1.0 if found is None else found


def _name(what: str, member: Member, names: Sequence[str]) -> str:
    number = member.number
    if 0 <= number < len(names):
        return names[number]
    return "unknown" if number < 0 else f"{what} {number + 1}"


def _errors(member: Member) -> str:
    return ", ".join(f"{times:,} x {cause}" for cause, times in islice(member.errors.items(), 3))
