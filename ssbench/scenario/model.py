"""A scenario, as frozen records.

Whose the objects of a run are: what their metadata says, so that another scenario does not reuse them.

Two scenarios may have a size class of the same name. The sizes of both may overlap, so the size of an object
does not tell which of them it is of.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Literal
from urllib.parse import quote, unquote

from ssbench.base.measures import PerhapsSeconds
from ssbench.scenario.names import DEFAULT_ACCOUNT_BASE
from ssbench.scenario.operations import Header, OperationKind, OperationSettings
from ssbench.scenario.sizes import Shape
from ssbench.scenario.structured_values import Body, ConnectionSettings, Metadata, Popularity, Reuse

#: Weights of operations by name, or those of create, read, update and delete in this order.
Weights = tuple[float, float, float, float] | dict[str, float]

#: The operations that a list of four weights stands for.
CRUD_OPERATIONS = ("create", "read", "update", "delete")

#: Those of a list of five.
CRUD_AND_LIST_OPERATIONS = (*CRUD_OPERATIONS, "list")


@dataclass(frozen=True, slots=True)
class SizeClass:
    """A size class that is in use: sizes in bytes, both ends included.

    ``crud_profile`` holds the weights that apply to this class (its own, else the scenario's), as the
    file gives them. ``shape`` is how sizes are distributed between the ends; None: each is as likely.
    ``weight`` is its share of the operations, relative to those of other classes; None: they have the shares
    of their initial files.
    """

    name: str
    size_min: int
    size_max: int
    initial_files: int
    crud_profile: Weights
    shape: Shape | None = None
    weight: float | None = None

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

    Between the two the load changes evenly. ``users`` are how many operations are in flight in a closed
    loop, and how many may be at most in an open one (None: the user count of the scenario). ``rate`` is
    operations a second; None: a closed loop. ``seconds`` is infinite, which JSON has as null, where
    a number of operations ends the run.
    """

    seconds: PerhapsSeconds
    users: tuple[int, int] | None = None
    rate: tuple[float, float] | None = None

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

    ``size_classes`` are those of the scenario, in the same order, with this group's weights and operations;
    those that it does not use have no weight. ``user_count``, ``rate``, ``arrivals``, ``stages`` and
    ``think_time`` are as in a scenario. None: the containers, the policy, the popularity and so on of the
    scenario. ``operations`` are settings that replace those of the scenario of the same name.
    """

    name: str
    size_classes: tuple[SizeClass, ...]
    user_count: int
    rate: float | None = None
    arrivals: Literal["even", "poisson"] = "even"
    stages: tuple[Stage, ...] = ()
    think_time: float = 0.0
    container_base: str | None = None
    container_count: int | None = None
    policy: str | None = None
    operations: tuple[OperationSettings, ...] = ()
    popularity: Popularity | None = None
    reuse: Reuse | None = None
    connections: ConnectionSettings | None = None

    def __str__(self) -> str:
        """Return all of the group in words: ``web 8 users, small x 20 (read 9, create 1)``."""
        load = f"{self.rate:g}/s, {self.user_count}" if self.rate else f"{self.user_count}"
        if self.stages:
            load = f"{', '.join(f'{each} for {each.seconds:g} s' for each in self.stages)}, {self.user_count}"
        others = [
            "poisson" if self.arrivals == "poisson" else "",
            f"{self.think_time:g} s think time" if self.think_time else "",
            *(
                f"{each.name} x {each.share:g}{_count_initial_files(each)} ({_name_weights(each.weights)})"
                for each in self.size_classes
                if each.share
            ),
            "" if self.container_base is None else f"containers {self.container_base}",
            "" if self.container_count is None else f"{self.container_count} containers",
            "" if self.policy is None else f"policy {self.policy}",
            *(f"{each.name} {', '.join(each.words)}" for each in self.operations),
            "" if self.popularity is None else f"popularity {self.popularity}",
            "" if self.reuse is None else f"reuse {self.reuse}",
            "" if self.connections is None else f"connections {self.connections}",
        ]
        return ", ".join([f"{self.name} {load} user{'s' * (self.user_count != 1)}", *filter(None, others)])


@dataclass(frozen=True, slots=True)
class Scenario:
    """A benchmark to run. ``size_classes`` are those with initial files, in the order of ``sizes``.

    One of ``run_seconds`` and ``operation_count`` is set, the other is None. With ``stages``, which have
    users and rates of their own, ``run_seconds`` is their sum and ``user_count`` the most users of any.
    ``rate`` operations a second make an open loop, in which operations are due at moments that ``arrivals``
    is the rule of: evenly, or as a Poisson process. The first ``warmup`` seconds are left out of reports.
    A user of a closed loop pauses for ``think_time`` seconds after each operation.
    ``operations`` are the settings of operations, ``container_put_headers`` the header fields with which
    containers are made. ``popularity`` is how objects are chosen (None: in turn), ``reuse`` how many reads
    are for what was read before. ``body`` is what is in bodies (None: random bytes), ``metadata``
    what uploads have besides. ``connections`` are those of requests (None: kept ones). ``object_names`` is
    the template of names of objects (:mod:`ssbench.scenario.names`; None: the usual one).
    Objects expire after ``delete_after`` seconds, or after a time from that to ``delete_after_most``, drawn
    for each; none is used any more after the shorter time.
    ``data`` is the scenario file's own content, as plain data. ``fail_if`` are conditions
    (:mod:`ssbench.scenario.conditions`) under which a run fails.

    The containers are in each of ``accounts``. Where these are reached with the token of a reseller admin,
    their names end in ``account_base`` and a number.

    ``phase`` is by which part of their distance operations are due later that are due evenly: of several
    masters each has its own.

    With ``groups``, the users of each do what that group says, all at once; ``user_count`` is their sum.
    :attr:`parts` are what each group does, as a scenario of its own.
    """

    name: str
    size_classes: tuple[SizeClass, ...]
    user_count: int
    operation_count: int | None = None
    run_seconds: float | None = None
    container_base: str = "ssbench"
    container_count: int = 100
    container_concurrency: int = 10
    delete_after: int | None = None
    policy: str | None = None
    data: dict[str, object] | None = None
    rate: float | None = None
    arrivals: Literal["even", "poisson"] = "even"
    stages: tuple[Stage, ...] = ()
    warmup: float = 0.0
    think_time: float = 0.0
    fail_if: tuple[str, ...] = ()
    operations: tuple[OperationSettings, ...] = ()
    container_put_headers: tuple[Header, ...] = ()
    groups: tuple[UserGroup, ...] = ()
    popularity: Popularity | None = None
    reuse: Reuse | None = None
    delete_after_most: int | None = None
    phase: float = 0.0
    body: Body | None = None
    object_names: str | None = None
    accounts: int = 1
    account_base: str = DEFAULT_ACCOUNT_BASE
    metadata: Metadata | None = None
    connections: ConnectionSettings | None = None

    @property
    def parts(self) -> tuple[Scenario, ...]:
        """What each group does, as a scenario without groups; of a scenario without groups, itself."""
        return tuple(map(self._part, self.groups)) or (self,)

    def steps_of(self, operation: OperationKind) -> tuple[str, ...]:
        """Return the names of the steps of an operation; none where they differ between groups."""
        own = OperationSettings(operation.name)
        found = {
            operation.steps_of(next((each for each in part.operations if each.name == operation.name), own))
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
    def container_numbers(self) -> int:
        """How many numbers the containers of all accounts have; see :func:`~.names.in_account`."""
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
            container_base=self.container_base if group.container_base is None else group.container_base,
            container_count=self.container_count if group.container_count is None else group.container_count,
            policy=self.policy if group.policy is None else group.policy,
            rate=group.rate,
            arrivals=group.arrivals,
            stages=group.stages,
            think_time=group.think_time,
            operations=self._operations_of(group),
            popularity=self.popularity if group.popularity is None else group.popularity,
            reuse=self.reuse if group.reuse is None else group.reuse,
            connections=self.connections if group.connections is None else group.connections,
            fail_if=(),
            groups=(),
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
