"""What is known of a run besides its results.

A stat file says no more than this, what was seen of the cluster (:mod:`ssbench.results.cluster_observation`),
and of each result its fields (:mod:`ssbench.results.result_fields`) and its
:class:`~ssbench.results.block.Failure`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from ssbench.base.record import Count, Moment, Seconds, Share
from ssbench.results.cluster_observation import Observation
from ssbench.scenario.model import Scenario
from ssbench.scenario.names import container_name, format_object_name, object_prefix, tagged_object_stem
from ssbench.scenario.replay_source import ReplaySource

#: The option of a run under which the commands are kept that are run at moments of it.
EVENTS_OPTION = "events"

#: The option of a run under which the tag of its objects' names is kept.
OBJECT_TAG_OPTION = "object_tag"

#: That of the names of the containers whose objects existed before the run, in the order of their numbers.
EXISTING_OPTION = "existing"

#: That under which a master keeps which part of a run it carried out (``1/4``).
PART_OPTION = "part"

#: That of when the call of a plan that made the run began with its runs, in seconds since 1970.
PLAN_BEGAN_OPTION = "plan_began"

#: That of how far its clock is from the store's, at least and at most, in seconds.
STORE_CLOCK_OPTION = "store_clock"

#: That of what is set in the Swifts that a run started for its two sides, by name.
SIDE_SWIFTS_OPTION = "side_swifts"

#: That of what is set in the Swift that the run started on this machine, by name.
SWIFT_SETTINGS_OPTION = "swift_settings"


#: The first digit of the statuses of successes.
_SUCCESSES = 2

#: What a file says of the clock of its master: some thousand years on either side, in seconds since 1970.
_Moment = Annotated[float, Meta(ge=-1e11, le=1e11)]


def _read_names(given: object) -> dict[str, str] | None:
    """Return texts by name, as a file has them; None for anything else."""
    return {str(name): str(value) for name, value in given.items()} if isinstance(given, dict) else None


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """A worker as the master saw it; None where it never reported."""

    worker_id: int
    host: str = ""
    version: str = ""
    cpu_share: Share | None = None  # share of one core that it used during the benchmark (1.0 is all of it)
    lag_p99: Seconds | None = None  # how late its event loop was meanwhile, in seconds
    #: Seconds to add to its monotonic clock to have the master's time since 1970.
    clock_offset: Seconds | None = None
    lag_p50: Seconds | None = None  # as ``lag_p99``
    lag_max: Seconds | None = None  # as ``lag_p99``
    #: How much of ``clock_offset`` is added in each second, at least; 0: the clocks may run alike.
    clock_slope: Share | None = None
    wall_offset: Seconds | None = None  # seconds to add to its time of day to have the master's
    label: str = ""  # what an engine called it; empty: not known
    site: str = ""  # where it was; empty: not known


@dataclass(frozen=True, slots=True)
class MasterFacts:
    """What the master used during the benchmark."""

    cpu_share: Share | None = None  # of one core
    lag_max: Seconds | None = None  # how late its loop was at most
    unread: Seconds = 0.0  # for how long text for standard error waited for its reader


@dataclass(frozen=True, slots=True)
class HostFacts:
    """A machine of the load generator during the benchmark; None where its kernel does not tell."""

    host: str  # its name
    cores: Count  # cores that it has
    load_begin: float | None = None  # its load average of a minute at the beginning
    load_end: float | None = None  # the same at the end
    own_cpu: Share | None = None  # CPU of all cores that the run's processes and a local Swift used
    other_cpu: Share | None = None  # CPU of all cores that all else used
    stolen: Share | None = None  # CPU of all cores that a hypervisor gave to others
    pressed: Share | None = None  # part of the time in which some thread there waited for a CPU
    #: Part of the time in which the main thread of the run's process that waited most waited for a CPU.
    waited: Share | None = None
    denied: Share | None = None  # that wait as a part of the time in which the thread wanted a CPU
    processes: Count = 1  # processes of the run there
    swift_cpu: Share | None = None  # of ``own_cpu``, what a local Swift used; None: the run has none there
    network: Share | None = None  # of what its busiest network card can move in one direction


@dataclass(frozen=True, slots=True)
class LoadSample:
    """How busy the load generator was for some seconds; None where that is not known."""

    until: Moment  # when these ended
    seconds: Seconds  # how many they were
    worker_cpu: Share | None = None  # part of a core that the busiest worker used
    worker_lag: Seconds | None = None  # how late an event loop of a worker was at most
    master_cpu: Share | None = None  # part of a core that the master used
    master_lag: Seconds | None = None  # how late its loop was at most


@dataclass(frozen=True, slots=True)
class ServerCpuSample:
    """What the servers of a Swift on this machine used for some seconds."""

    until: Moment  # when these ended
    seconds: Seconds  # how many they were
    operations: Count  # that ended in these
    cpu: dict[str, float]  # seconds of CPU by kind of server: proxy, listings (accounts, containers), object
    side: int | None = None  # of which side these are, where each has a Swift of its own
    #: How many of these operations there were of each kind, by its code; empty in older files.
    by_operation: dict[int, Count] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which a worker or the master stalled."""

    worker_id: int | None  # None: it was the master
    start: Moment  # when it began
    seconds: Seconds  # how long it lasted


@dataclass(frozen=True, slots=True)
class EventFacts:
    """A command that was to be run at a moment of the benchmark, and how that went, or a group that began."""

    at: Seconds  # when it was to begin, after the benchmark did
    command: str  # what a shell was given; of a group, that it begins
    began: Moment | None = None  # when it began; null: not before the end
    ended: Moment | None = None  # when it ended; null: it was killed at the end of the run, or is a group
    #: null: it was killed, could not be started, or is a group; -N: it ended by signal N
    exit_code: int | None = None
    output: str = ""  # the first part of what it said
    is_cut: bool = False  # it said more
    failure: str = ""  # why it could not be started
    group: str = ""  # the group of users that begins at the moment; empty: it is a command


@dataclass(frozen=True, slots=True)
class PrecisionFacts:
    """A figure that ``--until`` asked for, and how precisely it was known at the last look at the run."""

    figure: str  # as in conditions: ``read.p99``
    asked: Share  # half the width of its 95 % interval at which the run may end, as a share of the figure
    width: Share | None  # half the width of that interval; null: not known
    seconds: Seconds  # how much of the run it was estimated from; 0: the run was too short
    reached: bool  # all such figures were known as precisely as asked, and the run ended
    #: How long the run would have had to be, by what was known at its end; null: it ended, or not known.
    needed: Seconds | None = None


@dataclass(frozen=True, slots=True)
class StageFacts:
    """A stage as it went, or the whole run where it had no stages."""

    begins: float  # seconds since 1970
    ends: float  # seconds since 1970, earlier than planned in a run that was interrupted
    due: int | None = None  # operations that were due in it; None in a closed loop


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """How it went with a group of users."""

    stages: tuple[StageFacts, ...] = ()  # those of the group that began, one for all of it where it has none
    not_sendable: tuple[tuple[int, int, int], ...] = ()  # what had no object, as in :class:`RunSummary`
    drawn: int = 0  # operations that were drawn
    waited: int = 0  # operations that waited for a free object


@dataclass(frozen=True, slots=True)
class StatusCount:
    """How often an operation of a replay had a status in the log, and one now."""

    operation: str
    logged: Count  # the status in the log
    status: Count  # that now; 0: there was no answer
    count: Count

    @property
    def is_same(self) -> bool:
        """Whether the status is the same, or both are successes."""
        return self.logged == self.status or (self.logged // 100 == self.status // 100 == _SUCCESSES)


@dataclass(frozen=True, slots=True)
class ReplayFacts:
    """How the replay of a log went."""

    source: ReplaySource  # what was replayed
    speed: float  # how much faster than the log
    early_requests: Count  # requests for objects that were due before a write of theirs had ended
    statuses: tuple[StatusCount, ...]


@dataclass(frozen=True, slots=True)
class RunDescription:
    """What is known when a run starts; the first document of a stat file.

    Files of ssbench 0.x know the scenario and perhaps the version, no more.
    """

    scenario: Scenario  # with every override of the command line
    version: str = "unknown"
    seed: Count | None = None
    #: Other options that mattered, as plain data; no password and no token belongs there.
    options: dict[str, object] = field(default_factory=dict)
    host: str = ""
    run_id: int | None = None
    started: float | None = None  # seconds since 1970
    workers: tuple[WorkerFacts, ...] = ()
    storage_urls: tuple[str, ...] = ()  # results refer to these by their place
    stages: tuple[str, ...] = ()  # names; results refer to these by their place
    sides: tuple[str, ...] = ()  # names; results refer to these by their place
    side_policies: tuple[str, ...] = ()  # storage policies of both sides, where these have one each
    #: What the names of objects of both sides begin with; none in earlier files, whose sides had objects of
    #: other numbers.
    side_prefixes: tuple[str, ...] = ()
    group: str = ""  # the group of users that it is about, where it is part of a run
    #: Runs of several masters that make one; none where there is one master.
    masters: tuple[RunDescription, ...] = ()
    accounts: tuple[str, ...] = ()  # names, none where there is one; results refer to these by their place

    @property
    def run_ids(self) -> tuple[int, ...]:
        """The numbers of the runs that it consists of: its own, or those of its masters."""
        return tuple(each.run_id for each in self.masters or (self,) if each.run_id is not None)

    @property
    def group_names(self) -> tuple[str, ...]:
        """The names that the groups of results refer to: groups of users, or the two sides."""
        return tuple(each.name for each in self.scenario.groups) or self.sides

    @property
    def sides_as_given(self) -> tuple[str, ...]:
        """The sides as the user gave them, NAME=WHAT; their names where that is not known.

        WHAT is the storage URL of an account.
        """
        if len(self.sides) == len(self.storage_urls) and not self.side_swifts:
            return tuple(f"{name}={url}" for name, url in zip(self.sides, self.storage_urls, strict=True))
        given = self.options.get("sides")
        if isinstance(given, list) and len(given) == len(self.sides):
            return tuple(map(str, given))
        return self.sides

    @property
    def plan_began(self) -> float | None:
        """When the call of a plan that made it began with its runs; None where that is not known."""
        given = self.options.get(PLAN_BEGAN_OPTION)
        return float(given) if isinstance(given, int | float) else None

    @property
    def swift_settings(self) -> dict[str, str] | None:
        """What is set in the Swift that the run started, by name; None where it started none."""
        return _read_names(self.options.get(SWIFT_SETTINGS_OPTION))

    @property
    def side_swifts(self) -> tuple[dict[str, str], ...]:
        """What is set in the Swift that the run started for each of its two sides; none where it did not."""
        given = self.options.get(SIDE_SWIFTS_OPTION)
        found = [*map(_read_names, given)] if isinstance(given, list) else []
        return tuple(filter(None, found)) if len(found) == len(self.sides) else ()

    def container(self, number: int, group: int = 0, master: int = 0) -> str:
        """Return the name of a container of the users of a group, or of a side, in the run of a master."""
        if 0 <= master < len(self.masters):
            return self.masters[master].container(number, group)
        if isinstance(found := self.options.get(EXISTING_OPTION), list):
            return str(found[number]) if 0 <= number < len(found) else f"container number {number}"
        parts, policies = self.scenario.parts, self.side_policies
        part = parts[group] if 0 <= group < len(parts) else self.scenario
        policy = policies[group] if 0 <= group < len(policies) else part.policy
        return container_name(part.container_base, number, policy)

    def name_object(self, size_class: str, number: int, group: int = 0, master: int = 0) -> str:
        """Return the name of an object, of a size class of this name, of the users of a group or a side.

        ``master`` is the number of its master.
        """
        if 0 <= master < len(self.masters):
            return self.masters[master].name_object(size_class, number, group)
        if self.options.get(EXISTING_OPTION):
            return f"{size_class} number {number}"  # in the order of the listing
        tag = self.options.get(OBJECT_TAG_OPTION)
        prefixes = self.side_prefixes or [each.name for each in self.scenario.groups]
        prefix = object_prefix(prefixes[group] if 0 <= group < len(prefixes) else self.group, size_class)
        prefix = tagged_object_stem(prefix, tag) if isinstance(tag, str) else prefix
        return format_object_name(self.scenario.object_names, prefix, number)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What is known when a run has ended; the last document of a stat file."""

    ended: _Moment  # seconds since 1970
    #: (Operation code, size-class index, how often) of operations that were drawn while no object of the
    #: class existed.
    not_sendable: tuple[tuple[int, int, int], ...] = ()
    #: Operations whose worker vanished; each is also a result with the cause
    #: :data:`ssbench.results.block.LOST_CAUSE`.
    lost_jobs: int = 0
    warnings: tuple[str, ...] = ()
    interrupted: bool = False
    workers: tuple[WorkerFacts, ...] = ()
    counters: dict[str, float] = field(default_factory=dict)  # whatever else was counted
    #: When the run stopped handing out operations, in seconds since 1970; None: not known.
    sent_until: _Moment | None = None
    master: MasterFacts | None = None
    gaps: tuple[Gap, ...] = ()  # times in which the load generator stalled for a tenth of a second or more
    #: What was seen of the cluster, which has its own record in a stat file; None: it was not observed.
    cluster: Observation | None = None
    #: Those of the run that began, one for the whole of a run without stages; none where it is not known.
    stages: tuple[StageFacts, ...] = ()
    ended_early: str | None = None  # why the run gave up before its time; None: it did not
    error_code: int = 0  # exit code of that
    until: tuple[PrecisionFacts, ...] = ()  # the figures that ``--until`` asked for
    trouble: bool = False  # something besides the operations failed until then
    groups: tuple[GroupFacts, ...] = ()  # how it went with each group of users; none where there are none
    generator_load: tuple[LoadSample, ...] = ()  # how busy the load generator was over time, in order
    server_cpu: tuple[ServerCpuSample, ...] = ()  # of a Swift on this machine, over time, in order
    addresses: tuple[str, ...] = ()  # those of hosts with several; results refer to these by their place
    hosts: tuple[HostFacts, ...] = ()  # the machines of the load generator
    events: tuple[EventFacts, ...] = ()  # commands that were run at moments of it
    replay: ReplayFacts | None = None  # how the replay of a log went; None: it was none
