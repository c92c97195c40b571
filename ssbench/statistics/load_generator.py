"""Whether the load generator, rather than the store, limited what was measured, or stalled meanwhile.

``doc/numbers.rst`` defines the figures. All is judged from what a run's summary says about its workers and
its master, so that a report of a file says the same as the report at the end of its run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import msgspec
from msgspec.structs import replace

from ssbench.document.figures import BUSY_CPU_SHARE
from ssbench.document.units import (
    format_count,
    format_latency,
    format_milliseconds,
    format_percent,
    format_seconds,
    format_share,
)
from ssbench.results.run_description import Gap, HostFacts, LoadSample, MasterFacts, RunSummary, WorkerFacts

#: Users that are busy for less than this share of the window wait for something other than the store.
_BUSY_USERS_SHARE = 0.95

#: A shorter window (seconds) says little of that: users begin one after the other, and end so. What they wait
#: for cannot be told, and only where they are busy for less than this share of it something is said.
_MIN_WINDOW_SECONDS = 1.0
_BUSY_BRIEFLY_SHARE = 0.5

#: An event loop that is late by more than this share of a latency adds to it noticeably: in the median, and
#: at the 99th percentile.
_LAG_SHARE = 0.1

#: Lags are upper ends of half octaves: the least that they may have been is this share of them.
_LAG_LOWER_SHARE = 2**-0.5

#: Gaps matter that are longer than this (seconds) and than the 99th percentile of latency. So many of them
#: are named.
_GAP_SECONDS = 0.1
_MAX_NAMED_GAPS = 5

#: More of the latencies than this share, left out because a worker stalled, have to be said.
_LEFT_OUT_SHARE = 0.01

#: Clocks that drift apart faster than this (500 ppm) are worth a warning, and times of day this far apart.
_MAX_CLOCK_DRIFT = 500e-6
_MAX_WALL_OFFSET = 0.1

#: A machine was shared where a hypervisor took more than this share of its CPU.
_MAX_STOLEN_SHARE = 0.05

#: It was where other programs used more than this share of its CPU while a process of the run waited for one
#: for more than this share of the time, and of the time in which it wanted one.
_OTHERS_SHARE, _WAITED_SHARE, _DENIED_SHARE = 0.25, 0.02, 1 / 3

#: Where its kernel does not tell that: where some thread waited for more than this share of the time, and the
#: run queue had so many threads for each core besides those of the run.
_PRESSURE_SHARE, _QUEUE_LENGTH = 0.8, 2.0

#: A network card that moves more than this share of what it can is full: headers of frames are not counted.
_FULL_NETWORK_SHARE = 0.9

#: Workers are alike whose typical latencies differ by less than this factor. It takes so many operations.
_UNLIKE_FACTOR, _MIN_COMPARED = 10, 100

#: Workers are named one by one up to this number.
_MAX_NAMED_WORKERS = 3


class LoadGenerator(msgspec.Struct, frozen=True):
    """What the load generator did itself."""

    master: MasterFacts | None = None
    workers: tuple[WorkerFacts, ...] = ()
    gaps: tuple[Gap, ...] = ()  # those within the window of the run that matter
    limits: tuple[str, ...] = ()  # in what way it was the limit
    lacking: tuple[str, ...] = ()  # that users waited for objects, and not for it
    load: tuple[LoadSample, ...] = ()  # how busy it was over time
    hosts: tuple[HostFacts, ...] = ()  # the machines on which it ran


class GeneratorMeasurements(msgspec.Struct, frozen=True):
    """What was measured, as far as it says something of the load generator."""

    start: float  # of the window
    end: float  # of the window
    median: float  # of last-byte latency; NaN: there is none
    p99: float  # of last-byte latency; NaN: there is none
    #: Share of the users' time with an operation under way, with our own pauses between its attempts; None
    #: where users are idle by intention.
    busy: float | None
    delayed: int  # operations whose latencies were left out
    succeeded: int = 0  # operations that have a latency, left out or not
    #: Lower end of the interval of ``p99``; minus infinity: there is none; infinity: not known.
    p99_least: float = math.inf
    waited: float = 0.0  # share of the operations that waited for a free object
    #: Share of the users' time that operations may have taken besides of which that is not known, at most.
    untimed: float = 0.0

    @property
    def most_busy(self) -> float | None:
        """The share of the users' time in which they may have been busy, at most; None as ``busy`` is."""
        return None if self.busy is None else min(1.0, self.busy + self.untimed)

    @property
    def idle(self) -> float | None:
        """The share of the users' time without an operation, where it is so much that it has to be said."""
        if self.most_busy is None or self.most_busy >= _BUSY_USERS_SHARE or self.is_short:
            return None
        return 1 - self.most_busy

    @property
    def is_short(self) -> bool:
        """Whether the window is too short to tell what users waited for."""
        return self.end - self.start < _MIN_WINDOW_SECONDS

    @property
    def briefly_busy(self) -> float | None:
        """The share of the users' time with an operation, where a short window has mostly none."""
        busy = self.most_busy
        if busy is None or not self.is_short or busy >= _BUSY_BRIEFLY_SHARE:
            return None
        return None if self.waited > 1 - busy else busy

    @property
    def lacks_objects(self) -> bool:
        """Whether users were idle because operations waited for objects that others had.

        While as many wait as there are users no more are drawn, so that nearly all have waited.
        """
        return self.idle is not None and self.waited > self.idle


def summarize_generator(summary: RunSummary | None, measured: GeneratorMeasurements) -> LoadGenerator:
    """Return what is known of the load generator."""
    if summary is None:
        return LoadGenerator()
    least = max(_GAP_SECONDS, 0.0 if math.isnan(measured.p99) else measured.p99)
    gaps = tuple(
        gap
        for gap in summary.gaps
        if gap.seconds > least and gap.start < measured.end and gap.start + gap.seconds > measured.start
    )
    own = LoadGenerator(
        summary.master, summary.workers, gaps, load=summary.generator_load, hosts=summary.hosts
    )
    if not measured.median > 0:  # a no-op run
        return own
    return replace(own, limits=tuple(_was_the_limit(own, measured)), lacking=tuple(_lacked_objects(measured)))


def list_generator_warnings(own: LoadGenerator, measured: GeneratorMeasurements) -> Iterator[str]:
    """Yield a warning for each way in which the load generator changed what was measured."""
    yield from _stalled(own, measured)
    yield from _left_out(measured)
    yield from own.limits
    yield from _warn_of_shared_hosts(own.hosts)
    yield from own.lacking
    yield from _warn_of_clocks(own.workers)


def _stalled(own: LoadGenerator, measured: GeneratorMeasurements) -> Iterator[str]:
    if not own.gaps:
        return
    names = {worker.worker_id: _name_worker(worker) for worker in own.workers}
    longest = sorted(
        sorted(own.gaps, key=lambda gap: -gap.seconds)[:_MAX_NAMED_GAPS], key=lambda gap: gap.start
    )
    listed = "; ".join(
        f"{_name_stalled(gap, names)} for {format_seconds(gap.seconds)} s from"
        f" {format_seconds(gap.start - measured.start)} s on"
        for gap in longest
    )
    more = f"; {len(own.gaps) - len(longest)} more" if len(own.gaps) > len(longest) else ""
    left_out = ""
    if measured.delayed == 1:
        left_out = " 1 latency is therefore excluded."
    elif measured.delayed:
        left_out = f" Latencies of {measured.delayed:,} operations are therefore excluded."
    yield (
        f"The load generator stalled: {listed}{more}.{left_out} Run no other programs on the machines that "
        "measure"
    )


def _left_out(measured: GeneratorMeasurements) -> Iterator[str]:
    """Yield that many latencies are left out, however short the stalls were beside them."""
    if measured.delayed > _LEFT_OUT_SHARE * measured.succeeded:
        share = format_share(measured.delayed, measured.succeeded)
        yield (
            f"Load generator overloaded: {share} of the latencies ({measured.delayed:,} of"
            f" {measured.succeeded:,}) are left out, because a worker stalled while answers came. Percentiles"
            " are those of the others. Start more workers, on more cores, or use fewer users"
        )


def _name_stalled(gap: Gap, names: dict[int, str]) -> str:
    return "the master" if gap.worker_id is None else names.get(gap.worker_id, f"worker {gap.worker_id}")


def _was_the_limit(own: LoadGenerator, measured: GeneratorMeasurements) -> Iterator[str]:
    if own.workers and measured.idle is not None and not measured.lacks_objects:
        busy = f"users were busy for {_describe_busy(measured)} % of the window"
        yield f"Load generator overloaded: {busy}. {_cause_of_idling(own)}"
    if own.workers and (busy_share := measured.briefly_busy) is not None:
        yield (
            f"Users were busy for only {format_percent(busy_share)} % of the"
            f" {format_seconds(measured.end - measured.start)} s that were measured, too short a time to"
            " tell why: these are not the figures of a store under load. Run longer (-r 60)"
        )
    for host in own.hosts:
        if is_network_full(host):
            yield (
                f"Load generator overloaded: a network card of {host.host} moved"
                f" {format_percent(host.network or 0.0)} % of what it can. Use workers on more hosts"
            )
    late = [each for each in own.workers if (each.lag_p50 or 0.0) > _LAG_SHARE * measured.median]
    for worker in sorted(late, key=lambda each: -(each.lag_p50 or 0.0))[:_MAX_NAMED_WORKERS]:
        lag = worker.lag_p50 or 0.0
        yield (
            f"Load generator overloaded: {_name_worker(worker)} handled answers {format_latency(lag)} late"
            f" (median), {format_share(lag, measured.median)} of the median latency. Start more workers,"
            " on more cores, or use fewer users"
        )
    if len(late) > _MAX_NAMED_WORKERS:
        yield f"So did {len(late) - _MAX_NAMED_WORKERS} more workers"
    yield from _added_to_the_tail([each for each in own.workers if each not in late], measured)


def _added_to_the_tail(workers: Sequence[WorkerFacts], measured: GeneratorMeasurements) -> Iterator[str]:
    """Yield a sentence for the workers that were late by a good part of the 99th percentile of latency.

    Chance may move it as far as its interval goes, so that less says nothing.
    """
    p99 = measured.p99
    matters = max(_LAG_SHARE * p99, p99 - measured.p99_least)
    late = [each for each in workers if _LAG_LOWER_SHARE * (each.lag_p99 or 0.0) > matters]
    for worker in sorted(late, key=lambda each: -(each.lag_p99 or 0.0))[:1]:
        lag = worker.lag_p99 or 0.0
        others = len(late) - 1
        more = f"; {others} more worker{'s'[: others - 1]} did so by less" if others else ""
        yield (
            f"p99 is not reliable: {_name_worker(worker)} handled 1 % of answers"
            f" {format_milliseconds(_LAG_LOWER_SHARE * lag)} to {format_latency(lag)} late,"
            f" {format_share(_LAG_LOWER_SHARE * lag, p99)} or more of p99{more}. Start more workers, on more"
            " cores, or use fewer users"
        )


def _lacked_objects(measured: GeneratorMeasurements) -> Iterator[str]:
    if measured.lacks_objects:
        yield (
            f"Users were busy for {_describe_busy(measured)} % of the window, because"
            f" {format_percent(measured.waited)} % of the operations waited for a free object: there are too"
            " few objects for so many users. Use more initial_files or fewer users"
        )


def _describe_busy(measured: GeneratorMeasurements) -> str:
    most = "at most " if measured.untimed else ""
    return f"{most}{format_percent(measured.most_busy or 0.0)}"


def _cause_of_idling(own: LoadGenerator) -> str:
    """Return what to change so that users are idle no longer."""
    if any(map(describe_shared_host, own.hosts)):
        # Of which there is a warning with what to do. Nothing else says how it would be without the others.
        return "Others used the CPU of its host"
    busiest = max(own.workers, key=lambda each: each.cpu_share or 0.0, default=None)
    if own.master is not None and (own.master.cpu_share or 0.0) > BUSY_CPU_SHARE:
        return (
            f"The master used {format_percent(own.master.cpu_share)} % of a core: use a larger --batch-size"
        )
    if busiest is not None and (busiest.cpu_share or 0.0) > BUSY_CPU_SHARE:
        return (
            f"W{_name_worker(busiest)[1:]} used {format_percent(busiest.cpu_share)} % of its"
            f" core: start more workers"
        )
    if own.gaps:
        return "It stalled meanwhile"
    return (
        "They waited for the master: use a larger --batch-size, or bring workers and master closer together"
    )


def is_network_full(host: HostFacts) -> bool:
    """Whether a network card of a machine could hardly move more."""
    return (host.network or 0.0) > _FULL_NETWORK_SHARE


def describe_shared_host(host: HostFacts) -> str:
    """Return who else took the CPU of a machine that the run wanted, in words; empty where that is not clear.

    What others use is none of the run's as long as there is enough: its processes must have waited, too. The
    load average alone says nothing of that, because it counts programs of low priority like any other.
    """
    if (host.stolen or 0.0) > _MAX_STOLEN_SHARE:
        return f"a hypervisor gave {format_percent(host.stolen)} % of its CPU to others"
    if host.denied is None:
        queue = (host.load_end or 0.0) - host.processes
        waited = (host.pressed is None or host.pressed > _PRESSURE_SHARE) and queue > _QUEUE_LENGTH * max(
            1, host.cores
        )
    else:
        waited = (host.waited or 0.0) > _WAITED_SHARE and host.denied > _DENIED_SHARE
    if waited and (host.other_cpu or 0.0) > _OTHERS_SHARE:
        return f"other programs used {format_percent(host.other_cpu)} % of its CPU"
    return ""


def _warn_of_shared_hosts(hosts: Sequence[HostFacts]) -> Iterator[str]:
    for each in hosts:
        if why := describe_shared_host(each):
            load = ""
            if each.load_begin is not None and each.load_end is not None:
                load = (
                    f"; load average {each.load_begin:.1f} at the beginning, {each.load_end:.1f} at the end"
                )
            waited = (
                f", and a process of this run waited {format_percent(each.denied)} % of the"
                f" time it wanted a CPU"
            )
            yield (
                f"The host {each.host} was shared: {why}{waited if each.denied is not None else ''}"
                f" ({each.cores} cores{load}). Run nothing else on the machines that"
                " measure, not the store either (a local Swift counts as part of the run)"
            )


def find_unlike_workers(
    typical: Mapping[int, float], counts: Mapping[int, int], workers: Sequence[WorkerFacts]
) -> Iterator[str]:
    """Yield a warning for each worker with far lower latencies than the others of its site.

    ``typical`` has the typical latency of each, in seconds, ``counts`` of how many successes that is. All get
    operations of the same kinds, so that only the way to the store may differ.
    """
    facts = {each.worker_id: each for each in workers}
    known = {worker: each for worker, each in typical.items() if counts.get(worker, 0) >= _MIN_COMPARED}
    for worker, own in sorted(known.items()):
        fact = facts.get(worker, WorkerFacts(worker))
        others = [
            each
            for other, each in known.items()
            if other != worker and facts.get(other, fact).site == fact.site
        ]
        if others and own * _UNLIKE_FACTOR < (usual := median(others)):
            yield (
                f"Worker{_name_worker(fact)[6:]} reports that its {counts[worker]:,} operations took"
                f" {format_latency(own)} (typical), and those of the others {format_latency(usual)}."
                " Unless it is that much nearer to the store, its figures cannot be right: exclude it."
                " Workers in different places need a --site"
            )


def _warn_of_clocks(workers: Sequence[WorkerFacts]) -> Iterator[str]:
    for worker in workers:
        if worker.clock_slope is not None and abs(worker.clock_slope) > _MAX_CLOCK_DRIFT:
            pace = "slow" if worker.clock_slope > 0 else "fast"
            slope = format_count(round(abs(worker.clock_slope) * 1e6))
            yield (
                f"The clock of {_name_worker(worker)} is at least {slope} ppm {pace}"
                " against the master's: its latencies are off by at least as much. Check both clocks"
            )
        if worker.wall_offset is not None and abs(worker.wall_offset) > _MAX_WALL_OFFSET:
            behind = "behind" if worker.wall_offset > 0 else "ahead of"
            yield (
                f"Clocks: the time of day of {_name_worker(worker)} is at least "
                f"{format_seconds(abs(worker.wall_offset))} s {behind} the master's. No figure uses it, but "
                "its logs show other times. Check NTP there"
            )


def _name_worker(worker: WorkerFacts) -> str:
    return f"worker {worker.worker_id} on {worker.host}" if worker.host else f"worker {worker.worker_id}"
