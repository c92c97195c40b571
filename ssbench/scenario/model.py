"""A scenario, as frozen records, and the table of the keys of its file.

A key is a row of :data:`SCENARIO_KEYS` and, where its value is kept, a field of :class:`Scenario`. What reads
it, sends it to workers, writes it as JSON and tells people of it follows from the row.

Objects have metadata that says which scenario and size class they are of, so that another scenario does not
reuse them. Two scenarios may have a size class of the same name, and the sizes of both may overlap, so the
size of an object does not tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from enum import Enum
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote, unquote

from msgspec import Meta, defstruct

from ssbench.base.record import Count, PerhapsSeconds, PerSecond, Seconds
from ssbench.scenario.key_rules import (
    ACCOUNT_BASE_RULE,
    ARRIVALS_RULE,
    CONDITIONS_RULE,
    CONTAINER_PART_RULE,
    CRUD_OPERATIONS,
    DELETE_AFTER_RULE,
    GROUP_NAME_RULE,
    MAX_ACCOUNTS,
    RATE_RULE,
    SECONDS_OR_0_RULE,
    SECONDS_RULE,
    WEIGHTS_RULE,
)
from ssbench.scenario.names import (
    DEFAULT_ACCOUNT_BASE,
    DEFAULT_CONTAINER_BASE,
    DEFAULT_TEMPLATE,
    OBJECT_NAMES_RULE,
)
from ssbench.scenario.operations import (
    LARGE_OBJECT_STEPS,
    OPERATIONS,
    Header,
    OperationKind,
    OperationSettings,
    OperationTable,
)
from ssbench.scenario.sizes import Shape
from ssbench.scenario.structured_values import (
    BODY_RULE,
    CONNECTIONS_RULE,
    METADATA_RULE,
    POPULARITY_RULE,
    REUSE_RULE,
    Body,
    ConnectionSettings,
    Metadata,
    Popularity,
    Reuse,
)
from ssbench.scenario.value_rules import (
    EVENTS_RULE,
    HEADERS_RULE,
    MAX_NUMBER,
    PAYLOAD_RULE,
    TEXT_RULE,
    PayloadMode,
    Rule,
    TimedCommand,
    make_whole_rule,
)

#: Weights of operations by name, or those of create, read, update and delete in this order.
Weights = tuple[float, float, float, float] | dict[str, float]


@dataclass(frozen=True, slots=True)
class SizeClass:
    """A size class that is in use: sizes in bytes, both ends included."""

    name: str
    size_min: int
    size_max: int
    initial_files: int
    #: The weights that apply to this class (its own, else the scenario's), as the file gives them.
    crud_profile: Weights
    shape: Shape | None = None  # how sizes are distributed between the ends; None: each is as likely
    #: Its share of the operations, relative to those of other classes; None: they have the shares of their
    #: initial files.
    weight: float | None = None
    segment_size: int = 0  # its objects are in segments of so many bytes; 0: they are in one piece
    #: Whether a manifest lists the segments, or a prefix of their names finds them.
    segments: Literal["static", "dynamic"] = "static"

    @property
    def title(self) -> str:
        """Return its name, with what there is to say of its sizes and of segments."""
        words = [str(self.shape)] * (self.shape is not None) + [self.segments_words] * bool(self.segment_size)
        return f"{self.name} ({', '.join(words)})" if words else self.name

    @property
    def segments_words(self) -> str:
        """Return how its objects are divided, in words; empty: they are in one piece."""
        dynamic = "dynamic " if self.segments == "dynamic" else ""
        return f"in {dynamic}segments of {self.segment_size:,} bytes" if self.segment_size else ""

    @property
    def largest_piece(self) -> int:
        """Return the most bytes of a body that is uploaded: of an object, or of a segment."""
        return min(self.size_max, self.segment_size) if self.segment_size else self.size_max

    @property
    def most_segments(self) -> int:
        """How many segments its largest object has; 0: it has none."""
        return -(-self.size_max // self.segment_size) if self.segment_size else 0

    @property
    def mean_size(self) -> float:
        """Return the mean size in bytes."""
        return (self.size_min + self.size_max) / 2 if self.shape is None else self.shape.mean

    @property
    def share(self) -> float:
        """How many of the operations are on this class, relative to other classes."""
        return self.initial_files if self.weight is None else self.weight

    @property
    def weights(self) -> dict[str, float]:
        """Return the relative weights of operations, by name."""
        if isinstance(self.crud_profile, dict):
            return self.crud_profile
        return dict(zip(CRUD_OPERATIONS, self.crud_profile, strict=True))


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a run with a load of its own; both loads are (at its beginning, at its end).

    Between the two the load changes evenly.
    """

    #: How long it is; infinite, which JSON has as null, where a number of operations ends the run.
    seconds: PerhapsSeconds
    #: Operations in flight in a closed loop, and at most in an open one (None: the user count of the
    #: scenario).
    users: tuple[int, int] | None = None
    rate: tuple[float, float] | None = None  # operations a second; None: a closed loop

    @property
    def is_idle(self) -> bool:
        """Whether nothing is sent in it: its group of users has not begun."""
        return self.users == (0, 0)

    def __str__(self) -> str:
        """Return the load in words: ``16..64 users``, ``500/s``."""
        low, high = self.rate or self.users or (0, 0)
        load = f"{low:g}" if low == high else f"{low:g}..{high:g}"
        return f"{load}/s" if self.rate else f"{load} user{'' if load == '1' else 's'}"


def _name_weights(weights: dict[str, float]) -> str:
    return ", ".join(f"{name} {weight:g}" for name, weight in sorted(weights.items()) if weight)


def _count_initial_files(size_class: SizeClass) -> str:
    """Return how many initial files a size class has, where its share of the operations is another number."""
    return "" if size_class.weight is None else f" of {size_class.initial_files} initial files"


@dataclass(frozen=True, slots=True)
class UserGroup:
    """Users of one kind, beside those of other groups: what they do, where, and how much of it.

    Fields without a comment are as in a :class:`Scenario`.
    """

    name: str
    #: Those of the scenario, in the same order, with this group's weights and operations; those that it does
    #: not use have no weight.
    size_classes: tuple[SizeClass, ...]
    user_count: int
    rate: float | None = None
    arrivals: str = "even"
    stages: tuple[Stage, ...] = ()
    think_time: float = 0.0
    container_base: str | None = None  # None: that of the scenario
    container_count: int | None = None  # None: that of the scenario
    policy: str | None = None  # None: that of the scenario
    #: Settings that replace those of the scenario of the same name.
    operations: tuple[OperationSettings, ...] = ()
    popularity: Popularity | None = None  # None: that of the scenario
    reuse: Reuse | None = None  # None: that of the scenario
    connections: ConnectionSettings | None = None  # None: those of the scenario
    s3_payload: PayloadMode | None = None  # None: that of the scenario

    def __str__(self) -> str:
        """Return all of the group in words: ``web 8 users, small x 20 (read 9, create 1)``."""
        load = f"{self.rate:g}/s, {self.user_count}" if self.rate else f"{self.user_count}"
        if self.stages:
            load = f"{', '.join(f'{each} for {each.seconds:g} s' for each in self.stages)}, {self.user_count}"
        others = [
            *self._own_words(KeyTopic.LOAD),
            *(
                f"{each.name} x {each.share:g}{_count_initial_files(each)} ({_name_weights(each.weights)})"
                for each in self.size_classes
                if each.share
            ),
            *self._own_words(KeyTopic.PLACES),
            *(f"{each.name} {', '.join(each.words)}" for each in self.operations),
            *self._own_words(KeyTopic.REQUESTS),
        ]
        return ", ".join([f"{self.name} {load} user{'s' * (self.user_count != 1)}", *others])

    def _own_words(self, topic: KeyTopic) -> Iterator[str]:
        """Yield in words what the group itself says with keys of a topic, besides its load."""
        for key in list_group_keys(topic):
            if (
                key.name in _GROUP_DEFAULTS
                and (value := getattr(self, key.name)) != _GROUP_DEFAULTS[key.name]
            ):
                yield (key.group_words or f"{key.name.replace('_', ' ')} {{}}").format(value)


class _TableSlot:
    """Where a scenario keeps its table of operations once it is made; a changed copy makes its own."""

    __slots__ = ("_table",)
    _table: OperationTable


@dataclass(frozen=True, slots=True)
class Scenario(_TableSlot):
    """A benchmark to run. One of ``run_seconds`` and ``operation_count`` is set, the other is None."""

    name: str
    size_classes: tuple[SizeClass, ...]  # those with initial files, in the order of ``sizes``
    user_count: int  # with groups the sum of theirs; with stages the most users of any
    operation_count: int | None = None
    run_seconds: float | None = None  # with stages their sum
    container_base: str = DEFAULT_CONTAINER_BASE
    container_count: int = 100
    container_concurrency: int = 10
    delete_after: int | None = None  # objects expire after so many seconds, and are not used any more
    policy: str | None = None
    data: dict[str, object] | None = None  # the scenario file's own content, as plain data
    rate: float | None = None  # operations per second of an open loop; None: a closed loop
    #: How operations of an open loop are due: ``even``, as a Poisson process (``poisson``), or in bursts
    #: (``burst 4.2``), with distances of which the squared coefficient of variation is so much.
    arrivals: str = "even"
    stages: tuple[Stage, ...] = ()  # each has users or rates of its own
    warmup: float = 0.0  # seconds at the beginning that are left out of reports
    think_time: float = 0.0  # seconds for which a user of a closed loop pauses after each operation
    fail_if: tuple[str, ...] = ()  # conditions (:mod:`ssbench.scenario.conditions`) under which the run fails
    operations: tuple[OperationSettings, ...] = ()  # settings of operations
    container_put_headers: tuple[Header, ...] = ()  # header fields with which containers are made
    #: The users of each do what that group says, all at once; :attr:`parts` are what each does, as a scenario
    #: of its own.
    groups: tuple[UserGroup, ...] = ()
    popularity: Popularity | None = None  # how objects are chosen; None: in turn
    reuse: Reuse | None = None  # how many reads are for what was read before
    #: Each object expires after a time that is drawn, from ``delete_after`` to this; none is used any more
    #: after the shorter time.
    delete_after_most: int | None = None
    #: By which part of their distance operations are due later that are due evenly: of several masters each
    #: has its own.
    phase: float = 0.0
    body: Body | None = None  # what is in bodies; None: random bytes
    #: Template of names of objects (:mod:`ssbench.scenario.names`); None: the usual one.
    object_names: str | None = None
    accounts: int = 1  # the containers are in each of so many accounts
    #: Their names end in this and a number, where they are reached with the token of a reseller admin.
    account_base: str = DEFAULT_ACCOUNT_BASE
    metadata: Metadata | None = None  # what uploads have besides
    connections: ConnectionSettings | None = None  # those of requests; None: kept ones
    s3_payload: PayloadMode = "unsigned"  # what requests of the S3 API say of bodies
    events: tuple[TimedCommand, ...] = ()  # commands that the master runs at moments of the benchmark
    #: From what ``container_count`` follows; None: from nothing, or there are groups.
    objects_per_container: int | None = None
    #: Initial objects are where they are with more of them too, so that these can be added.
    keeps_places: bool = False

    @property
    def operation_table(self) -> OperationTable:
        """The operations that results of it may be of: those of ssbench, and those that it defines."""
        try:
            return self._table
        except AttributeError:
            object.__setattr__(self, "_table", OPERATIONS.with_defined(self.operations))
            return self._table

    @property
    def defined_operations(self) -> tuple[str, ...]:
        """The names of the operations that it defines."""
        return tuple(each.name for each in self.operations if each.defined is not None)

    @property
    def parts(self) -> tuple[Scenario, ...]:
        """What each group does, as a scenario without groups; of a scenario without groups, itself."""
        return tuple(map(self._part, self.groups)) or (self,)

    def steps_of(self, operation: OperationKind) -> tuple[str, ...]:
        """Return the names of the steps of an operation; none where they differ between groups."""
        own = OperationSettings(operation.name)
        found = {
            operation.steps_of(next((each for each in part.operations if each.name == operation.name), own))
            or (LARGE_OBJECT_STEPS.get(operation.name, ()) if part.has_segments else ())
            for part in self.parts
            if operation.name in part.operation_names
        }
        return found.pop() if len(found) == 1 else ()

    @property
    def expiry(self) -> str:
        """How long objects exist, in seconds: ``60`` or ``60 to 90``; empty where they do not expire."""
        ends = (each for each in (self.delete_after, self.delete_after_most) if each is not None)
        return " to ".join(map(str, ends))

    @property
    def operation_names(self) -> set[str]:
        """The operations that it draws; of a scenario with groups, without those of the groups."""
        used = [each.weights.items() for each in self.size_classes if each.share]
        return {name for weights in used for name, weight in weights if weight}

    @property
    def has_segments(self) -> bool:
        """Whether objects of some size class are in segments."""
        return any(each.segment_size for each in self.size_classes)

    @property
    def container_numbers(self) -> int:
        """The count of numbers of all containers; see :func:`~.names.split_container_number`."""
        return self.container_count * self.accounts

    @property
    def containers(self) -> int:
        """How many containers it has in each account, those of all groups together."""
        most: dict[tuple[str, str | None], int] = {}
        for part in self.parts:
            key = part.container_base, part.policy
            most[key] = max(most.get(key, 0), part.container_count)
        return sum(most.values())

    def _part(self, group: UserGroup) -> Scenario:
        return replace(
            self,
            name=f"{self.name} ({group.name})",
            size_classes=group.size_classes,
            user_count=group.user_count,
            run_seconds=sum(stage.seconds for stage in group.stages) or self.run_seconds,
            operations=self._operations_of(group),
            fail_if=(),
            events=(),
            groups=(),
            **{key.name: getattr(group, key.name) for key in list_group_keys(KeyTopic.LOAD)},
            **{name: own for name in _INHERITED_FIELDS if (own := getattr(group, name)) is not None},
        )

    def _operations_of(self, group: UserGroup) -> tuple[OperationSettings, ...]:
        """Return the settings of operations that hold for a group."""
        replaced = {each.name for each in group.operations}
        return (*(each for each in self.operations if each.name not in replaced), *group.operations)

    @property
    def stage_names(self) -> tuple[str, ...]:
        """The names of the stages, none of a scenario without."""
        return tuple(f"{number}: {stage}" for number, stage in enumerate(self.stages, 1))

    @property
    def plan(self) -> tuple[Stage, ...]:
        """The stages, or the one that a run without any consists of; each has its users."""
        users = (self.user_count, self.user_count)
        if self.stages:
            return tuple(replace(stage, users=stage.users or users) for stage in self.stages)
        rate = None if self.rate is None else (self.rate, self.rate)
        return (Stage(math.inf if self.run_seconds is None else self.run_seconds, users, rate),)

    @property
    def is_open(self) -> bool:
        """Whether operations are due at moments of their own, in some part of the run or of some group."""
        return any(stage.rate for part in self.parts for stage in part.plan)

    @property
    def is_staged(self) -> bool:
        """Whether it, or some of its groups, has stages."""
        return any(part.stages for part in self.parts)

    @property
    def thinks(self) -> bool:
        """Whether users, or those of some group, pause between operations."""
        return any(part.think_time for part in self.parts)

    @property
    def is_mixed(self) -> bool:
        """Whether some stages or groups have a rate and others have none."""
        return self.is_open and not all(stage.rate for part in self.parts for stage in part.plan)


# -- keys --------------------------------------------------------------------------------------


class KeyTopic(Enum):
    """What a key is about; what is said of keys to people is ordered by it."""

    WORK = 1
    PLACES = 2
    LOAD = 3
    REQUESTS = 4
    VERDICT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioKey:
    """A key of a scenario file, which has a field of :class:`Scenario` of the same name if any.

    Texts for people are empty where a key is not told of there, or in words that depend on other keys too.
    """

    name: str
    topic: KeyTopic
    #: What its value must be; None: it has a structure that :mod:`ssbench.scenario.scenario_reading` knows.
    rule: Rule | None = None
    #: A value in a file that is not the default, which tests try wherever the key may be.
    example: Any = None
    #: The option of ``run-scenario`` that replaces its value, as parsed arguments call it; empty: none.
    option: str = ""
    #: A second field of the scenario for its value, of the same type.
    also: str = ""
    #: The name that it had in ssbench 0.x, which may be used in its place.
    older: str = ""
    #: Whether its value may be null, which is as if the key was absent.
    nullable: bool = True
    #: Whether a group of users may have it too.
    in_groups: bool = False
    #: What is said of a group that has it, with ``{}`` for the value; empty: its name and the value.
    group_words: str = ""
    #: The type of its value for workers, with bounds; None: they do not get it, or not as it is.
    sent: Any = None
    #: Whether workers get it for the time of the benchmark alone, in place of ``sent``: as the field of
    #: :class:`ssbench.fleet.wire.RunParameters` that has its name.
    benchmark_only: bool = False
    #: Whether it holds for initial objects that are uploaded by themselves.
    in_preparation: bool = True
    #: The type of its value in JSON; None: it has another name there, or is not there.
    json: Any = None
    #: When it has to be there, for the documentation.
    required: str = "no"
    #: What holds without it, for JSON and the documentation; empty: nothing.
    default: str = ""
    #: What it means, for the documentation.
    meaning: str
    #: Its name among the parameters of a report.
    title: str = ""
    #: What ``check-scenario`` says of its value.
    outlook: str = ""
    #: What the full report says before its value.
    note: str = ""
    #: The kind of store over which alone it means something; empty: all.
    only_over: str = ""
    #: The check that runs make first where it has a value, as of
    #: :attr:`ssbench.scenario.operations.OperationKind.check`, with ``{}`` for the value.
    check: str = ""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of the scenario that hold its value, where the key has some."""
        return (self.name, self.also) if self.also else (self.name,)


SCENARIO_KEYS = (
    ScenarioKey(
        name="name",
        topic=KeyTopic.WORK,
        rule=TEXT_RULE,
        example="another",
        nullable=False,
        required="yes",
        meaning="1 to 900 bytes. It is the title of the report and part of the stat file's name, in which"
        " white space and ``/`` become ``_``.",
    ),
    ScenarioKey(
        name="sizes",
        topic=KeyTopic.WORK,
        nullable=False,
        in_groups=True,
        required="yes",
        meaning="The size classes, see below.",
    ),
    ScenarioKey(
        name="initial_files",
        topic=KeyTopic.WORK,
        nullable=False,
        in_groups=True,
        required="yes",
        meaning="How many objects of each size class are uploaded before the run; operations are distributed "
        "over the classes in the same proportion. A class that is absent, or has 0, is not used.",
    ),
    ScenarioKey(
        name="profile",
        topic=KeyTopic.WORK,
        rule=WEIGHTS_RULE,
        example={"read": 9, "head": 1},
        older="crud_profile",
        in_groups=True,
        required="unless every used class has its own",
        meaning="The weights of create, read, update and delete: ``[3, 4, 2, 2]``; a fifth is that of list."
        " Or a mapping: ``{read: 9, head: 5, list: 1}``. See `Operations`_.",
    ),
    ScenarioKey(
        name="operations",
        topic=KeyTopic.WORK,
        sent=tuple[OperationSettings, ...],
        in_preparation=False,
        meaning="Settings of operations, and custom operations, see `Operations`_.",
    ),
    ScenarioKey(
        name="get_headers",
        topic=KeyTopic.WORK,
        rule=HEADERS_RULE,
        example={"X-Newest": "true"},
        meaning='Header fields of reads, such as ``{X-Newest: "true"}``; the same as ``headers`` of'
        " ``read`` in ``operations``. With a ``Range`` each read must return that part.",
    ),
    ScenarioKey(
        name="container_put_headers",
        topic=KeyTopic.WORK,
        rule=HEADERS_RULE,
        example={"X-Container-Sharding": "on"},
        meaning="Header fields with which new containers are made.",
    ),
    ScenarioKey(
        name="operation_count",
        option="op_count",
        topic=KeyTopic.WORK,
        rule=make_whole_rule(1, 2**62),
        example=500,
        required="this, ``run_seconds`` or ``stages``",
        meaning="How many operations the run sends (``-o``, which also overrides ``run_seconds``).",
    ),
    ScenarioKey(
        name="run_seconds",
        option="run_seconds",
        topic=KeyTopic.WORK,
        rule=SECONDS_RULE,
        example="21s",
        required="this, ``operation_count`` or ``stages``",
        meaning="How long the run takes (``-r``, which also overrides ``operation_count``). If both keys"
        " are given, this one is used, with a warning.",
    ),
    ScenarioKey(
        name="user_count",
        option="user_count",
        topic=KeyTopic.WORK,
        rule=make_whole_rule(1, MAX_NUMBER),
        example=9,
        nullable=False,
        required="unless each stage has users",
        meaning="How many operations are in flight at once; with a rate, at most (``-u``).",
    ),
    ScenarioKey(
        name="container_base",
        topic=KeyTopic.PLACES,
        rule=CONTAINER_PART_RULE,
        example="mine",
        nullable=False,
        in_groups=True,
        group_words="containers {}",
        sent=str,
        json=str,
        default=DEFAULT_CONTAINER_BASE,
        meaning="The prefix of the containers' names: up to 200 printable characters, no ``/``. An"
        " underscore follows, unless it ends in a hyphen. S3 allows no underscores; its default ends in a"
        " hyphen.",
        title="names of containers begin with",
    ),
    ScenarioKey(
        name="container_count",
        option="container_count",
        topic=KeyTopic.PLACES,
        rule=make_whole_rule(1, MAX_NUMBER),
        example=7,
        nullable=False,
        in_groups=True,
        group_words="{} containers",
        default="100",
        meaning="How many containers the objects are spread over (``-c``).",
    ),
    ScenarioKey(
        name="objects_per_container",
        topic=KeyTopic.PLACES,
        rule=make_whole_rule(1, MAX_NUMBER),
        example=3,
        in_groups=True,
        meaning="Instead of ``container_count``: how many initial objects each container gets, see"
        " `Containers and names`_.",
    ),
    ScenarioKey(
        name="object_names",
        topic=KeyTopic.PLACES,
        rule=OBJECT_NAMES_RULE,
        example="{class}/{number}",
        sent=Annotated[str, Meta(max_length=4096)] | None,
        json=str,
        default=DEFAULT_TEMPLATE,
        meaning="How objects are named, see `Containers and names`_.",
        title="names of objects",
    ),
    ScenarioKey(
        name="container_concurrency",
        topic=KeyTopic.PLACES,
        rule=make_whole_rule(1, 10_000),
        example=3,
        nullable=False,
        json=Count,
        default="10",
        meaning="How many containers the master creates at once, up to 10,000.",
    ),
    ScenarioKey(
        name="accounts",
        option="set",
        topic=KeyTopic.PLACES,
        rule=make_whole_rule(1, MAX_ACCOUNTS),
        example=5,
        default="1",
        meaning="How many accounts the objects are spread over, up to 1,000, see `Several accounts`_.",
    ),
    ScenarioKey(
        name="account_base",
        topic=KeyTopic.PLACES,
        rule=ACCOUNT_BASE_RULE,
        example="tenant",
        default=DEFAULT_ACCOUNT_BASE,
        meaning="The prefix of these accounts' names, after the prefix of the reseller: up to 64 letters,"
        " digits, hyphens and underscores.",
    ),
    ScenarioKey(
        name="delete_after",
        option="delete_after",
        topic=KeyTopic.PLACES,
        rule=DELETE_AFTER_RULE,
        example="1m..90s",
        also="delete_after_most",
        sent=Annotated[int, Meta(ge=0, le=2**63 - 1)] | None,
        in_preparation=False,
        json=Seconds | None,
        meaning="Seconds after which Swift is to delete each created or updated object (``--delete-after``;"
        " 0: none). With a range, such as ``1m..1h``, each request draws a value; no object is used once"
        " the shorter time has passed.",
        check="delete_after",
    ),
    ScenarioKey(
        name="policy",
        option="policy",
        topic=KeyTopic.PLACES,
        rule=CONTAINER_PART_RULE,
        example="gold",
        in_groups=True,
        sent=str | None,
        json=str | None,
        meaning="The storage policy of the containers (``-p``).",
        title="storage policy",
    ),
    ScenarioKey(
        name="rate",
        option="rate",
        topic=KeyTopic.LOAD,
        rule=RATE_RULE,
        example=5,
        in_groups=True,
        json=PerSecond | None,
        meaning="Operations per second, started regardless of the store (``--rate``), see `Closed and"
        " open loop`_.",
    ),
    ScenarioKey(
        name="arrivals",
        option="set",
        topic=KeyTopic.LOAD,
        rule=ARRIVALS_RULE,
        example="poisson",
        in_groups=True,
        group_words="{}",
        json=str,
        default="even",
        meaning="With a rate: ``even`` intervals, random moments (``poisson``), or bursts,"
        " as in ``{burst: 4.2}`` (variance of the intervals over their squared mean; ``poisson`` has 1).",
    ),
    ScenarioKey(
        name="stages",
        topic=KeyTopic.LOAD,
        in_groups=True,
        meaning="Parts of the run, each with its own load, see `Stages`_.",
    ),
    ScenarioKey(
        name="groups",
        topic=KeyTopic.LOAD,
        meaning="Several kinds of users at once, see `Groups of users`_.",
    ),
    ScenarioKey(
        name="events",
        topic=KeyTopic.LOAD,
        rule=EVENTS_RULE,
        example=[{"at": "1s", "command": "true"}],
        meaning="Commands to run during the benchmark, as in ``[{at: 60s, command: systemctl stop"
        " swift-object}]``, with ``--allow events`` only. ``--at`` adds to them. See `During a fault"
        " <how-fault.rst>`_.",
    ),
    ScenarioKey(
        name="warmup",
        option="warmup",
        topic=KeyTopic.LOAD,
        rule=SECONDS_OR_0_RULE,
        example="2s",
        json=Seconds,
        default="0",
        meaning="Seconds at the start that the report excludes (``--warmup``). They are part of"
        " ``run_seconds``.",
        title="warm-up (s)",
    ),
    ScenarioKey(
        name="think_time",
        option="set",
        topic=KeyTopic.LOAD,
        rule=SECONDS_OR_0_RULE,
        example=0.5,
        in_groups=True,
        group_words="{:g} s think time",
        benchmark_only=True,
        json=Seconds,
        default="0",
        meaning="Seconds that a user waits after each operation, in a closed loop.",
        title="think time (s)",
    ),
    ScenarioKey(
        name="popularity",
        topic=KeyTopic.REQUESTS,
        rule=POPULARITY_RULE,
        example={"zipf": 0.9},
        in_groups=True,
        json=str,
        default="rotate",
        meaning="Which object an operation uses, see `Popularity`_.",
        title="popularity",
        outlook="objects are chosen by popularity: {}",
    ),
    ScenarioKey(
        name="reuse",
        topic=KeyTopic.REQUESTS,
        rule=REUSE_RULE,
        example={"share": 0.5, "distance": "1..9"},
        in_groups=True,
        json=str | None,
        meaning="The share of reads that repeat an earlier read, see `Popularity`_.",
        title="reuse of objects in use",
        outlook="reads are repeated: {}",
    ),
    ScenarioKey(
        name="body",
        topic=KeyTopic.REQUESTS,
        rule=BODY_RULE,
        example={"compressible": 0.6},
        sent=Body | None,
        json=str,
        default="random",
        meaning="The content of uploaded bodies, see `Bodies`_.",
        title="contents of objects",
        outlook="bodies are {0.in_full}",
        note="Bodies",
    ),
    ScenarioKey(
        name="metadata",
        topic=KeyTopic.REQUESTS,
        rule=METADATA_RULE,
        example={"number": 5, "size": 100},
        sent=Metadata | None,
        json=str | None,
        meaning="The metadata of uploads, see `Metadata`_.",
        title="metadata",
        outlook="each upload has metadata: {}",
        note="Metadata of each upload",
        check="metadata",
    ),
    ScenarioKey(
        name="connections",
        topic=KeyTopic.REQUESTS,
        rule=CONNECTIONS_RULE,
        example={"new": 0.1, "tls_resume": True},
        in_groups=True,
        sent=ConnectionSettings | None,
        in_preparation=False,
        json=str,
        default="kept",
        meaning="Whether requests use new or kept connections, see `Connections`_.",
        title="connections",
        outlook="connections: {}",
        note="Connections",
    ),
    ScenarioKey(
        name="s3_payload",
        option="set",
        topic=KeyTopic.REQUESTS,
        rule=PAYLOAD_RULE,
        example="chunked",
        nullable=False,
        in_groups=True,
        sent=PayloadMode,
        in_preparation=False,
        json=str,
        default="unsigned",
        meaning="The checksum of bodies over the S3 API: none (``unsigned``), SHA-256 (``signed``) or"
        " CRC32 in chunks (``chunked``), see `s3.rst <s3.rst>`_.",
        check="payload {}",
        title="payload over S3",
        note="Payload over S3",
        only_over="s3",
    ),
    ScenarioKey(
        name="fail_if",
        topic=KeyTopic.VERDICT,
        rule=CONDITIONS_RULE,
        example=["read.p99 > 200ms"],
        meaning="A condition on the figures of the run, or a list of them, such as ``[read.p99 > 200ms,"
        " errors > 0.1%]``; if one is true, the exit code is 5 (`reports.rst"
        " <reports.rst#thresholds>`_). ``--fail-if`` adds to them.",
    ),
)


def list_group_keys(topic: KeyTopic) -> Iterator[ScenarioKey]:
    """Yield the keys that a group of users may have."""
    return (key for key in SCENARIO_KEYS if key.in_groups and key.topic is topic)


def _find_rules(keys: Iterator[ScenarioKey]) -> dict[str, Rule]:
    """Return the rules of keys that have no structure of their own, the older name of a key first."""
    return {name: key.rule for key in keys if key.rule for name in (key.older, key.name) if name}


#: The keys of a file, without those that have a structure of their own.
SCENARIO_RULES = _find_rules(iter(SCENARIO_KEYS))

#: The keys whose values options of ``run-scenario`` replace, each with that option; ``set`` is for several.
OVERRIDING_OPTIONS = {key.name: key.option for key in SCENARIO_KEYS if key.option}
STRUCTURED_KEYS = tuple(key.name for key in SCENARIO_KEYS if key.rule is None)

#: The same of a group of users, which has names of its own for two of them.
GROUP_RULES = {
    "name": GROUP_NAME_RULE,
    "users": SCENARIO_RULES["user_count"],
    **_find_rules(list_group_keys(KeyTopic.WORK)),
    **_find_rules(list_group_keys(KeyTopic.LOAD)),
    **_find_rules(list_group_keys(KeyTopic.PLACES)),
    **{row.name: row.keys[row.group_key] for row in OPERATIONS if row.group_key},
    **_find_rules(list_group_keys(KeyTopic.REQUESTS)),
}
STRUCTURED_GROUP_KEYS = tuple(key.name for key in SCENARIO_KEYS if key.rule is None and key.in_groups)

#: The keys that may be there with an empty value, in any mapping of a file.
NULLABLE_KEYS = {name for key in SCENARIO_KEYS if key.nullable for name in (key.name, key.older) if name}

#: What a scenario says without a key.
_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Scenario)}

#: The same of a group; its rate and its stages are told of as its load.
_GROUP_DEFAULTS: dict[str, Any] = {
    field.name: field.default for field in fields(UserGroup) if field.name not in {"rate", "stages"}
}

#: The keys of load, in place of which each group of users has its own.
GROUP_LOAD_KEYS = (
    *("user_count", "operation_count"),
    *(key.name for key in list_group_keys(KeyTopic.LOAD) if key.rule),
)

#: The fields that a group has from its scenario where it does not say otherwise.
_INHERITED_FIELDS = tuple(
    key.name
    for topic in (KeyTopic.PLACES, KeyTopic.REQUESTS)
    for key in list_group_keys(topic)
    if key.name in {field.name for field in fields(UserGroup)}
)

#: The fields of a scenario that workers get as they are, with their types there.
SENT_FIELDS = {name: key.sent for key in SCENARIO_KEYS if key.sent is not None for name in key.fields}

#: Those that workers get for the time of the benchmark alone, with what holds in all other phases.
BENCHMARK_FIELDS = {
    name: _DEFAULTS[name] for key in SCENARIO_KEYS if key.benchmark_only for name in key.fields
}

# To a type checker it is the scenario, of which it has some fields.
if TYPE_CHECKING:
    SentScenario = Scenario
else:
    SentScenario = defstruct(
        "SentScenario",
        [(name, kind, _DEFAULTS[name]) for name, kind in SENT_FIELDS.items()],
        namespace={"__doc__": "What workers get of a scenario; of each group of users, what that does."},
        module=__name__,
        array_like=True,
        frozen=True,
    )

#: What workers get of a scenario that has the default of all that.
DEFAULT_SENT_SCENARIO = SentScenario(**dict[str, Any]())


def make_sent_scenario(scenario: Scenario) -> SentScenario:
    """Return what workers get of a scenario."""
    return SentScenario(**{name: getattr(scenario, name) for name in SENT_FIELDS})


def make_upload_scenario(scenario: Scenario) -> Scenario:
    """Return a scenario as its initial objects are uploaded by themselves, many of them by creates.

    What it says of the operations of a run (lives of objects, settings, new connections) is not for these.
    """
    dropped = [key for key in SCENARIO_KEYS if not key.in_preparation]
    of_groups = {key.name: _GROUP_DEFAULTS[key.name] for key in dropped if key.in_groups}
    of_scenario = {name: _DEFAULTS[name] for key in dropped for name in key.fields}
    # The weights of size classes name operations that the scenario defines.
    of_scenario["operations"] = tuple(each for each in scenario.operations if each.defined is not None)
    return replace(
        scenario,
        groups=tuple(replace(group, **of_groups) for group in scenario.groups),
        **of_scenario,
    )


# -- owner -------------------------------------------------------------------------------------


#: Swift takes 256 bytes of a value.
_MAX_OWNER_BYTES = 200


def make_owner(scenario: Scenario, size_class: SizeClass) -> str:
    """Return what the metadata of the objects of a size class says: a digest, and the scenario's name.

    It is the same as long as the scenario, the class, its sizes, the bodies and the metadata are; users,
    weights and the number of objects do not matter.
    """
    parts = [scenario.name, size_class.name, str(size_class.size_min), str(size_class.size_max)]
    if size_class.shape is not None:
        parts.append(repr(size_class.shape))
    if size_class.segment_size:
        parts.append(f"{size_class.segments} segments of {size_class.segment_size}")
    if scenario.body is not None and scenario.body.identity:
        parts.append(scenario.body.identity)
    if scenario.metadata is not None:
        parts.append(repr(scenario.metadata))
    digest = blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{digest} {quote(scenario.name, ' ', errors='replace')}"[:_MAX_OWNER_BYTES].rstrip()


def parse_owner_name(owner: str) -> str:
    """Return the name of the scenario that the metadata of an object says it is of."""
    return unquote(owner.partition(" ")[2])[:_MAX_OWNER_BYTES]


def explain_replacement(replaced: int, of_others: int, *, verified: bool = False, exact: bool = False) -> str:
    """Return why initial objects were uploaded although there were some of their names; or nothing.

    So many were ``replaced``, of which so many were objects ``of_others``. ``exact``: each has to have the
    size that is prepared, and not any of its class.
    """
    if not replaced:
        return ""
    if verified:
        return "to verify their content"
    size = "size not the one to prepare" if exact else "size outside the range of their class"
    if not of_others:
        return size
    others = "objects of another scenario"
    return others if of_others == replaced else f"{of_others} {others}, {replaced - of_others} {size}"
