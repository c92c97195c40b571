"""Options of the command line that follow from records, and those of packages that only some runs need.

An option is said at its field (:mod:`ssbench.base.option`); here it becomes an argument, and records are made
of the values. The packages that only some runs need (``cluster``, ``monitoring``, ``local_swift``) are found
by name, with their options and what these ask for. Nothing else imports them, so that one can be understood,
tested or left out without the others.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ssbench.base.option import OptionGroup, OptionRow, OptionScope, OptionUnit, list_options
from ssbench.base.text_values import FieldValues
from ssbench.cli.archives import ResultsDirAsked
from ssbench.cli.asked import get_value, make_asked
from ssbench.cli.auth_options import AuthAsked
from ssbench.cli.options import (
    AUTOMATIC_WORD,
    BYTES,
    COUNT,
    COUNT_OR_0,
    LABEL,
    NAME,
    SECONDS,
    SECONDS_OR_0,
    Argument,
    OptionParser,
    ReportAsked,
    ReportFilesAsked,
    ScenarioFileAsked,
    SocketAsked,
    ValueKind,
    add_options,
    add_zmq_arguments,
    choose_key_file,
    has_zmq_options,
    make_argument_type,
    parse_warm_up,
    parse_whole_seconds,
    positive_rate,
    read_by,
)
from ssbench.run.bench_options import RunOptions
from ssbench.store.request_options import RequestOptions

if TYPE_CHECKING:
    from ssbench.comparison.change import FigureChange
    from ssbench.comparison.store_limits import LoggedRun
    from ssbench.comparison.sweep_variables import Sweep
    from ssbench.reports.part_changes import ChangesByPart
    from ssbench.run.bench import Companion, Companions
    from ssbench.run.trial_swift import TrialSwift
    from ssbench.scenario.ad_hoc import LoadPhase
    from ssbench.scenario.conditions import Condition
    from ssbench.scenario.replay_source import Replay
    from ssbench.scenario.value_rules import Precision


def add_record_options(
    parser: OptionParser, record: type, group: OptionGroup, scope: OptionScope = OptionScope.ONE_RUN
) -> None:
    """Add the options of a record that are in a group and of a scope, in the order of its fields."""
    for row in list_options(record).values():
        if row.option.on_command_line and row.option.group is group and row.option.scope >= scope:
            add_options(parser, _make_argument(row))


def _make_argument(row: OptionRow) -> Argument:
    """Return the argument of a field."""
    option = row.option
    spelling = f"{option.letter} {row.flag}" if option.letter else row.flag
    if option.unit is OptionUnit.FLAG:
        return Argument(spelling, None, option.help)
    text = option.default or (None if row.default is None else f"{row.default:g}")
    return Argument(spelling, _choose_kind(row), option.help, row.default, text, settings={"dest": row.name})


def _choose_kind(row: OptionRow) -> ValueKind:
    """Return how the help names a value, and what reads it."""
    option = row.option
    match option.unit:
        case OptionUnit.SECONDS:
            kind = SECONDS if row.above is not None else SECONDS_OR_0
        case OptionUnit.BYTES:
            kind = BYTES
        case OptionUnit.LABEL:
            kind = LABEL
        case _:
            kind = COUNT if row.least else COUNT_OR_0
    return kind._replace(
        metavar=option.metavar or kind.metavar,
        read=make_argument_type(option.parse) if option.parse else kind.read,
    )


def read_run_options(parsed: Mapping[str, Any]) -> RunOptions:
    """Return what was parsed of the options of runs; what the command does not have has its default."""
    return RunOptions(
        requests=RequestOptions(**read_option_values(RequestOptions, parsed)),
        **read_option_values(RunOptions, parsed),
    )


def read_option_values(record: type, parsed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of those options of a record that the command has, by the names of their fields."""
    found: dict[str, Any] = {}
    for name in list_options(record):
        if name in parsed:
            value = parsed[name]
            found |= value if isinstance(value, FieldValues) else {name: value}
    return found


def list_single_run_options() -> list[OptionRow]:
    """Return the options of one run, which commands of many runs do not have."""
    return [row for row in list_options(RunOptions).values() if row.option.scope is OptionScope.ONE_RUN]


def list_worker_options() -> list[OptionRow]:
    """Return the options that say that workers come that are not started here."""
    return [row for row in list_options(RunOptions).values() if row.option.other_workers]


def expects_other_workers(asked: RunAsked | PrepareAsked) -> bool:
    """Return whether anything says that workers come that are not started here; also a file or a variable."""
    return (
        has_zmq_options(asked)
        or choose_key_file(asked) is not None
        or any(getattr(asked.options, row.name) is not None for row in list_worker_options())
    )


def add_request_arguments(parser: argparse.ArgumentParser, scope: OptionScope = OptionScope.ONE_RUN) -> None:
    """Add the options for requests: timeouts, retries, checks, how many may fail."""
    group = parser.add_argument_group("requests")
    add_record_options(group, RequestOptions, OptionGroup.REQUESTS)
    add_record_options(group, RunOptions, OptionGroup.REQUESTS, scope)


def add_fleet_arguments(
    parser: argparse.ArgumentParser, workers: str, default: str | None, scope: OptionScope
) -> None:
    """Add the options for workers; ``workers`` is what is said of local ones, ``default`` which there are."""
    add_zmq_arguments(parser, "0.0.0.0, or 127.0.0.1 with --workers")
    group = parser.add_argument_group("fleet")
    add_options(group, Argument("--workers", COUNT, workers, default_text=default))
    add_record_options(group, RunOptions, OptionGroup.FLEET, scope)


def make_resume_option(what: str) -> Argument:
    """Return the option that goes on with a plan; ``what`` says with which."""
    return Argument("--resume", None, f"{what}; runs that have a complete stat file are not repeated")


# -- Packages that only some runs need -------------------------------------------------------------


#: A module in a package of this kind and the name of some options there, in the order of the help. For those
#: called ``cluster`` the module has ``add_cluster_arguments`` and, their record ``ClusterAsked``, a
#: :class:`LeafAsked`.
CLUSTER_OPTIONS = "ssbench.cluster.run_options:cluster"

#: The same, with a :class:`MonitoringAsked`.
METRICS_OPTIONS = "ssbench.monitoring.run_options:metrics"

#: The same, with a :class:`ReplayReader`.
REPLAY_OPTIONS = "ssbench.traffic.run_options:replay"

#: The same, with a :class:`TrialSwiftSource`.
_SWIFT_OPTIONS = "ssbench.local_swift.run_options:swift"


class TrialSwiftSource(Protocol):
    """What was asked of the Swift on this machine."""

    def make_trial_swift(self, local_swift: bool | str, said: object = None, where: str = "") -> TrialSwift:
        """Return how it is configured; raises UsageError where there is to be none.

        ``local_swift`` is whether there is one; a text is its release. ``said`` is what a suite says of it,
        in its entry ``where``.
        """


class ReplayReader(Protocol):
    """What was asked of a replay."""

    def read(self) -> tuple[str, Replay] | None:
        """Return the text of a scenario with what is replayed; None where nothing is. Raises SsbenchError."""


class LeafAsked(Protocol):
    """What was asked of such a package."""

    def open(self) -> AbstractContextManager[Companion | None]:
        """Return a context for all runs; None where nothing was asked for. It raises UsageError."""


class MonitoringAsked(LeafAsked, Protocol):
    """What was asked to show runs to others."""

    @property
    def counts_operations(self) -> bool:
        """Whether figures are counted by the operations of one scenario, so that all runs have the same."""


def add_leaf_arguments(options: str, parser: OptionParser) -> None:
    """Add some of the options that are named above."""
    module, _, name = options.partition(":")
    add: Callable[[OptionParser], None] = getattr(importlib.import_module(module), f"add_{name}_arguments")
    add(parser)


def add_local_swift_arguments(parser: OptionParser) -> None:
    """Add the option that starts a Swift on this machine, and those that configure it."""
    add_leaf_arguments(_SWIFT_OPTIONS, parser)


def _read_leaf(options: str, parsed: Mapping[str, Any]) -> Any:
    """Return the record of some of the options that are named above."""
    module, _, name = options.partition(":")
    return make_asked(getattr(importlib.import_module(module), f"{name.title()}Asked"), parsed)


#: What tells from the logs of two Swifts in which part their difference is.
_LOGS_MODULE = "ssbench.cluster.attribute"


@dataclass(frozen=True, slots=True)
class LoggedSide:
    """A side of a comparison whose Swift logs each request."""

    name: str
    logs: Path  # the folder of its logs
    files: Sequence[Path]  # the stat files of its runs
    group: int | None = None  # which of the sides it is that these files have; None: they have none


def compare_logged_sides(
    sides: Sequence[LoggedSide], cpu: Mapping[str, FigureChange], is_shown: bool | None
) -> ChangesByPart:
    """Return by which part two sides differ.

    ``cpu`` has the changes that are shown of servers' CPU, by their kind; ``is_shown`` is whether these or
    any others are, None without a verdict. Raises UsageError where no log is of a run.
    """
    found: ChangesByPart = importlib.import_module(_LOGS_MODULE).find_changes_by_part(sides, cpu, is_shown)
    return found


#: The options for such logs, as those that are named above.
_LOGS_OPTIONS = f"{_LOGS_MODULE}:logs"


def add_logs_arguments(parser: OptionParser) -> None:
    """Add the options for logs of Swift."""
    add_leaf_arguments(_LOGS_OPTIONS, parser)


def examine_logged_run(
    stats_file: Path, operation: str, *, swift_logs: Sequence[str], template: str | None
) -> LoggedRun:
    """Return what the logs of Swift say of a run, in which an operation is looked at.

    ``template`` is the proxies' own, if they have one. Raises UsageError where no log is of the run, and
    StatFileError.
    """
    found: LoggedRun = importlib.import_module(_LOGS_MODULE).find_logged_limit(
        stats_file, operation, swift_logs=swift_logs, template=template
    )
    return found


@contextmanager
def open_companions(*asked: LeafAsked) -> Iterator[Companions]:
    """Yield what all of the options ask for; raises UsageError where that is not possible."""
    from ssbench.run.bench import Companions

    with ExitStack() as stack:
        found = [stack.enter_context(each.open()) for each in asked]
        yield Companions([each for each in found if each is not None])


# -- What commands that make runs are asked --------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PrepareAsked(AuthAsked, SocketAsked, ScenarioFileAsked):
    """What ``prepare`` is asked."""

    options: RunOptions = field(metadata={"read": read_run_options})
    workers: int | None
    user_count: int | None
    container_count: int | None
    set: Sequence[tuple[str, Any]]
    policy: str | None
    local_swift: bool | str = False  # a text is a release


@dataclass(frozen=True, kw_only=True)
class RunAsked(AuthAsked, SocketAsked, ReportFilesAsked, ResultsDirAsked):
    """What all commands are asked that make runs and report on them."""

    options: RunOptions = field(
        metadata={"read": read_run_options}
    )  # those that are options of runs in Python too
    cluster: LeafAsked = field(metadata={"read": partial(_read_leaf, CLUSTER_OPTIONS)})
    monitoring: MonitoringAsked = field(metadata={"read": partial(_read_leaf, METRICS_OPTIONS)})
    swift: TrialSwiftSource = field(metadata={"read": partial(_read_leaf, _SWIFT_OPTIONS)})
    allow: Sequence[str | Path] = ()
    at: Sequence[tuple[str, str]] = ()
    local_swift: bool | str  # a text is a release
    workers: int | None
    pause: float = 0.0
    no_default_report: bool
    progress: str
    run_seconds: float | None = None
    warmup: float | str | None = None
    until: Sequence[tuple[Precision, ...]] = ()
    existing: Sequence[str | Path] = ()  # containers, and a file with names of objects
    stats_file: Path | None = None
    ab: Sequence[str] | None = None
    undecided: str | None = None
    format: str = ""  # that of the report of many runs; empty: as the other options say
    csv: bool = False
    profile: bool = False

    @property
    def goals(self) -> tuple[Precision, ...]:
        """What ``--until`` waits for, of all its uses."""
        return tuple(itertools.chain.from_iterable(self.until))


@dataclass(frozen=True, kw_only=True)
class LoadAsked(RunAsked):
    """What a command is asked that runs one scenario."""

    scenario_file: str | None
    user_count: int | None
    op_count: int | None
    rate: float | None
    container_count: int | None
    set: Sequence[tuple[str, Any]]
    delete_after: int | None
    policy: str | None
    fail_if: Sequence[Condition] = ()
    phases: tuple[LoadPhase, ...] | None = None
    sweep: Sweep | None = None
    repeat: int | None = None
    log: ReplayReader | None = None  # what is replayed in place of a scenario

    @property
    def is_replay(self) -> bool:
        """Whether the requests of a log are replayed."""
        return get_value(self, "replay") is not None


class Objective(NamedTuple):
    """What ``--find`` looks for."""

    conditions: tuple[Condition, ...] = ()
    within: float | None = None  # how exactly the answer is to be known, as a share; None: as usual


@dataclass(frozen=True, kw_only=True)
class RunScenarioAsked(LoadAsked, ReportAsked):
    """What ``run-scenario`` is asked."""

    log: ReplayReader = field(metadata={"read": partial(_read_leaf, REPLAY_OPTIONS)})
    versus: str | None
    find: Objective | None

    @property
    def is_in_turn(self) -> bool:
        """Whether it asks for runs of two kinds in turn."""
        return self.versus is not None

    @property
    def isolated_group(self) -> str | None:
        """The group that half of the runs are made without: ``--versus 'without GROUP'``."""
        word, blank, group = (self.versus or "").partition(" ")
        return group.strip() if blank and word == "without" else None

    @property
    def is_plan(self) -> bool:
        """Whether it asks for many runs."""
        return bool(self.sweep or self.find or self.repeat or self.phases)

    @property
    def is_stepped(self) -> bool:
        """Whether the load changes from run to run."""
        return bool(self.sweep or self.find)


# -- The options of run-scenario for the load ------------------------------------------------------


#: Those that ``prepare`` has too.
CONTAINER_COUNT_OPTION = Argument("-c --container-count", COUNT, "number of containers")
POLICY_OPTION = Argument("-p --policy", NAME, "storage policy of the containers")


def _parse_setting(text: str) -> tuple[str, Any]:
    """Parse a value of ``--set``; raises ValueError."""
    from ssbench.scenario.model import OVERRIDING_OPTIONS
    from ssbench.scenario.set_values import OTHER_NAMES, parse_setting

    path, value = parse_setting(text)
    if (option := OVERRIDING_OPTIONS.get(OTHER_NAMES.get(path, path), "set")) != "set":
        raise ValueError(f"{path} has an option of its own: --{option.replace('_', '-')}")
    return path, value


SET_OPTION = Argument(
    "--set",
    ValueKind("KEY=VALUE", make_argument_type(_parse_setting)),
    "replace another value of the scenario, as in think_time=10ms (doc/scenarios.rst); may be repeated",
    default=[],
    repeated=True,
)


PHASES = ValueKind("OPERATIONS", read_by("scenario.ad_hoc", "parse_phases"))

_PACE_OPTIONS = (
    Argument("-u --user-count", COUNT, "maximum number of operations in flight"),
    Argument("-o --op-count", COUNT, "number of operations"),
    Argument("-r --run-seconds", SECONDS, "run for this long; overrides any number of operations, also -o"),
    Argument(
        "--rate",
        ValueKind("N", positive_rate),
        "start N operations per second regardless of response times (open loop); -u then limits how many"
        " run at once",
        default_text="a closed loop: each user starts its next operation when the last has ended",
    ),
)

WARMUP_OPTION = Argument(
    "--warmup",
    ValueKind("SECONDS", parse_warm_up),
    "exclude the start of the run from the report; auto: until the rate is steady, in runs of a"
    " minute or more",
    default_text="0",
)

UNTIL_OPTION = Argument(
    "--until",
    ValueKind("PRECISION", read_by("scenario.conditions", "parse_precisions")),
    "end the run once half the 95%% interval of each figure is within its share: 2%% (of the rate),"
    " 'read.p99 5%%', 'rate 2%% and read.p99 5%%'; takes a minute or more, and at most -r or -o (without"
    " them an hour); may be repeated",
    [],
    "the run does not end early",
    repeated=True,
)

_MEASUREMENT_OPTIONS = (
    Argument(
        "--phases",
        PHASES,
        "run operations one after another, as in put,get,delete: each on the same initial objects, with its"
        " own stat file and report, and one table of all; with --repeat in rounds; with --sweep or --find one"
        " for each",
    ),
    WARMUP_OPTION,
    UNTIL_OPTION,
    Argument(
        "--ab",
        ValueKind("NAME=WHAT"),
        "compare two sides in one run, each with half of the users: two storage URLs, two policies, two"
        " accounts (NAME=@FILE, a file with ST_AUTH=..., ST_USER=... and so on), or two Swifts that are"
        " started for it (NAME=RELEASE, as --local-swift has it, or NAME=FILE.yaml, as --swift-config);"
        " see doc/comparing.rst",
        settings={"nargs": 2},
    ),
    Argument(
        "--repeat",
        COUNT,
        "run N times with the same workers, each with its own stat file, and print how the runs (with"
        " --ab: the sides) differ; with --sweep or --find, repeat each step N times",
        default_text="once",
    ),
    Argument(
        "--versus",
        ValueKind("OPTIONS"),
        "with --repeat: run N times with these options too, in turn, and compare: --versus='--rate 9 -f"
        " OTHER' (load, requests, -f, --label), --versus='' for equal runs, --versus='without GROUP' for the"
        " cost of a group",
    ),
    Argument("--pause", SECONDS_OR_0, "seconds between two runs", 5.0, "5 with --repeat, otherwise 0"),
    make_resume_option("with --repeat, --sweep, --find or --phases, and -s: continue after an interruption"),
)

_TARGET_OPTIONS = (
    CONTAINER_COUNT_OPTION,
    Argument(
        "--delete-after",
        ValueKind("SECONDS", parse_whole_seconds),
        "let objects expire after this long (X-Delete-After); 0 means never",
    ),
    POLICY_OPTION,
    SET_OPTION,
)


def read_overridden_keys(asked: LoadAsked | PrepareAsked) -> dict[str, Any]:
    """Return the values that options give to keys of a scenario, of those that the command has.

    None: it is not given. An automatic warm-up is none.
    """
    # Not for the help.
    from ssbench.scenario.model import OVERRIDING_OPTIONS

    found = {key: get_value(asked, name) for key, name in OVERRIDING_OPTIONS.items() if name != "set"}
    return found | ({"warmup": 0.0} if found["warmup"] == AUTOMATIC_WORD else {})


AT_OPTION = Argument(
    "--at",
    ValueKind("COMMAND"),
    "run a shell COMMAND on this host TIME after the start (60s), to make a disk fail, say, and report the"
    " figures before, during and after it; may be repeated",
    default=[],
    repeated=True,
    settings={"nargs": 2, "metavar": ("TIME", "COMMAND"), "action": "append"},
)


_OBJECT_OPTIONS = (
    Argument(
        "--existing",
        ValueKind("CONTAINER", lambda text: Path(text[1:]) if text.startswith("@") else text),
        "read only the objects in this container, or those listed in a file (@FILE), CONTAINER/OBJECT on each"
        " line: nothing is prepared, written or deleted, and a scenario that writes is refused; may be"
        " repeated",
        default=[],
        repeated=True,
    ),
)


def add_load_arguments(
    parser: argparse.ArgumentParser, measurement: Sequence[Argument] = _MEASUREMENT_OPTIONS
) -> None:
    """Add the options for the load; ``measurement`` are those that say how often and how it is measured."""
    group = parser.add_argument_group(
        "load",
        "Each replaces the value in the scenario. SECONDS may have a unit (200ms, 1m30s, 2h), and BYTES too"
        " (4K or 4KiB: 4096, 4kB: 4000).",
    )
    add_options(group, *_PACE_OPTIONS, *measurement, *_TARGET_OPTIONS, AT_OPTION)
    add_record_options(group, RunOptions, OptionGroup.LOAD)
    add_options(group, *_OBJECT_OPTIONS)
    add_local_swift_arguments(group)
