"""Messages to the user about workers.

The functions turn events and states into text, and are pure. :class:`WorkerNews` decides when something is
said: each worker is named while there are few, hundreds are put into one line. It keeps warnings for the
report.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ssbench.base.text_values import format_duration
from ssbench.document.columns import format_plural
from ssbench.fleet import fleet_events
from ssbench.fleet.descriptors import MAX_WORKERS
from ssbench.fleet.fleet_events import Event
from ssbench.fleet.phase import StallDetector
from ssbench.fleet.roster import NotReady
from ssbench.fleet.wire import LOST_AFTER, worker_name
from ssbench.fleet.worker_state import WorkerState
from ssbench.store.contract import JobResult

#: Most ranges of worker ids, most workers with strange results, most workers that hold jobs, and most
#: workers that are not ready, that a line names.
_MAX_RANGES = 12
_MAX_STRANGE_WORKERS = 3
_MAX_HOLDERS = 5
_MAX_NOT_READY = 4

#: A shorter time in which nothing ended is not worth a word.
_MIN_SILENCE_SECONDS = 1.0

#: Most characters that are repeated of why a message is invalid.
_MAX_REPEATED_CHARACTERS = 200


def format_work_port(port: int | None) -> str:
    """Name the port for work; None or 0: it has no number that workers know."""
    return "the work port" + (f" ({port})" if port else "")


#: What is said of one worker, after its name, and of several, where there may be many.
_SENTENCES: dict[type[fleet_events.Event], tuple[str, str]] = {
    fleet_events.WorkerJoined: ("joined ({capacity} at once)", "joined"),
    fleet_events.Back: ("is back and is used again", "are back and are used again"),
    fleet_events.Left: ("has ended: {event.reason}", "have ended"),
    fleet_events.Lost: (
        "has not been heard of for {seconds} and counts as lost{with_jobs}",
        "have not been heard of any more and count as lost",
    ),
    fleet_events.CutOff: (
        "cannot be reached on {work_port}: its heartbeats arrive, but for {seconds} it has received nothing "
        "and counts as lost{with_jobs}",
        "cannot be reached on {work_port}, although their heartbeats arrive, and count as lost",
    ),
    fleet_events.Unreachable: (
        "sends heartbeats but cannot be reached on {work_port}; does a firewall block that port?",
        "send heartbeats but cannot be reached on {work_port}; does a firewall block that port?",
    ),
    fleet_events.Unanswered: (
        "sends heartbeats but cannot be reached on {work_port}, as another worker on its host can;"
        " is it overloaded?",
        "send heartbeats but cannot be reached on {work_port}, as others on their hosts can;"
        " are they overloaded?",
    ),
    fleet_events.Overdue: (
        "has held jobs for over {seconds}, longer than any of them can take;"
        " they count as lost ({event.jobs}), and the worker is not used any more",
        "have held jobs for longer than these can take and are not used any more",
    ),
    fleet_events.Unconfirmed: (
        "has not confirmed {jobs} within {lost_after:g} s: lost on the way",
        "have not confirmed jobs that were lost on the way to them",
    ),
    fleet_events.Dropped: (
        "no longer has {jobs} that it had begun: it was stopped for a while, or its connection broke",
        "no longer have jobs that they had begun: they were stopped for a while, or connections broke",
    ),
    fleet_events.Refused: ("is refused: it {event.reason}", "are refused"),
    fleet_events.Full: ("is not used: there are {most_workers} workers already", "are not used"),
    fleet_events.Foreign: (
        "sends results of jobs that it does not have; they are ignored",
        "send results of jobs that they do not have; they are ignored",
    ),
    fleet_events.Invalid: (
        "sent an impossible result ({event.why}); such results count as errors",
        "sent impossible results, which count as errors",
    ),
}

#: Kinds whose events differ in more than the worker, so that an example is given.
_EXAMPLE_EVENTS = (fleet_events.Refused, fleet_events.Left, fleet_events.Invalid)


def describe_event(event: fleet_events.Event, work_port: str = "the work port") -> str:
    """Return what to say of one event."""
    if isinstance(event, fleet_events.WorkerEvent):
        return f"{event.worker.name} {_fill_sentence(_SENTENCES[type(event)][0], event, work_port)}"
    if isinstance(event, fleet_events.PortNews):
        return event.text
    if isinstance(event, fleet_events.InvalidMessage):
        return f"Dropped an invalid message: {event.why[:_MAX_REPEATED_CHARACTERS]}"
    raise TypeError(event)


def describe_events(several: Sequence[fleet_events.WorkerEvent], work_port: str = "the work port") -> str:
    """Return what to say of several events, all of one kind."""
    kind = type(several[0])
    hosts = {event.worker.host for event in several}
    where = f"{len(hosts)} hosts" if len(hosts) > 1 else f"host {next(iter(hosts))}"
    ids = format_id_ranges(event.worker.worker_id for event in several)
    text = (
        f"{len(several):,} workers on {where} (ids {ids})"
        f" {_fill_sentence(_SENTENCES[kind][1], several[0], work_port)}"
    )
    text += _with_jobs(sum(getattr(event, "jobs", 0) for event in several))
    return text + (f"; the first: {describe_event(several[0], work_port)}" if kind in _EXAMPLE_EVENTS else "")


def _fill_sentence(text: str, event: fleet_events.WorkerEvent, work_port: str) -> str:
    jobs = getattr(event, "jobs", 0)
    return text.format(
        event=event,
        jobs=format_plural(jobs, "job"),
        capacity=format_plural(getattr(event, "capacity", 0), "job"),
        with_jobs=_with_jobs(jobs),
        work_port=work_port,
        seconds=format_duration(getattr(event, "seconds", 0.0)),
        lost_after=LOST_AFTER,
        most_workers=MAX_WORKERS,
    )


def _with_jobs(count: int) -> str:
    return f", with {format_plural(count, 'job')}" if count else ""


def format_id_ranges(ids: Iterable[int]) -> str:
    """Name numbers as ranges, ``0-7, 9``; a long list is cut."""
    ranges: list[list[int]] = []
    for number in sorted(set(ids)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    named = [f"{low}-{high}" if high > low else str(low) for low, high in ranges[:_MAX_RANGES]]
    return ", ".join(named) + (", ..." if len(ranges) > _MAX_RANGES else "")


# -- Results that were ignored or refused ----------------------------------------------------------


def describe_strange_results(
    workers: Iterable[WorkerState], invalid_messages: int = 0, own_gaps_dropped: int = 0
) -> list[str]:
    """Return, for the report, how many results were ignored or refused, and whose they were.

    So it is with stalls of workers, and of the master (``own_gaps_dropped``), that were not kept.
    """
    workers = list(workers)
    lines = []
    for counts, text in (
        (
            [(worker, worker.held.foreign_results) for worker in workers if worker.held.foreign_results],
            "named jobs that other workers had and were ignored",
        ),
        (
            [(worker, worker.held.invalid_results) for worker in workers if worker.held.invalid_results],
            "had impossible figures and count as errors",
        ),
    ):
        if counts:
            names = [
                f"{count:,} of {worker_name(worker.worker_id, worker.host, worker.pid, begins=False)}"
                for worker, count in counts[:_MAX_STRANGE_WORKERS]
            ]
            more = (
                f" and {len(counts) - _MAX_STRANGE_WORKERS} more workers"
                if len(counts) > _MAX_STRANGE_WORKERS
                else ""
            )
            total = sum(count for _, count in counts)
            lines.append(f"{total:,} result{'s' * (total > 1)} {text}: {', '.join(names)}{more}")
    # The accounts of several groups of users share what is known of a worker's load.
    loads = {id(worker.load): worker.load for worker in workers}
    if dropped := sum(load.gaps_dropped for load in loads.values()):
        lines.append(f"{dropped:,} more stalls of workers were not recorded")
    if own_gaps_dropped:
        lines.append(f"{own_gaps_dropped:,} more stalls of the master were not recorded")
    if invalid_messages:
        lines.append(f"{invalid_messages:,} invalid message{'s' * (invalid_messages > 1)} were dropped")
    return lines


# -- What a phase waits for, and why it is abandoned -----------------------------------------------


def describe_not_ready(
    found: Sequence[tuple[WorkerState, NotReady]], work_port: str = "the work port"
) -> str:
    """Return why workers whose heartbeats arrive are not used; empty if there are none."""
    reasons = {
        NotReady.NEW: "has just come",
        NotReady.SAME_ID: "has the id of a worker that may still be running",
        NotReady.UNREACHABLE: _SENTENCES[fleet_events.Unreachable][0].format(work_port=work_port),
        NotReady.UNANSWERED: _SENTENCES[fleet_events.Unanswered][0].format(work_port=work_port),
    }
    texts = [f"{worker.name} {reasons[why]}" for worker, why in found]
    if len(texts) > _MAX_NOT_READY:
        texts[_MAX_NOT_READY:] = [f"and so on for {len(texts) - _MAX_NOT_READY} more workers"]
    return "; ".join(texts)


def describe_refused_keys(number: int) -> str:
    """Return how many workers came with a key that is not accepted; empty if none did."""
    if not number:
        return ""
    keys = "1 key" if number == 1 else f"{number} keys"
    return f"refused {keys} of workers: not in the list of keys, or revoked (keygen --worker)"


def describe_waiting(
    what: str,
    in_flight: int,
    holders: Sequence[WorkerState],
    waiting_for_token: int,
    standstill: StallDetector,
    now: float,
    unsent: int = 0,
) -> str:
    """Return what a phase waits for: how many ``what``, which workers have them, what failed meanwhile.

    ``unsent`` is how many are to be sent again and wait for a worker.
    """
    if in_flight:
        text = f"Waiting for {in_flight} {what} to end"
    elif waiting_for_token:
        text = f"Waiting with {what}"
    else:
        text = f"Waiting with {f'{unsent} ' if unsent else ''}{what} for a worker that can take them"
    named = [f"worker {each.worker_id} on {each.host} has {each.held.outstanding}" for each in holders]
    if len(named) > _MAX_HOLDERS:
        named[_MAX_HOLDERS:] = [f"{len(named) - _MAX_HOLDERS} more workers have the rest"]
    if named:
        text += f" ({', '.join(named)})"
    if waiting_for_token:
        text += f", {waiting_for_token}{' more' if in_flight else ''} wait for a new token"
    if unsent and in_flight:
        text += f", {unsent} more wait for a worker"
    return _add_silence(text, standstill, now)


def describe_idle_phase(what: str, standstill: StallDetector, now: float) -> str:
    """Return that no more ``what`` are due yet, and what failed meanwhile."""
    return _add_silence(f"Waiting with {what} until more are due", standstill, now)


def _add_silence(text: str, standstill: StallDetector, now: float) -> str:
    # A drain is reported even while jobs end all the time.
    if now - standstill.ended_at >= _MIN_SILENCE_SECONDS:
        text += f"; nothing has ended for {format_duration(now - standstill.ended_at)}"
    if standstill.failures:
        text += f"{',' if '; ' in text else ';'} {describe_stalled_phase(standstill, now)}"
    return text


def describe_stalled_phase(standstill: StallDetector, now: float) -> str:
    """Return for how long nothing has succeeded, and what failed instead."""
    return (
        f"nothing has succeeded for {format_duration(now - standstill.succeeded_at)}: {standstill.failures}"
    )


def describe_abandoned_phase(standstill: StallDetector, now: float) -> str:
    """Return why a phase is abandoned in which nothing succeeds."""
    return (
        f"{describe_stalled_phase(standstill, now)} (given up after --give-up-after"
        f" {standstill.give_up_after:g})"
    )


def describe_failed_renewal(failures: int, error: str) -> str:
    """Return what to say when there is no new token after this many failures."""
    return f"Authenticating again has failed ({failures} x), and is tried again: {error}"


def describe_job_holder(worker: WorkerState) -> str:
    """Name the worker with which a job was lost."""
    return f"with worker {worker.worker_id} on {worker.host}"


def add_storage_url(result: JobResult, urls: Sequence[str]) -> str:
    """Return the detail of a failure with the storage URL that it came from, where there are several."""
    url = urls[result.storage_url] if result.storage_url < len(urls) else "an unknown storage URL"
    return f"{url}: {result.detail}"


def describe_unreached(addresses: Counter[str]) -> list[str]:
    """Return what the user should know of connections that failed, to hosts that have other addresses."""
    return [
        f"{format_plural(count, 'connection')} to {address} failed;"
        " those of the host that answered, if any, were used"
        for address, count in sorted(addresses.items())
    ]


# -- Events as lines -------------------------------------------------------------------------------


_log = logging.getLogger(__name__)

#: Lines that name a single worker, at most this many within this many seconds; what exceeds that is gathered.
_MAX_NAMED_LINES = 4
_NEWS_WINDOW_SECONDS = 1.0

#: Most warnings that are kept for the report; one more counts the others.
_MAX_WARNINGS = 200

#: Kinds of events that are no warnings.
_GOOD_EVENTS = (fleet_events.WorkerJoined, fleet_events.Back)
#: Kinds that the report has at its end, with their counts.
_COUNTED_EVENTS = (fleet_events.Foreign, fleet_events.Invalid, fleet_events.InvalidMessage)


class NewsLine(NamedTuple):
    """A line for the user."""

    text: str
    warning: bool  # log it as a warning
    keep: bool  # show it in the report too


class WorkerNews:
    """Turns events into lines, of which there are few however many events there are.

    ``work_port`` is the number that workers know it by.
    """

    def __init__(self, work_port: int | None = None) -> None:
        self.work_port = format_work_port(work_port)
        self._logged: list[str] = []
        #: How many more were logged than are kept.
        self._not_kept = 0
        self._added: list[str] = []
        self._held: list[Event] = []
        self._window_ends = 0.0
        self._names_left = 0
        #: Kinds of events of which there was a line in this window: of another one the first is said at once.
        self._said: set[type[Event]] = set()

    def warn(self, text: str) -> None:
        """Log a warning and keep it for the report, which says how many more there were than are kept."""
        if len(self._logged) < _MAX_WARNINGS:
            self._logged.append(text)
        else:
            self._not_kept += 1
        _log.warning("%s", text)

    def add(self, texts: Iterable[str]) -> None:
        """Keep warnings that only the report has."""
        self._added += texts

    @property
    def warnings(self) -> list[str]:
        """The warnings for the report: those that were logged come first."""
        more = self._not_kept
        note = [f"{more:,} more warning{'s' * (more > 1)} of the run are in its log alone"] if more else []
        return [*self._logged, *note, *self._added]

    def tell(self, happened: Sequence[Event], now: float, *, all_of_it: bool = False) -> None:
        """Log what is to be said of events, now or within a second; with ``all_of_it`` now."""
        for line in self.lines(happened, now, all_of_it=all_of_it):
            if line.keep:
                self.warn(line.text)
            else:
                _log.log(logging.WARNING if line.warning else logging.INFO, "%s", line.text)

    def lines(self, happened: Sequence[Event], now: float, *, all_of_it: bool = False) -> list[NewsLine]:
        """Receive events; return what is to be said now.

        The first event of a kind is said at once; others may be held back for a second. With
        ``all_of_it`` nothing is.
        """
        held = self._held
        held += happened
        if not held:
            return []
        if now >= self._window_ends:
            self._window_ends = now + _NEWS_WINDOW_SECONDS
            self._names_left = _MAX_NAMED_LINES
            self._said.clear()
        elif len(held) > self._names_left and not all_of_it and self._said.issuperset(map(type, held)):
            return []
        self._said.update(map(type, held))
        self._held = []
        self._names_left -= len(held)
        return self._gather(held)

    def _gather(self, happened: Sequence[Event]) -> list[NewsLine]:
        by_kind: dict[type[Event], list[fleet_events.WorkerEvent]] = {}
        for event in happened:
            if isinstance(event, fleet_events.WorkerEvent):
                by_kind.setdefault(type(event), []).append(event)
        lines: list[NewsLine] = []
        for event in happened:
            alike = by_kind.get(type(event), [])
            if len(alike) <= _MAX_NAMED_LINES:
                text = describe_event(event, self.work_port)
            elif event is alike[0]:
                text = describe_events(alike, self.work_port)
            else:
                continue
            warning = not isinstance(event, _GOOD_EVENTS)
            lines.append(NewsLine(text, warning, warning and not isinstance(event, _COUNTED_EVENTS)))
        return lines
