"""What happens in a fleet, as data. The sentences about it are made in :mod:`ssbench.run.worker_messages`."""

from __future__ import annotations

from dataclasses import dataclass

from ssbench.fleet.worker_state import WorkerState


@dataclass(frozen=True, slots=True)
class Event:
    """Something that the user may want to know."""


@dataclass(frozen=True, slots=True)
class InvalidMessage(Event):
    """A message was dropped because it cannot be decoded, and ``why``."""

    why: str


@dataclass(frozen=True, slots=True)
class PortNews(Event):
    """Something at the ports: a kind of peers that is refused, or their end; ``text`` says what."""

    text: str


@dataclass(frozen=True, slots=True)
class WorkerEvent(Event):
    """Something that happened to a worker."""

    worker: WorkerState


@dataclass(frozen=True, slots=True)
class WorkerJoined(WorkerEvent):
    """The worker is ready for the first time; it runs ``capacity`` jobs at once."""

    capacity: int


class Back(WorkerEvent):
    """The worker was lost and is ready again."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Lost(WorkerEvent):
    """No heartbeat came for ``seconds``; ``jobs`` are lost with the worker."""

    seconds: float
    jobs: int


@dataclass(frozen=True, slots=True)
class CutOff(WorkerEvent):
    """Heartbeats arrive, but no ping was answered for ``seconds``; ``jobs`` are lost."""

    seconds: float
    jobs: int


class Unreachable(WorkerEvent):
    """Heartbeats arrive, but no ping has been answered since the worker came."""

    __slots__ = ()


class Unanswered(WorkerEvent):
    """As Unreachable, but another worker on its host is ready, so that nothing blocks the way."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Overdue(WorkerEvent):
    """The worker has held a job for over ``seconds``; it is not used any more and ``jobs`` are lost."""

    seconds: float
    jobs: int


@dataclass(frozen=True, slots=True)
class Unconfirmed(WorkerEvent):
    """The worker has not confirmed these ``jobs`` in time; they are lost."""

    jobs: int


@dataclass(frozen=True, slots=True)
class Dropped(WorkerEvent):
    """The worker no longer has these ``jobs``, which it had confirmed; they are lost."""

    jobs: int


@dataclass(frozen=True, slots=True)
class Refused(WorkerEvent):
    """The worker is not used; ``reason`` is sent to it too: "has the id of ..."."""

    reason: str


@dataclass(frozen=True, slots=True)
class Left(WorkerEvent):
    """The worker has ended; ``reason`` is its own, or its exit code."""

    reason: str


class Full(WorkerEvent):
    """The worker is not used because there are too many already. Reported once."""

    __slots__ = ()


class Foreign(WorkerEvent):
    """The worker sent a result of a job that it does not have. Reported once a worker."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Invalid(WorkerEvent):
    """The worker sent an impossible result, and ``why`` it is. Reported once a worker."""

    why: str
