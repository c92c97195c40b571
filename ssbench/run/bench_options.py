"""How runs are carried out: frozen records with the options of a bench, and of each of its runs.

:func:`parse_start_moment` reads the time at which a run is to begin.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ssbench.base import option
from ssbench.base.errors import Undecided, UsageError
from ssbench.base.option import Option, OptionGroup, OptionScope, OptionUnit
from ssbench.base.text_values import TIME_EXAMPLES, FieldValues, format_duration, parse_seconds
from ssbench.document.units import format_given_number
from ssbench.fleet.addresses import BindAddress
from ssbench.run.trial_swift import TrialSwift
from ssbench.scenario import master_shares
from ssbench.scenario.master_shares import MasterShare
from ssbench.scenario.names import MAX_CONTAINER_NAME_BYTES, may_be_container
from ssbench.scenario.replay_source import Replay
from ssbench.scenario.value_rules import Precision, TimedCommand
from ssbench.store.request_options import RequestOptions, parse_addresses

if TYPE_CHECKING:
    from ssbench.store.stores import Credentials

#: A time of day that is further back than this is that of tomorrow.
_PAST_TOLERANCE = timedelta(hours=12)

_EXPECTED_MOMENT = (
    "expected a time such as 14:30:00, 2026-01-31T14:30:00Z or @1800000000 (seconds since 1970)"
)


def parse_start_moment(text: str, now: Callable[[], float] = time.time) -> float:
    """Return a moment in seconds since 1970; raises ValueError."""
    try:
        found = _moment_seconds(text, now)
        format_start_moment(found)  # some have no date, and a run that waits for one has to name it
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{text!r}: {_EXPECTED_MOMENT}") from None
    return found


def _moment_seconds(text: str, now: Callable[[], float]) -> float:
    if re.fullmatch(r"@[0-9]{1,12}(\.[0-9]{1,6})?", text):
        return float(text[1:])
    if re.fullmatch(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?", text):
        return _moment_of_day([int(each) for each in text.split(":")], datetime.fromtimestamp(now()))
    if "-" not in text:
        raise ValueError("no date")
    return datetime.fromisoformat(text).timestamp()


def _moment_of_day(parts: list[int], now: datetime) -> float:
    """Return a time of this day, or of the next one where it is over long ago."""
    moment = now.replace(hour=parts[0], minute=parts[1], second=sum(parts[2:]), microsecond=0)
    return (moment + timedelta(days=1) if now - moment > _PAST_TOLERANCE else moment).timestamp()


def refuse_past_moment(moment: float, now: float) -> None:
    """Raise UsageError where the moment is over."""
    if moment <= now:
        raise UsageError(
            f"--part @{format_start_moment(moment)}: that was {format_duration(now - moment)} ago"
        )


def parse_part(text: str) -> MasterShare:
    """Return what ``1/4`` or ``1/4@14:30`` says; raises ValueError."""
    portion, at, moment = text.partition("@")
    found = master_shares.parse_master_share(portion)
    return replace(found, start_at=parse_start_moment(moment)) if at else found


def format_start_moment(moment: float) -> str:
    """Return a moment as people write it, in this time zone."""
    return datetime.fromtimestamp(moment).astimezone().isoformat(sep=" ", timespec="seconds")


# -- The options of benches and runs ---------------------------------------------------------------


#: Operations that must have ended before a share is looked at: the first failure is 100 % of one operation.
MIN_ENDED_OPERATIONS = 100

#: The longest time that options take.
_MAX_SECONDS = 1e9

_COUNT_PATTERN = re.compile(r"\d{1,18}\Z", re.ASCII)
_SHARE_PATTERN = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)\s*%\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class ErrorLimit:
    """At most ``count`` failures, or at most ``share`` of the operations that ended; the other is None."""

    count: int | None = None
    share: float | None = None

    def exceeded(self, failed: int, ended: int) -> bool:
        """Return whether more have failed, of so many that have ended."""
        if self.count is not None:
            return failed > self.count
        return self.share is not None and ended >= MIN_ENDED_OPERATIONS and failed > self.share * ended

    def __str__(self) -> str:
        return f"{format_given_number(100 * (self.share or 0.0))}%" if self.count is None else str(self.count)


def parse_error_limit(text: str) -> ErrorLimit:
    """Return what ``100`` or ``0.5%`` says; raises ValueError."""
    if _COUNT_PATTERN.match(text):
        return ErrorLimit(count=int(text))
    share = _SHARE_PATTERN.match(text)
    if share is None or float(share[1]) > 100:
        raise ValueError(f"{text!r} is not a number of operations or a share of them, such as 100 or 0.5%")
    return ErrorLimit(share=float(share[1]) / 100)


def _parse_give_up(text: str) -> FieldValues:
    """Return what ``60``, ``1% errors`` or ``60s or 100 errors`` says; raises ValueError."""
    found = FieldValues()
    for each in text.split(" or "):
        limit, word, rest = each.strip().partition(" error")
        name = "max_errors" if word and rest in {"", "s"} else "give_up_after"
        if name in found:
            raise ValueError(f"{text!r} has two {'numbers of errors' if word else 'times'}")
        found[name] = parse_error_limit(limit) if word else _parse_patience(each.strip())
    return found


def _parse_patience(text: str) -> float:
    try:
        seconds = parse_seconds(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _MAX_SECONDS:
        raise ValueError(
            f"{text!r} is neither a time, {TIME_EXAMPLES}, nor such as '100 errors' or '1% errors'"
        )
    return seconds


def _parse_expected(text: str) -> FieldValues:
    """Return what ``4`` or ``4@300s`` says; raises ValueError."""
    number, at, seconds = text.partition("@")
    found = FieldValues(expect_workers=int(number) if _COUNT_PATTERN.match(number) else 0)
    if at:
        with suppress(ValueError):
            found["worker_timeout"] = parse_seconds(seconds)
    if found["expect_workers"] < 1 or (at and not 0 < found.get("worker_timeout", 0.0) <= _MAX_SECONDS):
        raise ValueError(f"{text!r} is not a number of workers, such as 4, or with the time to wait, 4@300s")
    return found


#: Names of containers with existing objects that are kept; reports have numbers for further ones.
_MAX_CONTAINERS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedStore:
    """One of several stores of a bench; a run says by its name that it is for this one."""

    name: str
    #: The API by which it is the account of the bench, swift or s3; empty: it has credentials of its own.
    api: str = ""
    credentials: Credentials | None = None  # its own
    swift: TrialSwift | None = None  # the Swift that the bench starts for it, if it does


#: More local workers than this for each core are a mistake, which would take all memory of the machine.
_MOST_WORKERS_PER_CORE = 64


def refuse_many_workers(count: int) -> None:
    """Raise UsageError for more local workers than the cores of this machine can have use of."""
    cores = len(os.sched_getaffinity(0))
    if count > (most := cores * _MOST_WORKERS_PER_CORE):
        raise UsageError(
            f"workers: expected {most:,} or fewer on {cores} cores, each of which one worker keeps busy,"
            f" not {count:,}; -u is the number of users"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """The workers and the Swift that all runs of a bench share.

    No-op runs need neither credentials nor a local Swift. Raises UsageError when no worker could ever come.
    """

    workers: int = 0  # worker processes that are started on this machine
    #: Operations that each of those can run at once; None: as many as the runs need.
    concurrency: int | None = None
    #: For how many users they have room from the first run on; they are started again where more come.
    first_room: int = 0
    address: BindAddress | None = None  # where other workers connect; None: there are none
    #: Where workers may be waiting for a master: those that come there in time are used instead of starting
    #: any. None: nobody waits for them.
    offer: BindAddress | None = None
    key_file: Path | None = None  # the key of a sealed fleet
    credentials: Credentials | None = None  # where Swift is, and how to authenticate
    #: Those of the second side in a run whose sides are two accounts, or of the other accounts of a scenario
    #: with several. Without them such a scenario needs the credentials of a reseller admin.
    further_credentials: tuple[Credentials, ...] = ()
    local_swift: bool = False  # start a Swift on this machine instead
    stores: tuple[NamedStore, ...] = ()  # those that runs may choose by name
    #: Policies of the local Swift besides gold, silver and those of the first run.
    policies: tuple[str, ...] = ()
    profile: bool = False  # local workers write profiles

    def __post_init__(self) -> None:
        if not isinstance(self.workers, int) or self.workers < 0:
            raise UsageError(f"workers: expected 0 or more, not {self.workers!r}")
        refuse_many_workers(self.workers)
        if self.concurrency is not None and (not isinstance(self.concurrency, int) or self.concurrency < 1):
            raise UsageError(f"concurrency: expected 1 or more, not {self.concurrency!r}")
        if not self.workers and self.address is None:
            raise UsageError("workers or address: one of them is needed, or no worker can come")


@dataclass(frozen=True, slots=True)
class RunSide:
    """One of the two sides of a run that compares them: a storage URL, a policy, an account, or a Swift.

    An account has neither: the bench has its credentials. Sides that differ in the API by which they speak to
    a store have credentials of their own too, unless both are for the account of the bench. A Swift is
    started for its side alone.
    """

    name: str
    storage_url: str | None = None
    policy: str | None = None
    api: str = ""  # swift or s3, where the sides have different ones
    swift: TrialSwift | None = None  # the Swift that the bench starts for it, if it does

    def __str__(self) -> str:
        if self.swift is not None:
            return f"{self.name}={self.swift}"
        of_api = f"the account, over the API of {self.api}" if self.api else "account"
        return f"{self.name}={self.storage_url or self.policy or of_api}"

    @property
    def has_account(self) -> bool:
        """Whether it has credentials of its own."""
        return bool(self.api) or not (self.storage_url or self.policy)


@dataclass(frozen=True, slots=True)
class SuitePlace:
    """Which run of a suite it is."""

    suite: str  # the name of the suite
    row: str  # the name of its row
    round: int = 1  # from 1
    row_words: Mapping[str, str] = field(default_factory=dict)  # what that says of each key that varies


@dataclass(frozen=True, slots=True)
class ExistingIn:
    """Where objects are that exist already: all of some containers, and those that a file names.

    Raises UsageError for what cannot be the name of a container: an empty one would be the account.
    """

    containers: tuple[str, ...] = ()
    file: Path | None = None

    def __post_init__(self) -> None:
        for name in self.containers:
            # What is not UTF-8 in an argument is a surrogate here, which "replace" turns into "?".
            text = name.encode(errors="replace")
            if not may_be_container(text) or text.decode() != name:
                raise UsageError(
                    f"existing: {name[:80]!r} cannot be the name of a container: expected 1 to"
                    f" {MAX_CONTAINER_NAME_BYTES} bytes of UTF-8 without a slash, not . or .."
                )

    def __str__(self) -> str:
        return ", ".join([*self.containers, *([] if self.file is None else [f"list {self.file}"])])


@dataclass(frozen=True, slots=True)
class ObjectFill:
    """How a store is filled: objects that listings show in their size count as there, but for a sample."""

    rate: float | None = None  # uploads begun a second; None: as fast as its users upload


def _batch_size(text: str) -> int | None:
    """Parse a number of jobs, or ``auto``; raises ValueError."""
    if text == "auto":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{text!r} is not a whole number of 1 or more, or auto")
    return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a scenario is run. Times are in seconds.

    Raises UsageError for numbers that are out of range.
    """

    #: How requests are made.
    requests: RequestOptions = RequestOptions()  # noqa: RUF009 - frozen
    #: The Swift of this run, where the bench starts one on this machine.
    swift: TrialSwift = TrialSwift()  # noqa: RUF009 - frozen
    #: None: a random one.
    seed: Annotated[
        int | None,
        Meta(ge=0),
        Option(
            group=OptionGroup.LOAD,
            help="seed of the random draws; the same seed draws the same operations",
            unit=OptionUnit.NUMBER,
            default="random",
            kept=False,  # the stat file has the one that was drawn
        ),
    ] = None
    #: Do everything but the requests.
    noop: Annotated[
        bool,
        Option(
            group=OptionGroup.LOAD, help="do everything except send requests to Swift", unit=OptionUnit.FLAG
        ),
    ] = False
    #: Leave what the run created.
    keep_objects: Annotated[
        bool,
        Option(
            group=OptionGroup.LOAD,
            help="do not delete the objects that the run created",
            unit=OptionUnit.FLAG,
            letter="-k",
        ),
    ] = False
    prepared: Annotated[
        bool,
        Option(
            group=OptionGroup.LOAD,
            help="check only a sample of 1,000 initial objects, which 'ssbench-master prepare' has uploaded",
            unit=OptionUnit.FLAG,
        ),
    ] = False
    #: Check reads against what was written; initial objects of earlier runs are written again.
    verify: Annotated[
        bool,
        Option(
            help=(
                "check each read against what was written: length and every byte; existing initial"
                " objects are written again"
            ),
            unit=OptionUnit.FLAG,
        ),
    ] = False
    #: A scenario may be somebody else's.
    allow_events: bool = False
    #: End the run when more operations have failed than this; None: never.
    max_errors: Annotated[
        ErrorLimit | None,
        Option(
            help="end the run when more operations have failed",
            unit=OptionUnit.NUMBER,
            on_command_line=False,  # --give-up-after has it
        ),
    ] = None
    #: End a run in which nothing succeeds any more; 0: never.
    give_up_after: Annotated[
        float,
        Meta(ge=0),
        Option(
            help=(
                "end the run when nothing has succeeded for so many seconds (0: never), or more operations"
                " than so many, or a larger share of those that ended, have failed: 60, '1%% errors',"
                " '60 or 100 errors'"
            ),
            unit=OptionUnit.SECONDS,
            parse=_parse_give_up,
            metavar="WHEN",
            scope=OptionScope.PREPARATION,
        ),
    ] = 60.0
    #: Kept in the stat file.
    label: Annotated[
        str | None,
        Option(
            group=OptionGroup.RESULTS,
            help="a word by which list and compare find this run, as in 'compare @old --to @new'",
            unit=OptionUnit.LABEL,
        ),
    ] = None
    #: Least jobs of a message where users have others meanwhile; None: as many as there are to send.
    batch_size: Annotated[
        int | None,
        Meta(ge=1),
        Option(
            group=OptionGroup.FLEET,
            help="minimum jobs per message to a worker whose users are all busy; auto: chosen by measurement",
            unit=OptionUnit.NUMBER,
            default="auto",
            parse=_batch_size,
            scope=OptionScope.PREPARATION,
        ),
    ] = None
    #: None: the local ones, or the first of others.
    expect_workers: Annotated[
        int | None,
        Meta(ge=1),
        Option(
            group=OptionGroup.FLEET,
            help="number of workers to wait for before the run starts, and for how many seconds at most",
            unit=OptionUnit.NUMBER,
            default="the number of --workers, or 1, for 60 seconds",
            parse=_parse_expected,
            metavar="N[@SECONDS]",
            kept=False,
            scope=OptionScope.PREPARATION,
            other_workers=True,
        ),
    ] = None
    #: After this time the run begins with fewer workers.
    worker_timeout: Annotated[
        float,
        Meta(gt=0),
        Option(
            group=OptionGroup.FLEET,
            help="seconds to wait for the expected workers",
            unit=OptionUnit.SECONDS,
            kept=False,
            on_command_line=False,  # --expect-workers has it
        ),
    ] = 60.0
    #: The part of the scenario that this one of several masters carries out, each with its own workers; None:
    #: all of it.
    part: Annotated[
        MasterShare | None,
        Option(
            group=OptionGroup.FLEET,
            help=(
                "carry out one part of the scenario, as the first of four, each with its own master and share"
                " of users, rate, operations and initial objects; 'merge' combines the stat files. With"
                " 1/4@14:30:00 or 1/4@2026-01-31T14:30:00Z all masters begin the benchmark then"
            ),
            unit=OptionUnit.NUMBER,
            default="all of it",
            parse=parse_part,
            metavar="1/4[@TIME]",
            scope=OptionScope.ONE_RUN,
            other_workers=True,
        ),
    ] = None
    until: tuple[Precision, ...] = ()  # end the benchmark once these figures are known so precisely
    find_warmup: bool = False  # reports find the end of the warm-up by themselves
    #: Two sides, each with half of the users and of the objects: both have a storage URL of the account, or
    #: both have a policy, or the bench has credentials for each.
    sides: tuple[RunSide, ...] = ()
    suite_place: SuitePlace | None = None  # which run of a suite it is; None: of none
    plan_phase: str = ""  # which of ``--phases`` it is; empty: none
    #: When the call of a plan that makes it began with its runs, in seconds since 1970; None: no plan
    plan_began: float | None = None
    store: str | None = None  # the name of one of the stores of the bench; None: its account
    #: Commands that a shell on this host runs at moments of the benchmark, besides those of the scenario.
    events: tuple[TimedCommand, ...] = ()
    replayed: Replay | None = None  # the requests to make in place of those that the scenario draws
    existing: ExistingIn | None = None  # objects to read; then nothing is prepared, written or deleted
    #: How a run that only prepares fills the store; None: it looks at each object.
    fill: ObjectFill | None = None
    filled: tuple[tuple[str, float], ...] = ()  # what was counted when objects were prepared for this run
    #: Where results go; None: a new file in the folder of :mod:`ssbench.run.folders`.
    stats_file: Path | None = None
    force: bool = False  # overwrite ``stats_file``
    profile: bool = False  # write a profile of the benchmark
    undecided: Undecided = Undecided.REPORT  # what an undecided condition counts as; kept in the stat file

    @property
    def start_at(self) -> float | None:
        """When the benchmark begins, in seconds since 1970; None: as soon as possible."""
        return self.part.start_at if self.part else None

    def __post_init__(self) -> None:
        option.check_option_bounds(self)
        option.check_option_bounds(self.requests)
        if self.requests.resolve is not None:
            try:
                parse_addresses(self.requests.resolve)
            except ValueError as error:
                raise UsageError(f"resolve: {error}") from None
        if self.existing is not None and (self.noop or self.sides):
            raise UsageError("existing: not possible in a no-op run, or in one of two sides")
        if self.prepared and (self.noop or self.sides or self.verify or self.existing is not None):
            raise UsageError(
                "prepared: not possible in a no-op run, in one of two sides, with existing objects, or with"
                " verify, because the content of the prepared objects is not known"
            )
        if self.store is not None and self.sides:
            raise UsageError("store: not possible in a run of two sides, which name their stores")
        if self.part is not None and (self.prepared or self.existing is not None):
            raise UsageError("part: not possible with prepared or existing objects, which one master has")

    @property
    def can_fill(self) -> bool:
        """Whether the objects of a run can be made before it, and be ``prepared`` for it."""
        return not (self.noop or self.sides or self.verify or self.prepared or self.existing or self.part)


def recorded_options(
    bench: BenchOptions,
    run: RunOptions,
    mark: str | None,
    tag: str = "",
    containers: Sequence[str] = (),
    store_clock: tuple[float, float] | None = None,
) -> dict[str, object]:
    """Return what the stat file keeps of the options, nothing secret.

    ``mark`` is that of transaction ids, ``tag`` that of the names of objects, if there is one. ``containers``
    are those with objects that existed. ``store_clock`` is how far the clock here is from the store's.
    """
    # Only here: it imports numpy, which --help does without.
    from ssbench.results.run_description import (  # noqa: PLC0415
        EVENTS_OPTION,
        EXISTING_OPTION,
        OBJECT_TAG_OPTION,
        PLAN_BEGAN_OPTION,
        SIDE_SWIFTS_OPTION,
        STORE_CLOCK_OPTION,
        SWIFT_SETTINGS_OPTION,
    )

    swifts = [side.swift.describe() for side in run.sides if side.swift is not None]
    return {
        **option.record_options(run.requests),
        **option.record_options(run),
        "start_at": run.start_at,
        "seed_of_parts": run.seed if run.part else None,
        "undecided": run.undecided.value,
        "sides": [str(side) for side in run.sides] or None,
        **({SIDE_SWIFTS_OPTION: swifts} if swifts else {}),
        "store": run.store,
        **({EVENTS_OPTION: [str(each) for each in run.events]} if run.events else {}),
        "warmup": "auto" if run.find_warmup else None,
        "trans_id_extra": mark,
        OBJECT_TAG_OPTION: tag or None,
        EXISTING_OPTION: list(containers[:_MAX_CONTAINERS]) or None,
        STORE_CLOCK_OPTION: None if store_clock is None else [round(each, 3) for each in store_clock],
        **({} if run.suite_place is None else asdict(run.suite_place)),
        **({"plan_phase": run.plan_phase} if run.plan_phase else {}),
        **({PLAN_BEGAN_OPTION: run.plan_began} if run.plan_began is not None else {}),
        "local_workers": bench.workers or None,
        "local_swift": bench.local_swift,
        **({SWIFT_SETTINGS_OPTION: run.swift.describe()} if bench.local_swift else {}),
        "sealed": bench.key_file is not None,
    }
