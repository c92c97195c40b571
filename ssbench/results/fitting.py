"""Whether the runs of several masters make one run, and what is remarkable where they do.

They fit if they did the same, at the same time by clocks that agree, and none of them is there twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from ssbench.base.errors import UsageError
from ssbench.document.units import format_moment, format_seconds
from ssbench.results.description import (
    OBJECT_TAG_OPTION,
    PART_OPTION,
    STORE_CLOCK_OPTION,
    RunDescription,
    RunSummary,
)
from ssbench.scenario import portions

#: Options that may be others with each master: they name a run, or say how its master was started.
OWN_OPTIONS = {
    OBJECT_TAG_OPTION,
    PART_OPTION,
    STORE_CLOCK_OPTION,
    "label",
    "local_swift",
    "local_workers",
    "seed_of_parts",
    "sealed",
    "start_at",
    "trans_id_extra",
}

#: Runs of which all sent for less than this share of the time in which one of them did are no run together,
#: and those of less than that are remarkable.
_MIN_COMMON_SHARE = 0.5
_GOOD_COMMON_SHARE = 0.95

#: Clocks that are further apart (seconds) put results into wrong seconds, and stalls where there were none.
_MAX_CLOCK_DIFFERENCE = 0.5


@dataclass(frozen=True, slots=True)
class MasterRun:
    """What is known of the run of one master, from its stat file."""

    path: Path
    run: RunDescription
    summary: RunSummary
    results: int
    results_lost: int = 0

    @property
    def name(self) -> str:
        """What warnings call its master."""
        part = self.run.options.get(PART_OPTION)
        return f"{self.run.host or self.path.name}{f' (part {part})' if part else ''}"

    @property
    def window(self) -> tuple[float, float]:
        """When it began to send operations, and when it no longer did; seconds since 1970."""
        summary = self.summary
        stages = [each for each in (summary.stages, *(own.stages for own in summary.groups)) if each]
        begins = min((each[0].begins for each in stages), default=self.run.started or 0.0)
        return begins, summary.sent_until or summary.ended


def check_masters(masters: Sequence[MasterRun]) -> list[str]:
    """Return warnings; raises UsageError, which says what does not fit."""
    first = masters[0]
    for one, other in combinations(masters, 2):
        if set(one.run.run_ids) & set(other.run.run_ids) or _same_file(one.path, other.path):
            raise UsageError(f"{one.path} and {other.path} are of the same run")
    for other in masters[1:]:
        if found := portions.find_scenario_difference(first.run.scenario, other.run.scenario):
            raise UsageError(f"{_name_both(first, other)}: their scenarios differ in {found}")
        for name in ("sides", "side_policies"):
            if getattr(first.run, name) != getattr(other.run, name):
                raise UsageError(f"{_name_both(first, other)}: their sides differ")
        if first.run.accounts != other.run.accounts:
            raise UsageError(f"{_name_both(first, other)}: their accounts differ")
        _check_options(first, other)
    warnings = [*_check_parts(masters), *_check_clocks(masters), *_check_windows(masters)]
    versions = sorted({each.run.version for each in masters})
    if len(versions) > 1:
        warnings.append(f"the masters are of different versions of ssbench: {', '.join(versions)}")
    if sum(each.summary.cluster is not None for each in masters) > 1:
        warnings.append("several masters looked at the cluster; what the first of them saw is shown")
    return warnings


def _name_both(one: MasterRun, other: MasterRun) -> str:
    return f"{one.path} and {other.path} do not make one run"


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _check_options(first: MasterRun, other: MasterRun) -> None:
    ours, theirs = first.run.options, other.run.options
    for name in dict.fromkeys((*ours, *theirs)):
        if name not in OWN_OPTIONS and ours.get(name) != theirs.get(name):
            raise UsageError(
                f"{_name_both(first, other)}: {name} is {ours.get(name)!r} in one and {theirs.get(name)!r}"
                " in the other"
            )


def _check_parts(masters: Sequence[MasterRun]) -> Iterator[str]:
    """Check that parts (``--part 1/4``) are of the same number and differ; yield which are missing."""
    given = [(own, part) for own in masters for part in _read_part(own.run)]
    found: dict[object, MasterRun] = {}
    for own, part in given:
        if part is None:
            continue
        if part in found:
            raise UsageError(f"{found[part].path} and {own.path} are both part {part}")
        found[part] = own
    if not found:
        return
    if len(found) < len(given):
        lacking = next(own for own, part in given if part is None)
        raise UsageError(
            f"{_name_both(next(iter(found.values())), lacking)}: only one of them is a part (--part)"
        )
    try:
        known = [portions.parse_master_share(str(part)) for part in found]
    except ValueError as error:
        raise UsageError(f"{masters[0].path}: {error}") from None
    numbers = {each.of for each in known}
    if len(numbers) > 1:
        raise UsageError(f"{', '.join(map(str, known))}: these are parts of different numbers of masters")
    missing = sorted({*range(1, known[0].of + 1)} - {each.number for each in known})
    if missing:
        listed = ", ".join(f"{number}/{known[0].of}" for number in missing)
        yield f"not all parts are there: {listed} {'is' if len(missing) == 1 else 'are'} missing"


def _read_part(run: RunDescription) -> list[object]:
    return [each.options.get(PART_OPTION) for each in run.masters or (run,)]


def _check_clocks(masters: Sequence[MasterRun]) -> Iterator[str]:
    """Check that the masters' clocks agree, by that of the store or because they are one.

    Yields what is not known.
    """
    unknown = []
    for one, other in combinations(masters, 2):
        if one.run.host and one.run.host == other.run.host:
            continue
        ours, theirs = _store_clock(one.run), _store_clock(other.run)
        if ours is None or theirs is None:
            unknown.append(f"{one.name} and {other.name}")
            continue
        apart = max(ours[0] - theirs[1], theirs[0] - ours[1], 0.0)
        if apart > _MAX_CLOCK_DIFFERENCE:
            raise UsageError(
                f"{_name_both(one, other)}: the clocks of {one.name} and {other.name} are at least"
                f" {format_moment(apart)} s apart, by the time that the store told both; check NTP"
            )
    if unknown:
        more = f", and {len(unknown) - 1} more pair{'s' * (len(unknown) > 2)}" if len(unknown) > 1 else ""
        yield (
            f"whether the clocks of the masters agree is not known: {unknown[0]}{more} (--start-at finds it"
            " out)"
        )


def _store_clock(run: RunDescription) -> tuple[float, float] | None:
    """Return from how much to how much is to be added to the master's clock to have that of the store."""
    match run.options.get(STORE_CLOCK_OPTION):
        case [int() | float() as least, int() | float() as most]:
            return float(least), float(most)
    return None


def _check_windows(masters: Sequence[MasterRun]) -> Iterator[str]:
    """Check that the masters sent operations at the same time; yield where they nearly did."""
    begins, ends = zip(*(each.window for each in masters), strict=True)
    whole, shared = max(ends) - min(begins), min(ends) - max(begins)
    together = shared / whole if whole > 0 else 1.0
    written = format_moment if whole >= 1 else format_seconds  # tenths would be "0 of 0 s"
    times = f"{written(max(0.0, shared))} of {written(whole)} s"
    if together < _MIN_COMMON_SHARE:
        late, early = begins.index(max(begins)), ends.index(min(ends))
        raise UsageError(
            f"{_name_both(masters[late], masters[early])}: they sent operations at the same time for only"
            f" {times} (--start-at lets them begin together)"
        )
    if together < _GOOD_COMMON_SHARE:
        yield f"the masters sent operations at the same time for only {times}"
