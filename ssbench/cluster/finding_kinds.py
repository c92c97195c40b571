"""What stands out in the logs of a run: a class for each kind, with what it knows and what it says.

The sentences of a finding say who, by how much, in which share of the requests; then how sure, and what next.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

from ssbench.cluster.rank_tests import PeerDifference, Shown
from ssbench.cluster.server_times import DifferenceCourse, Stretch
from ssbench.document.columns import format_plural
from ssbench.document.units import (
    format_change,
    format_latency,
    format_moment,
    format_number,
    format_probability,
    format_share,
)

#: A wait that is said, in seconds.
LONG_WAIT_SECONDS = 0.1

#: Of more requests proxies asked for handoffs because devices failed.
_MIN_HANDOFF_SHARE = 0.02

#: A server's own time shows a delay if it shows this share of it.
_SHOWN_SHARE = 0.25

#: What takes longer, by the part that shows it.
_PART_PHRASES = {
    "own": "its requests take {} by its own log",
    "reads": "its reads take {} by its own log",
    "deletes": "its deletes take {} by its own log",
    "updates": "container updates with it take {} by its own log",
    "lookups": "proxies' requests to it take {} by its own log",
    "account updates": "the updates of new containers take {} by its own log",
    "own part": "its own part of requests takes {}",
    "way": "the way to it takes {}",
    "last": "writes wait for it: its replica takes {} than the others of the same write, by their own logs",
    "told": "an object server that tells it of a new object takes {} than the others of the same write",
}
#: The same of a container of the run.
_CONTAINER_PHRASES = {"updates": "its updates take {} by the container servers' logs"}
#: What is slow where few of them are.
_RARE_PHRASES = {
    "own": "its requests (by its own log)",
    "updates": "container updates with it (by its own log)",
}
_PART_NAMES = {
    "reads": "reads",
    "deletes": "deletes",
    "updates": "container updates",
    "lookups": "look-ups",
    "own part": "own part",
    "way": "way to it",
}
_DISK_STEPS = "iostat -x on its node, the kernel's log, swift-drive-audit"
_BEFORE_STEPS = "network, CPU and workers of the node, ss -lt for a queue of connections"
_NEXT_STEPS = {
    "own": _DISK_STEPS,
    "reads": _DISK_STEPS,
    "deletes": _DISK_STEPS,
    "last": _DISK_STEPS,
    "told": _BEFORE_STEPS,
    "updates": "iostat -x of the device with the container's database, and how many objects it lists",
    "lookups": "iostat -x of the device with the databases",
    "account updates": "iostat -x of the device with the databases",
    "own part": "CPU and workers of the proxy, its middleware, memcached",
    "way": "the network and the load balancer before the proxy, its CPU and backlog",
}
_ANSWER_STEPS = "the log of its server, ss -lt for a queue of connections, iostat -x on its node"
_NO_LINE_NOTE = "proxies had no answer, or the log given has no line of the run."
_BUSY_STEPS = "load, CPU and network of the node, workers of the server, iostat -x"


#: Times by a server's own clock, which a generator that is late does not change.
_OWN_CLOCK_PARTS = (
    "own",
    "reads",
    "deletes",
    "updates",
    "lookups",
    "account updates",
    "last",
    "told",
    "own part",
)

#: A device's own time of requests, which should be most of what they cost.
_OWN_PARTS = ("own", "reads", "deletes")

#: A larger probability, in a part of the run, is little evidence.
_WEAK_PROBABILITY = 0.002
#: Less than so many times as many requests are not said.
_MIN_TIMES_AS_BUSY = 1.2

#: What is said where the time that clients felt is not in the suspect's own log.
_UNSHOWN_NOTE = (
    "Its own log does not show it: the time passes before its clock starts (network, queue, a busy"
    " process) or while the body of a read is sent."
)
#: The same of a container server, by its updates.
_NOT_IN_UPDATES_NOTE = (
    "Its own log does not show it: the time passes before its clock starts (network, queue, a busy process)."
)
_UNCLEAR_NOTE = "Its own log has too few of its requests to tell whether it shows that."


# -- What kinds have in common ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Work:
    """What was at work on a suspect besides the run, in the seconds in which it was slow.

    Amounts are in requests a second on a device, or else shares of the time, as ``unit`` says; None where the
    logs do not tell.
    """

    who: str  # a background daemon of Swift, or ``other clients``
    unit: str  # ``requests`` or ``time``
    on: str  # ``device`` or ``node``: what it worked on
    during: float  # the amount in the seconds in which the suspect was slow
    before: float | None = None  # the same of as many seconds before the run
    others: float | None = None  # median of the other devices or nodes
    whose: str = ""  # of a finding of several, which of them; else empty


@dataclass(frozen=True)
class ClusterFinding(ABC):
    """Something that stands out. Times are in seconds."""

    kind: ClassVar[str]  # its name in JSON
    headline: ClassVar[str] = ""  # what a verdict calls it; empty: verdicts do not name it

    #: ``proxy``, ``proxy process``, ``node``, ``process``, ``device`` or ``container``; empty: none of these.
    level: str
    name: str  # who it is; empty: nobody in particular
    beside: list[str] = field(default_factory=list, kw_only=True)  # what recon saw of its node
    statsd: str = field(default="", kw_only=True)  # what StatsD says of its node

    def describe(self) -> str:
        """Return what it says, in sentences."""
        return self._sentences()

    @abstractmethod
    def _sentences(self) -> str: ...

    @property
    def candidates(self) -> list[str]:
        """Who it is, or each of those that it may be."""
        return [self.name]

    @property
    def names(self) -> list[str]:
        """All whom it is about."""
        return self.candidates

    @property
    def marked(self) -> list[str]:
        """The names that tables mark."""
        return []

    @property
    def is_certain(self) -> bool:
        """Whether a server's own clock shows it, so that it does not depend on the load generator."""
        return False

    @property
    def is_minor(self) -> bool:
        """Whether it is said beside an all-clear."""
        return False

    def list_facts(self) -> list[str]:
        """Return how much, in which share of the requests and since when, each in a few words."""
        return [fact for fact in (self._size(), self._share(), self._when()) if fact]

    def _size(self) -> str:
        return ""

    def _share(self) -> str:
        return ""

    def _when(self) -> str:
        return ""

    def _recon(self) -> str:
        where = "their nodes" if len(self.candidates) > 1 else "its node"
        recon = f"Recon saw on {where}: {', '.join(self.beside)}." if self.beside else ""
        return f"{recon} By statsd {self.statsd}.".strip() if self.statsd else recon


@dataclass(frozen=True)
class CountedFinding(ClusterFinding):
    """Requests, or times, that were counted."""

    requests: int = 0  # how many it rests on
    share: float | None = None  # share of the run's requests in which it took part

    @property
    def _shared_noun(self) -> str:
        """What the share is of."""
        return "all requests"

    def _share(self) -> str:
        if self.share is not None and not math.isnan(self.share):
            return f"{format_share(self.share)} of {self._shared_noun}"
        return _format_times(self.requests) if self.requests > 1 else ""

    def _of_all(self) -> str:
        return "" if self.share is None else f" ({format_share(self.share)} of all)"


@dataclass(frozen=True)
class PassingFinding(CountedFinding):
    """The same, from when to when."""

    stretch: Stretch | None = field(default=None, kw_only=True)  # from the first to the last of them

    def _when(self) -> str:
        return self._stretch()[2:]

    def _stretch(self) -> str:
        """Return when there were requests of a finding: from the first to the last of them."""
        when = self.stretch
        if when is None:
            return ""
        if when.ends - when.begins < 0.05:
            return f", at {format_moment(when.begins)} s of {format_moment(when.length)} s"
        return (
            f", from {format_moment(when.begins)} s to {format_moment(when.ends)} s of"
            f" {format_moment(when.length)} s"
        )


@dataclass(frozen=True)
class MeasuredFinding(CountedFinding):
    """Requests that take longer than others."""

    difference: PeerDifference | None = field(default=None, kw_only=True)  # by how much
    interval: tuple[float, float] | None = field(default=None, kw_only=True)  # 95 % interval of that
    request: float | None = field(default=None, kw_only=True)  # median of the requests concerned
    probability: float | None = field(default=None, kw_only=True)  # adjusted for all tests
    course: DifferenceCourse | None = field(default=None, kw_only=True)  # how it went over the run

    def _size(self) -> str:
        measured = self.difference
        if measured is None:
            return ""
        return f"{format_latency(measured.mean if self._by_mean() else measured.median)} longer"

    def _longer(self) -> str:
        measured = self.difference
        if measured is None:
            return "longer"
        by_mean = self._by_mean()
        value = measured.mean if by_mean else measured.median
        return f"{format_latency(value)} longer{' (mean: not all of them)' if by_mean else ''}"

    def _certainty(self) -> str:
        """Return when it was so, how much that is beside a request, and how sure."""
        measured = self.difference
        said = [self._when()]
        if measured is not None:
            by_mean = self._by_mean()
            if self.request:
                value = measured.mean if by_mean else measured.median
                said.append(f"{format_change(value / self.request)} % of a request")
            if self.interval and not by_mean and not math.isnan(self.interval[0]):
                low, high = self.interval
                said.append(f"95%: {format_latency(low)} to {format_latency(high)}")
        said.append(_format_probability(self.probability))
        text = "; ".join(filter(None, said))
        return f"{text[:1].upper()}{text[1:]}." if text else ""

    def _when(self) -> str:
        course = self.course
        if course is None:
            return ""
        length = course.slices[-1].ends
        if course.begins is None or course.ends is None:
            when = "in no part of the run more than in others" if self._by_mean() else "throughout the run"
            return f"{when} ({format_moment(length)} s)"
        return (
            f"from {format_moment(course.begins)} s to {format_moment(course.ends)} s of"
            f" {format_moment(length)} s"
        )

    def _by_mean(self) -> bool:
        return self.difference is not None and self.difference.mean > 2 * self.difference.median


@dataclass(frozen=True)
class SuspectFinding(MeasuredFinding):
    """A server, a proxy or a container with which requests take longer."""

    _is_definite: ClassVar[bool] = False  # it is slow, and no other can be in its place

    _: KW_ONLY
    #: The time that shows it best (:mod:`ssbench.cluster.own_times`; ``last``: replicas of writes that end
    #: last; ``told``: container servers that these were told to; ``account updates``: of containers that the
    #: run made).
    part: str = ""
    group: str | None = None  # ``reads`` or ``writes`` where these alone show it
    #: Which share of its times are longer, where that is of few; ``difference`` is then of these.
    rare: float | None = None
    sizes: str = ""  # sizes of the objects of which it is, in words, where that is not of all
    own: dict[str, Shown] = field(default_factory=dict)  # differences of the times that are its own, by part
    #: Differences of the client's time, for reads and for writes.
    felt: dict[str, PeerDifference] = field(default_factory=dict)
    members: list[str] = field(default_factory=list)  # devices of a process or node
    same: list[str] = field(default_factory=list)  # names that the evidence fits as well
    ties: list[str] = field(default_factory=list)  # those whose own times rule them out
    work: list[Work] = field(default_factory=list)  # what else was at work there
    #: Daemons of which lines are given of its node, or of each node of several; None: none are of any node.
    daemons: list[str] | None = None
    #: What proxies waited, as a rule, for object servers that told a container server of an object.
    waited: float | None = None

    @property
    def names(self) -> list[str]:
        """It, and those that the evidence fits as well."""
        return [self.name, *self.same]

    @property
    def is_certain(self) -> bool:
        """Whether a server's own clock shows it, so that it does not depend on the load generator."""
        return self._is_definite and self.part in _OWN_CLOCK_PARTS

    @property
    def _shared_noun(self) -> str:
        return "updates of new containers" if self.part == "account updates" else super()._shared_noun

    def _size(self) -> str:
        return super()._size() if self.waited is None else f"writes wait {format_latency(self.waited)}"

    def _who(self) -> str:
        return _name_suspect(self.level, self.name, self.members)

    def _all_work(self) -> str:
        return _describe_all_work(self.work, self.daemons, several=len(self.candidates) > 1)

    def _say(self, head: str) -> str:
        pattern = _PART_PHRASES.get(self.part, f"{self.group or 'requests'} with it take {{}}")
        if self.level == "container":
            pattern = _CONTAINER_PHRASES.get(self.part, "requests for its objects take {}")
        if self.rare is not None:
            pattern = (
                f"{format_share(self.rare)} of {_RARE_PHRASES.get(self.part, 'requests with it')} take {{}}"
            )
        if self.sizes:
            pattern = f"with objects of {self.sizes} {pattern}"
        text = f"{head}: {pattern.format(self._longer())}{self._in_share()}."
        for more in (
            self._certainty(),
            self._other_measure(),
            self._ruled_out(),
            self._recon(),
            self._all_work(),
            f"Next: {self._next_steps()}.",
        ):
            text += f" {more}" if more else ""
        return text

    def _in_share(self) -> str:
        if self.share is None or math.isnan(self.share):
            return ""
        if self.part == "lookups":
            return f"; proxies asked it in {format_share(self.share)} of all requests"
        return (
            f", in {format_share(self.share)} of "
            f"{'them' if self.part == 'account updates' else 'all requests'}"
        )

    def _other_measure(self) -> str:
        """Return the other leg: what clients felt of it, or what the servers' own clocks show of it."""
        if self.part == "last" or self.difference is None:
            return ""
        if self.part == "told":
            return _NOT_IN_UPDATES_NOTE
        if self.part != "total":
            felt = [f"{name} {format_signed_duration(_size_of(each))}" for name, each in self.felt.items()]
            said = f"Clients: {', '.join(felt)}." if felt else ""
            if self.part in _OWN_PARTS and _size_of(self.difference) < _SHOWN_SHARE * max(
                map(_size_of, self.felt.values()), default=0.0
            ):
                return f"{said} {_UNSHOWN_NOTE}"
            return said
        felt_here = _size_of(self.difference)
        return self._shown(felt_here) or self._not_shown(felt_here)

    def _not_shown(self, felt_here: float) -> str:
        """Return that its own log shows little of what clients felt, where that tells something."""
        updates = self.own.get("updates")
        if updates and updates.high < _SHOWN_SHARE * felt_here:
            return _NOT_IN_UPDATES_NOTE
        if self.group == "writes" or self.level in ("proxy", "proxy process", "container"):
            return ""
        unclear = self.own and not any(each.high < _SHOWN_SHARE * felt_here for each in self.own.values())
        return _UNCLEAR_NOTE if unclear else _UNSHOWN_NOTE

    def _shown(self, felt_here: float) -> str:
        """Return what its own log shows of a difference that clients felt; nothing where that is little.

        A few requests may take longer by chance.
        """
        shown = {
            part: _size_of(each)
            for part, each in self.own.items()
            if each.evident and _size_of(each) >= _SHOWN_SHARE * felt_here
        }
        if parts := [
            f"{_PART_NAMES[part]} {format_signed_duration(size)}"
            for part, size in shown.items()
            if part in _PART_NAMES
        ]:
            return f"Its own log: {', '.join(parts)}."
        if self.group == "writes" and "last" in shown:
            return (
                f"Its own log: its replica {format_signed_duration(shown['last'])} beside the"
                f" others of the same write."
            )
        return ""

    def _ruled_out(self) -> str:
        if not self.ties:
            return ""
        text = f"The ring puts it together with {list_names(self.ties)}, whose own times rule them out"
        if len(self.ties) > 1 and {part for part, each in self.own.items() if each.evident} == {"last"}:
            # Writes in which both others begin late look the same, and the ring has no writes without them.
            text += ", unless each of them is slow before its clock starts"
        return f"{text}."

    def _next_steps(self) -> str:
        if self.level in ("process", "node"):
            return _BUSY_STEPS
        if self.level == "container":
            return "how many objects it lists, whether it should be sharded, the devices with its database"
        if self.part in ("total", *_OWN_PARTS) and self.level == "device":
            return (
                _BEFORE_STEPS
                if self._other_measure().endswith((_UNSHOWN_NOTE, _NOT_IN_UPDATES_NOTE))
                else _DISK_STEPS
            )
        return _NEXT_STEPS.get(self.part, _NEXT_STEPS["own part"])


# -- The kinds -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SlowServer(SuspectFinding):
    """A suspect."""

    kind = "slow"
    headline = "Slow"
    _is_definite = True

    @property
    def marked(self) -> list[str]:
        """It, and its devices."""
        return [self.name, *self.members]

    def _sentences(self) -> str:
        if self.waited is None or self.difference is None:
            perhaps = "perhaps slow (repeat the run)" if self._is_weak() else "slow"
            return self._say(f"{self._who()} is {perhaps}")
        size = _size_of(self.difference)
        sentences = (
            f"Writes wait {format_latency(self.waited)} for {self._who()}: it takes {format_latency(size)} "
            "longer than others to note a new object, and proxies wait as long as that, or "
            "post_quorum_timeout.",
            self._certainty(),
            self._other_measure() if self.part == "told" else "",
            self._recon(),
            self._all_work(),
            f"Next: {self._next_steps()}.",
        )
        return " ".join(filter(None, sentences))

    def _is_weak(self) -> bool:
        """Whether the evidence is little, and of a part of the run alone."""
        of_part = self.course is not None and self.course.begins is not None
        return of_part and (self.probability or 0.0) > _WEAK_PROBABILITY


@dataclass(frozen=True)
class OneOfSeveral(SuspectFinding):
    """It, or one of ``same``, which no evidence distinguishes."""

    kind = "one of"
    headline = "One of these is slow"

    @property
    def candidates(self) -> list[str]:
        """Each of those that it may be."""
        return self.names

    def _sentences(self) -> str:
        names = [self.name, *self.same]
        text = self._say(f"One of {list_names(names)} is slow")
        if self.part in ("total", "last", "told") and self.group != "reads":
            return f"{text} The ring puts them together: no evidence of their own tells which"
        return f"{text} Of each there are too few requests to tell which, or whether all are"


@dataclass(frozen=True)
class UnfeltServer(SuspectFinding):
    """Slow by its own clock, but clients did not wait for it."""

    kind = "unfelt"
    headline = "Slow, not waited for"
    _is_definite = True

    def _sentences(self) -> str:
        text = self._say(f"{self._who()} is slow, though proxies did not wait for it")
        return f"{text} It is the one to look at before clients feel it"


@dataclass(frozen=True)
class BusyServer(SuspectFinding):
    """It takes longer, but not evidently so beside requests that found as many others there."""

    kind = "busy"
    headline = "Busier, not shown to be slower"

    times_as_busy: float | None = field(default=None, kw_only=True)  # requests, by the median of its peers

    def _sentences(self) -> str:
        times = self.times_as_busy or 0.0
        more = (
            f"it serves {times:.1f} times as many requests as its peers"
            if times >= _MIN_TIMES_AS_BUSY
            else "it had more requests at once than its peers"
        )
        others = f" Likewise: {list_names(self.same)}." if self.same else ""
        return (
            f"{self._who()} is busier, and not shown to be slower: {more}, and these wait for each"
            f" other ({self._longer()}{self._in_share()}).{others} Next: repeat with fewer users;"
            " weights of the ring, objects that are read often, other clients, daemons"
        )


@dataclass(frozen=True)
class WholeServer(ClusterFinding):
    """All members of a process or node are suspects."""

    kind = "together"

    members: list[str] = field(default_factory=list)  # its devices

    def _sentences(self) -> str:
        return (
            f"{list_names(self.members)} are all the devices of {self.level} {self.name}. Next: {_BUSY_STEPS}"
        )


@dataclass(frozen=True)
class LateReplicas(PassingFinding):
    """Proxies answered without its replicas."""

    kind = "late"
    headline = "Late replicas"

    _: KW_ONLY
    seconds: float  # after so many, in the median
    probability: float  # adjusted for all tests
    work: list[Work] = field(default_factory=list)  # what else was at work there
    daemons: list[str] | None = None  # as :attr:`SuspectFinding.daemons`

    @property
    def marked(self) -> list[str]:
        """The device."""
        return [self.name]

    def _size(self) -> str:
        return format_latency(self.seconds)

    def _all_work(self) -> str:
        return _describe_all_work(self.work, self.daemons)

    def _sentences(self) -> str:
        work = f" {text}" if (text := self._all_work()) else ""
        return (
            f"{self.name} has late replicas: {format_plural(self.requests, 'write')}{self._of_all()} answered"
            f" without it, after {format_latency(self.seconds)} (median){self._stretch()}; "
            f"{_format_probability(self.probability)}.{work} Next: post_quorum_timeout of the proxies; "
            f"{_DISK_STEPS}"
        )


@dataclass(frozen=True)
class GivenUpReplicas(PassingFinding):
    """Proxies gave up its replicas of writes, though not more often than others'."""

    kind = "499"

    def _sentences(self) -> str:
        return (
            f"{self.name}: proxies gave up its replicas of {format_plural(self.requests, 'write')}"
            f"{self._of_all()}{self._stretch()}, which its log has as 499. Next: errors in the proxies' logs,"
            f" post_quorum_timeout; {_DISK_STEPS}"
        )


@dataclass(frozen=True)
class ServedFailures(PassingFinding):
    """More of the requests that it served failed than of others."""

    kind = "fails"
    headline = "Served what failed"

    _: KW_ONLY
    probability: float  # adjusted for all tests
    served: int  # requests that it served
    failures: int  # requests that failed, of all servers

    def _who(self) -> str:
        return _name_suspect(self.level, self.name)

    def _sentences(self) -> str:
        of_all, of_own = format_share(self.share or 0.0), format_share(self.requests, self.served)
        return (
            f"{self._who()} served {self.requests:,} of the {self.failures:,} requests that failed, and "
            f"{of_all} of all requests: {of_own} of its own failed{self._stretch()}; "
            f"{_format_probability(self.probability)}. Next: the errors of these requests in the report of "
            "the run, and its log; a device that was away has old objects until the replicator has been there"
        )


@dataclass(frozen=True)
class BrokenDevice(PassingFinding):
    """A device that answered 507."""

    kind = "507"
    headline = "Answered 507"

    _: KW_ONLY
    served: int  # requests that it served
    seconds: float | None = None  # for how long it served nothing, where that is unusual
    detail: str = ""  # what proxies say of it

    @property
    def marked(self) -> list[str]:
        """The device."""
        return [self.name]

    def _size(self) -> str:
        return "" if self.seconds is None else format_latency(self.seconds)

    def _sentences(self) -> str:
        if self.served == 0:
            text = (
                f"{self.name} took no request all through the run: not mounted, full or broken (507 to "
                f"{format_plural(self.requests, 'request')}{self._stretch()}); handoffs took its place"
            )
        else:
            text = self._answers()
        text += f" (proxies' logs: {self.detail})." if self.detail else "."
        recon = f" {said}" if (said := self._recon()) else ""
        return f"{text}{recon} Next: mount, the kernel's log, swift-drive-audit"

    def _answers(self) -> str:
        return (
            f"{self.name} answered 507 to {format_plural(self.requests, 'request')}{self._of_all()}"
            f"{self._stretch()}: not mounted, full or broken;"
            f"{f' it served nothing for {format_moment(self.seconds)} s,' if self.seconds else ''}"
            " handoffs took its place"
        )


@dataclass(frozen=True)
class LoggedErrors(PassingFinding):
    """What proxies say of a server."""

    kind = "error"

    _: KW_ONLY
    detail: str  # which errors, and how many
    members: list[str] = field(default_factory=list)  # devices of a server

    def _who(self) -> str:
        return _name_suspect(self.level, self.name, self.members)

    def _sentences(self) -> str:
        recon = f". {said.removesuffix('.')}" if (said := self._recon()) else ""
        what = f"{self._who()}: {self.detail} by the proxies' logs{self._stretch()}"
        return f"{what}{recon}. Next: {_ANSWER_STEPS}"


@dataclass(frozen=True)
class MissedUpdates(PassingFinding):
    """A container server that did not take updates of object servers."""

    kind = "update"
    headline = "Did not take container updates"

    #: What proxies waited, as a rule, for object servers that told it of an object.
    waited: float | None = field(default=None, kw_only=True)

    @property
    def _shared_noun(self) -> str:
        return "writes"

    def _size(self) -> str:
        return "" if self.waited is None else f"writes wait {format_latency(self.waited)}"

    def _sentences(self) -> str:
        updates = f"did not take {format_plural(self.requests, 'container update')}"
        of_writes = f"{format_share(self.share or 0.0)} of the writes"
        head = f"{self.name} {updates} ({of_writes})"
        if self.waited is not None and self.waited >= LONG_WAIT_SECONDS:
            head = f"{of_writes} wait {format_latency(self.waited)} for {self.name}, which {updates}"
        recon = f" {said}" if (said := self._recon()) else ""
        return (
            f"{head}, by the object servers' logs{self._stretch()}. They wait for it up to "
            "container_update_timeout, proxies up to post_quorum_timeout, and send the updates again "
            f"later.{recon} Next: {_ANSWER_STEPS}"
        )


@dataclass(frozen=True)
class CalledSlow(CountedFinding):
    """Its server wrote lines of slow requests."""

    kind = "called slow"
    headline = "Slow requests by its own log"

    _: KW_ONLY
    seconds: float  # of all of them together
    detail: str = ""  # the part that took longest

    def _size(self) -> str:
        return format_latency(self.seconds)

    def _sentences(self) -> str:
        most = f", most of it in {self.detail}" if self.detail else ""
        return (
            f"{self.name} calls {format_plural(self.requests, 'request')} slow by its own log:"
            f" {format_latency(self.seconds)} together{most}. Next: {_DISK_STEPS}"
        )


@dataclass(frozen=True)
class MemcachedFailure(PassingFinding):
    """Proxies had no answer of it, and asked account and container servers."""

    kind = "memcached"
    headline = "No answer of memcached"

    same: list[str] = field(default_factory=list, kw_only=True)  # others that did not answer

    @property
    def names(self) -> list[str]:
        """All that did not answer."""
        return [self.name, *self.same]

    def _sentences(self) -> str:
        servers = list_names([self.name, *self.same])
        return (
            f"{f'memcached at {servers} did not answer' if servers else 'No memcached answered'} proxies "
            f"{_format_times(self.requests)}{self._stretch()}: {format_share(self.share or 0.0)} of all "
            "requests asked account or container servers for what it knows. Next: memcached there, "
            "memcache_servers of the proxies"
        )


@dataclass(frozen=True)
class HandoffRequests(PassingFinding):
    """Proxies asked for other devices than a partition's own."""

    kind = "handoff"

    @property
    def is_minor(self) -> bool:
        """Whether they are few, as in any busy cluster."""
        return (self.share or 0.0) < _MIN_HANDOFF_SHARE

    def _sentences(self) -> str:
        return (
            f"Proxies asked for handoffs in {format_plural(self.requests, 'request')}{self._of_all()}"
            f"{self._stretch()}: devices of their partitions did not answer, or were left out after errors. "
            "Next: errors in the proxies' logs before that, swift-recon --unmounted"
        )


@dataclass(frozen=True)
class MissingLines(MeasuredFinding):
    """Requests with servers, or a proxy, that left no line take longer."""

    kind = "missing"
    headline = "A server without a line is slow"

    #: Those that did not answer by the proxies' errors, or logs without a line of the run.
    members: list[str] = field(default_factory=list, kw_only=True)

    def _sentences(self) -> str:
        proxy = self.level == "proxy"
        name, line, those = (
            ("proxy", "a proxy", "proxies") if proxy else ("server", "an object server", "servers")
        )
        what = (
            f"the {self.requests:,} requests ({format_share(self.share or 0)}) that lack a line of {line} "
            f"take {self._longer()}."
        )
        if certainty := self._certainty():
            what += f" {certainty}"
        if self.members:
            names = list_names(self.members)
            return f"An object server did not answer: {what} {names}: {_NO_LINE_NOTE} Next: {_ANSWER_STEPS}"
        return (
            f"A {name} without a log is slow: {what} Next: give the logs of the {those} that have none here"
        )


@dataclass(frozen=True)
class CompleteStall(PassingFinding):
    """No operation ended for a time."""

    kind = "stall"
    headline = "No operation ended for a time"

    seconds: float = field(kw_only=True)  # the longest such time

    def _size(self) -> str:
        return f"{format_moment(self.seconds)} s"

    def _sentences(self) -> str:
        times = f" (the longest of {self.requests} such times)" if self.requests > 1 else ""
        return (
            f"No operation ended for {format_moment(self.seconds)} s{self._stretch()}{times}, though some "
            "were under way: what they waited for stopped, as a server of containers or accounts, a proxy, "
            "the network or the load generator. Next: their logs of these seconds"
        )


@dataclass(frozen=True)
class IncomparableServers(ClusterFinding):
    """It and ``same`` could not be compared with others."""

    kind = "inconclusive"

    same: list[str] = field(default_factory=list)

    is_minor = True

    @property
    def names(self) -> list[str]:
        """All that could not be compared."""
        return [self.name, *self.same]

    def _sentences(self) -> str:
        return describe_incomparable(self.names)


#: In the order in which a verdict names them.
FINDING_KINDS: tuple[type[ClusterFinding], ...] = (
    SlowServer,
    OneOfSeveral,
    UnfeltServer,
    LateReplicas,
    ServedFailures,
    BrokenDevice,
    MissedUpdates,
    CalledSlow,
    MemcachedFailure,
    MissingLines,
    CompleteStall,
    BusyServer,
    WholeServer,
    GivenUpReplicas,
    LoggedErrors,
    HandoffRequests,
    IncomparableServers,
)


# -- Words -----------------------------------------------------------------------------------------


def describe_incomparable(names: Sequence[str]) -> str:
    """Return that nothing compares with these servers."""
    verb = "it served" if len(names) == 1 else "each served"
    return f"Not testable: {list_names(names)}: {verb} every request, or too few, so nothing compares"


def _name_suspect(level: str, name: str, members: Sequence[str] = ()) -> str:
    """Return the name of a suspect, and its devices."""
    name = name if level == "device" else f"{level} {name}"
    return f"{name} ({list_names(members)})" if members else name


def _describe_all_work(work: Sequence[Work], daemons: Sequence[str] | None, *, several: bool = False) -> str:
    """Return what else was at work on a suspect; nothing where no log would tell of it."""
    if work:
        return f"In the same seconds: {'; '.join(map(_describe_work, work))}."
    if daemons is None:
        return ""
    if not daemons:
        return (
            "No lines of one background daemon name all of their nodes."
            if several
            else "No line of a background daemon names its node."
        )
    where = "their nodes" if several else "its node"
    return f"No line of {name_any_of(daemons)} on {where} tells of work in the same seconds."


def _describe_work(work: Work) -> str:
    show = format_number if work.unit == "requests" else format_share
    if work.unit == "requests":
        where = f" on {work.whose}" if work.whose else ""
        text = f"{work.who}{where} {show(work.during)} requests/s"
    else:
        where = "" if work.on == "device" else " on its node"
        if work.whose:
            where = f" on {work.whose}" if work.on == "device" else f" on the node of {work.whose}"
        text = f"{work.who} at work{where} {show(work.during)} of the time"
    beside = [] if work.before is None else [f"before the run {show(work.before)}"]
    beside += [] if work.others is None else [f"other {work.on}s {show(work.others)}"]
    return f"{text} ({', '.join(beside)})" if beside else text


def _size_of(difference: PeerDifference) -> float:
    return max(difference.median, difference.mean, key=abs)


def _format_times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _format_probability(value: float | None) -> str:
    if value is None:
        return ""
    text = format_probability(value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def format_signed_duration(value: float) -> str:
    """Format a difference in seconds."""
    return f"{'+' if value >= 0 else ''}{format_latency(value)}"


def list_names(names: Sequence[str]) -> str:
    """Return names as a person lists them, the first of many."""
    if len(names) > 6:
        return f"{', '.join(names[:5])} and {len(names) - 5} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def name_any_of(names: Sequence[str]) -> str:
    """Return names of which one is meant."""
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
