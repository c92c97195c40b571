"""The master's loop: sends what a phase wants done, takes in what comes back.

One thread over two plain zmq sockets. A *phase* (initial uploads, the benchmark, clean-up) says what
is to be done next and is told how each task ended; all phases share the loop, and with it the rules
of :mod:`ssbench.fleet.dispatch` on who is lost.
"""

from __future__ import annotations

import logging
import math
import secrets
import threading
import time
from collections.abc import Callable, Sequence

import msgspec
import zmq

from ssbench.errors import ClusterError, ProtocolError, WireError, WorkerError
from ssbench.fleet import wire
from ssbench.fleet.dispatch import Dispatcher, Prior, Task
from ssbench.fleet.news import News, strange_results
from ssbench.fleet.phase import Phase
from ssbench.fleet.plausible import Bounds
from ssbench.fleet.sockets import MasterSockets, has_message
from ssbench.fleet.standstill import Standstill
from ssbench.fleet.wire import LOST_AFTER, Result, RunParameters
from ssbench.fleet.worker_state import WorkerState
from ssbench.results import INVALID, LOST, UNFINISHED
from ssbench.run.tokens import TokenRenewal
from ssbench.swift.timing import longest_job

_log = logging.getLogger(__name__)

#: Seconds between looks at the clock: who is lost, is a token there, is a phase over.
_TICK = 0.1

#: With nobody left for this long the run ends (seconds, on top of those that make a worker lost).
_NOBODY_LEFT = 4.0

#: While it waits, the master says every so many seconds what for.
_SAY_SECONDS = 5.0

#: That authentication fails is told with the first attempt, and then every so many seconds.
_SAY_RENEWAL_SECONDS = 10.0

#: Most workers that are named where it is told who holds what.
_MOST_NAMED = 5

#: Refused workers are told so every so many seconds, until they are heard of no more; so many at once.
_TELL_SECONDS = 1.0
_MOST_REFUSED = 32

#: Most workers that are not ready that a message names.
_MOST_HINDRANCES = 4

#: That descriptors are scarce is said again after so many seconds.
_SCARCE_SECONDS = 60.0

#: Most warnings that are kept for the report.
_MOST_WARNINGS = 200

#: Most jobs of a message, which has to stay under :data:`ssbench.fleet.wire.MAX_MESSAGE_BYTES`.
_MOST_JOBS = 10_000

#: Most messages taken in before more work is sent.
_MESSAGES_A_TURN = 256

#: A job is sent again after so many refusals of its token.
_MOST_RENEWALS = 10

#: Flags of the sockets as plain numbers: to put two of zmq's together costs as much as the send.
_AT_ONCE = int(zmq.NOBLOCK)
_AT_ONCE_AND_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)

UNAUTHORIZED = "HTTP 401"

#: What failing to authenticate again counts as among the failures of a phase.
AUTHENTICATION = "authentication failed"


class Exchange:
    """The two sockets, the book of jobs, and the loop over both.

    ``largest_objects`` holds the bytes of the largest object of each size class.
    """

    def __init__(
        self,
        sockets: MasterSockets,
        dispatcher: Dispatcher,
        parameters: RunParameters,
        largest_objects: Sequence[int],
        batch_size: int = 1,
        renew_token: Callable[[], str] | None = None,
        give_up_after: float = 0.0,
    ) -> None:
        self.dispatcher = dispatcher
        self.parameters = parameters
        #: Set by a signal: stop sending.
        self.interrupted = threading.Event()
        #: Called with each tick's time; local workers are looked after there.
        self.on_tick: Callable[[float], None] = lambda _now: None
        #: What went wrong with workers, for the report.
        self.warnings: list[str] = []
        self._sockets = sockets
        self._header = wire.pack_parameters(parameters)
        self._batch_size = batch_size
        dispatcher.longest_job = longest_job(
            parameters.connect_timeout,
            parameters.network_timeout,
            parameters.request_timeout,
            parameters.retries + parameters.retry_404,
            max(largest_objects, default=0),
        )
        self._bounds = Bounds(tuple(largest_objects), parameters.retries + parameters.retry_404)
        self._news = News()
        self._renewal = TokenRenewal(renew_token)
        self._renewal_said_at = 0.0
        #: A phase in which nothing succeeds for so many seconds is given up; 0: none is.
        self.give_up_after = give_up_after
        self._standstill = Standstill(0.0, 0.0)
        self._unauthorized: list[tuple[Task, Prior]] = []
        self._next_tick = 0.0
        self._receive_timeout = -1.0
        self._said_at = 0.0
        self._told_at = 0.0
        self._told_scarce_at = -math.inf
        self._somebody_at = time.monotonic()
        self._dropped_messages = 0
        self._running = self._at_once = False

    # -- workers ------------------------------------------------------------------------------

    def wait_for_workers(self, expected: Callable[[], int], timeout: float, advice: str) -> None:
        """Return once ``expected()`` workers are there, or fewer after ``timeout`` seconds.

        Says every few seconds what it waits for; raises WorkerError when there is none at the end.
        """
        deadline = time.monotonic() + timeout
        self._said_at = time.monotonic() - _SAY_SECONDS + 1.0
        while True:
            now = time.monotonic()
            self._tick(now)
            there = len(self.dispatcher.living())
            if there >= max(1, expected()) or self.interrupted.is_set():
                return
            if now >= deadline:
                break
            if now - self._said_at >= _SAY_SECONDS:
                self._said_at = now
                _log.info(
                    "Waiting for workers: %d of %d there, %.0f s left. %s",
                    there,
                    expected(),
                    deadline - now,
                    self._hindrances(now) or advice,
                )
            self._take_in(min(_TICK, deadline - now), None)
        hindrances = self._hindrances(now)
        if not there:
            raise WorkerError(f"no worker was ready within {timeout:g} s. {hindrances or advice}")
        self._warn(
            f"Only {there} of {expected()} workers were ready within {timeout:g} s; starting with those."
            f" {hindrances}".rstrip()
        )

    def _hindrances(self, now: float) -> str:
        """Why workers that have been heard of are not ready; empty when there are none."""
        texts = self.dispatcher.hindrances(now)
        if len(texts) > _MOST_HINDRANCES:
            texts[_MOST_HINDRANCES:] = [f"and so on for {len(texts) - _MOST_HINDRANCES} more workers"]
        return "; ".join(texts)

    def change(self, **changes: object) -> None:
        """Change parameters in the middle of the run; workers see it with their next batch."""
        self.parameters = msgspec.structs.replace(
            self.parameters, generation=self.parameters.generation + 1, **changes
        )
        self._header = wire.pack_parameters(self.parameters)

    def forget_jobs(self, **changes: object) -> None:
        """Begin anew with other parameters: workers drop what they have and close their connections."""
        self.change(run_id=secrets.randbits(62) + 1, **changes)

    def _warn(self, text: str) -> None:
        if len(self.warnings) < _MOST_WARNINGS:
            self.warnings.append(text)
        _log.warning("%s", text)

    # -- the loop -----------------------------------------------------------------------------

    def end_at_once(self) -> bool:
        """Whether :meth:`run` is under way, which then raises KeyboardInterrupt within a tenth of a second.

        A signal handler that raised it anywhere could do so where a result has left the book and has
        not reached the phase yet.
        """
        self._at_once = self._running
        return self._running

    def run(self, phase: Phase, give_up_after: float | None = None) -> Standstill:
        """Carry a phase through; returns how long nothing succeeded in it.

        Raises WorkerError when no worker is left, ClusterError when nothing has succeeded for
        ``give_up_after`` seconds (None: those of the constructor; 0: never). However it ends, every
        task that was sent has been reported to the phase.
        """
        dispatcher = self.dispatcher
        began = self._said_at = time.monotonic()
        standstill = self._standstill = Standstill(
            self.give_up_after if give_up_after is None else give_up_after, began
        )
        if dispatcher.living():
            self._somebody_at = began
        draining_since: float | None = None
        self._running = True
        try:
            while True:
                if self._at_once:
                    raise KeyboardInterrupt
                now = time.monotonic()
                if now >= self._next_tick:
                    self._tick(now)
                    phase.tick(now)
                    self._check_somebody(now)
                    self._check_hope(now)
                    self._say_what_is_missing(now, phase, draining=draining_since is not None)
                if dispatcher.lost:
                    self._settle_lost(phase, now)
                waits = True
                if phase.exhausted(now):
                    if draining_since is None:
                        draining_since = self._said_at = now
                    if not dispatcher.in_flight and not dispatcher.backlog and not self._unauthorized:
                        return standstill
                    if phase.patience is not None and now - draining_since > phase.patience:
                        return standstill
                    self._send(phase, now, only_backlog=True)
                else:
                    waits = self._send(phase, now, only_backlog=False)
                phase.catch_up()
                self._take_in(_TICK if waits else 0.001, phase)
        finally:
            self._give_up(phase)
            self._running = False

    def _give_up(self, phase: Phase) -> None:
        """Report to the phase what has not ended."""
        dispatcher = self.dispatcher
        for task, worker in dispatcher.take_lost():
            phase.lost([task], given_up=LOST, worker=worker)
        if self._unauthorized:
            phase.lost([task for task, _ in self._unauthorized], given_up=UNAUTHORIZED)
            self._unauthorized.clear()
        given_up = dispatcher.abandon()
        if given_up:
            phase.lost(given_up, given_up=UNFINISHED if dispatcher.living() else LOST)
            # Workers drop what they still have of it, and have their slots free for the next phase.
            self.forget_jobs()
        self._take_events(time.monotonic(), all_of_it=True)

    def _send(self, phase: Phase, now: float, *, only_backlog: bool) -> bool:
        """Send what there is room for; False when there was room and the phase gave nothing."""
        dispatcher = self.dispatcher
        room = dispatcher.room()
        if room <= 0 or self._renewal.under_way:
            return True
        while room > 0:
            worker = dispatcher.next_worker()
            if worker is None:
                return True
            most = min(self._batch_size, worker.quota - worker.outstanding, room, _MOST_JOBS)
            tasks: Sequence[Task]
            priors: list[Prior | None] = []
            again: list[tuple[int, float]] = []
            if dispatcher.backlog:
                count = min(most, len(dispatcher.backlog))
                taken = [dispatcher.backlog.popleft() for _ in range(count)]
                tasks = [task for task, _ in taken]
                priors = [prior for _, prior in taken]
                if any(priors):
                    again = [(p.retries, max(0.0, now - p.began)) if p else (0, 0.0) for p in priors]
            elif only_backlog:
                return True
            else:
                tasks = phase.next_tasks(most)
                if not tasks:
                    return False
            first, jobs = dispatcher.send(tasks, now, worker, priors)
            if self._send_message(worker, self._header + wire.pack(wire.JobBatch(first, jobs, again))):
                room -= len(tasks)
            else:
                dispatcher.unsend(first)
                worker.away = True
        return True

    def _send_message(self, worker: WorkerState, message: bytes) -> bool:
        try:
            send = self._sockets.work.send
            send(worker.address, _AT_ONCE_AND_MORE)
            send(message, _AT_ONCE)
        except zmq.ZMQError as error:
            if error.errno in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                return False  # it is not connected at this moment
            raise
        return True

    def _take_in(self, timeout: float, phase: Phase | None) -> None:
        results = self._sockets.results
        if timeout != self._receive_timeout:
            # A receive that waits by itself is one call less than a poll before it: 15 % of the
            # loop at 3 batches of 8 in flight.
            self._receive_timeout = timeout
            results.setsockopt(zmq.RCVTIMEO, math.ceil(timeout * 1000))
        for place in range(_MESSAGES_A_TURN):
            if place and not has_message(results):
                return
            try:
                frame = results.recv(_AT_ONCE if place else 0)
            except zmq.Again:
                return
            try:
                message = wire.unpack_from_worker(frame)
            except ProtocolError as error:
                self._refuse_version(error)
                continue
            except WireError as error:
                self._drop(str(error))
                continue
            now = time.monotonic()
            if type(message) is wire.Results:
                self._take_results(message, now, phase)
            else:
                self._take_news(message, now)

    def _take_news(self, message: wire.FromWorker, now: float) -> None:
        dispatcher = self.dispatcher
        if isinstance(message, wire.Heartbeat):
            dispatcher.heartbeat(message, self.parameters.run_id, now)
        elif isinstance(message, wire.Goodbye):
            dispatcher.leave(message.instance, f"has ended: {message.reason}")
        elif isinstance(message, wire.Handback):
            worker = dispatcher.known(message.instance)
            if worker is not None and message.run_id == self.parameters.run_id:
                dispatcher.hand_back(message.job_ids, worker, message.capacity)

    def _take_results(self, message: wire.Results, now: float, phase: Phase | None) -> None:
        dispatcher = self.dispatcher
        worker = dispatcher.known(message.instance)
        if message.run_id != self.parameters.run_id or worker is None or phase is None:
            dispatcher.late_results += len(message.results)
            return
        worker.offset.observe(message.clock, now)
        to_master = worker.offset.seconds
        earliest, latest = now - to_master - 1.0, now - to_master + 1.0
        largest = self._bounds.largest
        settle = dispatcher.settle
        standstill, succeeded = self._standstill, False
        ended: list[tuple[Task, Result]] = []
        for result in message.results:
            entry = settle(result.job_id, worker)
            if entry is None:
                continue
            task, batch, prior = entry
            last = result.last_byte
            # Nearly all are plainly possible. To call a function for each would cost half of this loop.
            if (
                last is None
                or (result.first_byte or 0.0) > last
                or last > now - batch.sent_at
                or not earliest < result.completed < latest
                or result.retries
                or result.retried
                or (result.size and result.size != task[4] and (task[4] or result.size > largest[task[1]]))
            ):
                wrong = self._bounds.fault(entry, result, to_master, now)
                if wrong is not None:
                    dispatcher.note_invalid(worker, wrong)
                    result = _invalid(result, wrong, now - to_master)  # noqa: PLW2901 - what is kept of it
            if prior is not None:
                result = _with_prior(result, prior)  # noqa: PLW2901 - the same result, complete
            if result.cause is not None and len(self.parameters.storage_urls) > 1:
                result = _with_storage_url(result, self.parameters.storage_urls)  # noqa: PLW2901
            if result.cause is None:
                succeeded = True
            elif result.unauthorized and self._ask_again(task, result, prior, message.generation, now):
                standstill.failed(UNAUTHORIZED, result.detail, 0.0, now)
                continue
            else:
                standstill.failed(result.cause, result.detail, now - batch.sent_at, now)
            ended.append((task, result))
        if succeeded:
            standstill.succeeded(now)
        if ended:
            phase.done(ended, worker)

    def _drop(self, why: str) -> None:
        # The first ones are told one by one; a flood is counted.
        self._dropped_messages += 1
        if self._dropped_messages <= 3:
            _log.warning("Dropped a message that is none of a worker's: %s", why[:200])

    def _refuse_version(self, error: ProtocolError) -> None:
        if error.worker is None or len(self.dispatcher.refused()) >= _MOST_REFUSED:
            self._drop(str(error))
            return
        worker_id, instance = error.worker
        reason = f"speaks protocol {error.protocol}, this master {wire.PROTOCOL}"
        self.dispatcher.refuse(instance, worker_id, "?", reason, time.monotonic())

    def _ask_again(
        self, task: Task, result: Result, prior: Prior | None, generation: int, now: float
    ) -> bool:
        retried = dict(result.retried or {})
        retried[UNAUTHORIZED] = retried.get(UNAUTHORIZED, 0) + 1
        if not self._renewal.possible or retried[UNAUTHORIZED] > _MOST_RENEWALS:
            return False
        began = prior.began if prior else now - (result.last_byte or 0.0)
        self._unauthorized.append((task, Prior(result.retries + 1, began, retried)))
        if generation >= self.parameters.generation and not self._renewal.under_way:
            _log.info("Swift no longer takes the token; authenticating again")
            self._renewal.start()
        return True

    # -- time passes --------------------------------------------------------------------------

    def _tick(self, now: float) -> None:
        self._next_tick = now + _TICK
        self._sockets.drop_strangers()
        self.look_after_descriptors(now)
        self.dispatcher.tick(now)
        self.on_tick(now)
        self._look_after_token(now)
        self._take_events(now)
        self._send_notices(now)

    def look_after_descriptors(self, now: float) -> None:
        """See to it that files can be opened; to be called where the loop does not run for a while."""
        told = self._sockets.look_after_descriptors()
        if told is not None and now - self._told_scarce_at > _SCARCE_SECONDS:
            self._told_scarce_at = now
            self._warn(told)

    def shut_doors(self) -> None:
        """Take in no more connections, so that files can be opened, until the loop runs again."""
        self._sockets.shut_doors()

    def _look_after_token(self, now: float) -> None:
        renewal, before = self._renewal, self._renewal.failures
        token = renewal.poll(now)
        if token is not None:
            self.change(token=token)
            if before:
                self._warn(f"Authenticating again succeeded after {before} failures")
        elif renewal.failures > before:
            self._standstill.failed(AUTHENTICATION, renewal.error, 0.0, now)
            text = (
                f"Authenticating again has failed ({renewal.failures} x), and is tried again: {renewal.error}"
            )
            if not before:
                self._warn(text)
            elif now - self._renewal_said_at >= _SAY_RENEWAL_SECONDS:
                _log.warning("%s", text)
            else:
                return
            self._renewal_said_at = now
        if not renewal.under_way:
            for task, prior in self._unauthorized:
                self.dispatcher.send_again(task, prior)
            self._unauthorized.clear()

    def _take_events(self, now: float, *, all_of_it: bool = False) -> None:
        events, self.dispatcher.events = self.dispatcher.events, []
        for line in self._news.lines(events, now, all_of_it=all_of_it):
            if line.keep:
                self._warn(line.text)
            else:
                _log.log(logging.WARNING if line.warning else logging.INFO, "%s", line.text)

    def note_strange_results(self) -> None:
        """Add to the warnings, for the report, how many results were ignored or refused, and whose."""
        self.warnings.extend(strange_results(self.dispatcher.workers.values()))

    def _send_notices(self, now: float) -> None:
        """Send pings that are due, and tell refused workers so."""
        ping = wire.pack_notice(wire.Ping(self.dispatcher.master, now))
        for worker in self.dispatcher.to_ping(now):
            # One that has just come may not be connected yet and is tried again soon.
            if self._send_message(worker, ping) or now - worker.since > wire.LOST_AFTER:
                worker.pinged = now
        if now - self._told_at >= _TELL_SECONDS:
            for worker in self.dispatcher.refused()[:_MOST_REFUSED]:
                self._told_at = now
                self._send_message(worker, wire.pack_notice(wire.Refusal(worker.refusal or "")))

    def _settle_lost(self, phase: Phase, now: float) -> None:
        for task, worker in self.dispatcher.take_lost():
            self._standstill.failed(LOST, f"with worker {worker.worker_id} on {worker.host}", LOST_AFTER, now)
            for again in phase.lost([task], given_up=None, worker=worker):
                self.dispatcher.send_again(again, None)

    def _check_somebody(self, now: float) -> None:
        if self.dispatcher.living():
            self._somebody_at = now
        elif now - self._somebody_at > _NOBODY_LEFT:
            raise WorkerError("all workers are gone")

    def _check_hope(self, now: float) -> None:
        standstill = self._standstill
        if not standstill.hopeless(now, self.dispatcher.oldest_sent):
            return
        why = f"nothing has succeeded for {now - standstill.succeeded_at:.0f} s: {standstill.failures}"
        why += f" (given up after --give-up-after {standstill.give_up_after:g})"
        raise WorkerError(why) if standstill.main_cause == LOST else ClusterError(why)

    def _say_what_is_missing(self, now: float, phase: Phase, *, draining: bool) -> None:
        standstill, dispatcher = self._standstill, self.dispatcher
        if now - self._said_at < _SAY_SECONDS:
            return
        if not draining and now - standstill.succeeded_at < _SAY_SECONDS:
            return
        self._said_at = now
        holders = [worker for worker in dispatcher.living() if worker.outstanding]
        named = [f"worker {each.worker_id} on {each.host} has {each.outstanding}" for each in holders]
        if len(named) > _MOST_NAMED:
            named[_MOST_NAMED:] = [f"{len(named) - _MOST_NAMED} more workers have the rest"]
        text = f"Waiting for {len(dispatcher.in_flight)} {phase.what} to end"
        if named:
            text += f" ({', '.join(named)})"
        if self._unauthorized:
            text += f", {len(self._unauthorized)} more wait for a new token"
        text += f"; nothing has ended for {now - standstill.ended_at:.0f} s"
        if standstill.failures:
            text += (
                f", nothing has succeeded for {now - standstill.succeeded_at:.0f} s: {standstill.failures}"
            )
        _log.info("%s", text)


def _invalid(result: Result, why: str, completed: float) -> Result:
    return Result(result.job_id, None, None, completed, cause=INVALID, detail=why)


def _with_prior(result: Result, prior: Prior) -> Result:
    retried = dict(prior.retried)
    for cause, count in (result.retried or {}).items():
        retried[cause] = retried.get(cause, 0) + count
    return msgspec.structs.replace(result, retried=retried)


def _with_storage_url(result: Result, urls: Sequence[str]) -> Result:
    """Name the storage URL that a failure came from, where there are several."""
    url = urls[result.storage_url] if result.storage_url < len(urls) else "an unknown storage URL"
    return msgspec.structs.replace(result, detail=f"{url}: {result.detail}")
