"""The token of all runs of a bench, and renewing it in the middle of a run.

A renewal takes place on a thread, so that the master's loop keeps running. The clock is passed in; only the
request itself takes real time.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from ssbench.base import interruption
from ssbench.base.errors import AuthenticationBusyError, SsbenchError
from ssbench.base.interruption import call_concurrently
from ssbench.base.text_values import format_duration
from ssbench.fleet.worker_state import History, Task, history_after_failure
from ssbench.store.contract import UNAUTHORIZED_CAUSE, JobResult
from ssbench.store.credentials import RENEWAL_INTERVAL, is_sent_again, pause_after_failures
from ssbench.store.stores import STORE, Credentials, Session

_log = logging.getLogger(__name__)

#: How many of several credentials are used to authenticate at once.
_RENEWALS_AT_ONCE = 10

#: Seconds between attempts to authenticate at first, where the service is too busy: without a Retry-After, at
#: the least, and all of them.
_BUSY_PAUSE_SECONDS = 2.0
_LEAST_PAUSE_SECONDS = 0.5
_MOST_BUSY_SECONDS = 60.0


def _on_a_thread(call: Callable[[], None]) -> None:
    # A daemon: an authentication service that does not answer does not hold up the end of the program.
    threading.Thread(target=call, name="renew-token", daemon=True).start()


def _authenticate_patiently(
    authenticate: Callable[[Credentials], Session], credentials: Credentials
) -> Session:
    """Return a session, also of a service that is too busy at first; raises what ``authenticate`` does."""
    left = _MOST_BUSY_SECONDS
    while True:
        try:
            return authenticate(credentials)
        except AuthenticationBusyError as error:
            pause = _BUSY_PAUSE_SECONDS if error.seconds is None else max(error.seconds, _LEAST_PAUSE_SECONDS)
            if pause > left:
                raise
            left -= pause
            _log.warning("%s; trying again in %s", error, format_duration(pause))
            interruption.sleep_interruptibly(pause)


class TokenSource:
    """Authenticates, and again for each new token; ``sessions`` have the latest ones, one for each account.

    There is an account for each of the credentials; or one for each of the ``names``, all reached with the
    token that one of the credentials, a reseller admin's, gets. Raises what
    :meth:`~ssbench.store.contract.Store.authenticate` raises, and UsageError where an account cannot be
    named.
    """

    def __init__(
        self,
        credentials: Sequence[Credentials],
        names: Sequence[str] = (),
        authenticate: Callable[[Credentials], Session] | None = None,
    ) -> None:
        self._credentials = credentials
        self._authenticate = authenticate = authenticate or STORE.authenticate
        #: Whether one token is that of all accounts.
        self.shared = bool(names)
        if len(credentials) == 1:
            self.sessions = [_authenticate_patiently(authenticate, credentials[0])]
        else:
            patiently = partial(_authenticate_patiently, authenticate)
            self.sessions = call_concurrently(patiently, credentials, _RENEWALS_AT_ONCE, "authenticate")
        for each, session in zip(credentials, self.sessions, strict=True):
            STORE.warn_of_route(each, session)
        if names:
            self.sessions = [STORE.in_account(self.sessions[0], name) for name in names]
        #: When those of each of the credentials came, by the monotonic clock.
        self._came_at = [time.monotonic()] * len(credentials)
        #: Tokens of many accounts may be refused at once.
        self._turn = threading.BoundedSemaphore(_RENEWALS_AT_ONCE)

    def renewing(self, account: int) -> Callable[[], Session] | None:
        """Return what renews the token of a session; None where the user gave it, and there is no other."""
        number = 0 if self.shared else account
        if self._credentials[number].version == "none":
            return None

        def renew() -> Session:
            with self._turn:
                token = self._authenticate(self._credentials[number]).token or ""
            self._came_at[number] = time.monotonic()
            for own in range(len(self.sessions)) if self.shared else [account]:
                self.sessions[own] = replace(self.sessions[own], token=token)
            return self.sessions[account]

        return renew

    def end(self) -> None:
        """Remove what authenticating has made, such as access keys. Raises nothing."""
        STORE.end()

    def names(self) -> list[str]:
        """Return what reports call the accounts: as in storage URLs, with users where these are alike."""
        names = [session.storage_url.rpartition("/")[2] for session in self.sessions]
        if len({*names}) == len(names):
            return names
        users = [each.user or each.user_id or "" for each in self._credentials]
        return [f"{name} ({user})" for name, user in zip(names, users, strict=True)]

    def renewals(self) -> list[TokenRenewal]:
        """Return what renews the tokens in the loop of a run: one for each of the credentials."""
        return [self._make_renewal(number) for number in range(len(self._credentials))]

    def _make_renewal(self, number: int) -> TokenRenewal:
        renew, seconds = self.renewing(number), STORE.renewal_seconds(self.sessions[number])
        authenticate = None if renew is None else lambda: renew().token or ""
        return TokenRenewal(authenticate, seconds=seconds, age=time.monotonic() - self._came_at[number])


class TokenRenewal:
    """Calls ``authenticate``, which returns a new token or raises SsbenchError, until there is one.

    Without it (None) there is nothing to renew: the token was given by the user. ``spawn`` calls a
    function in the background. A token is asked for with :meth:`start`, when one was refused, and by itself
    each time that so many ``seconds`` have passed, while the one that is there is still good. The first one
    has an ``age``, in seconds.
    """

    def __init__(
        self,
        authenticate: Callable[[], str] | None,
        spawn: Callable[[Callable[[], None]], None] = _on_a_thread,
        seconds: float = math.inf,
        age: float = 0.0,
    ) -> None:
        #: Attempts that failed since the last token, and why the last of them did.
        self.failures = 0
        self.error = ""
        self._authenticate = authenticate
        self._spawn = spawn
        self._answers: queue.SimpleQueue[str | BaseException] = queue.SimpleQueue()
        self._under_way = self._asked = False
        self._next_at = float("-inf")
        self._seconds = seconds
        self._age = age
        #: When one is asked for by itself; None: not known yet.
        self._due_at: float | None = None

    @property
    def possible(self) -> bool:
        """Whether there is any use in :meth:`start`."""
        return self._authenticate is not None

    @property
    def under_way(self) -> bool:
        """Whether a token was asked for with :meth:`start` and has not come yet."""
        return self._under_way

    def start(self) -> None:
        """Ask for a new token; :meth:`poll` does the rest."""
        self._under_way = self.possible

    def poll(self, now: float) -> str | None:
        """Begin the next attempt when its time has come; return a new token, once.

        Raises what ``authenticate`` raised, if that was no SsbenchError.
        """
        if self._authenticate is None:
            return None
        if self._due_at is None:
            self._due_at = now + self._seconds - self._age
        if self._asked:
            return self._take_answer(now)
        if not self._under_way and now < self._due_at:
            return None
        if now >= self._next_at:
            self._asked = True
            self._spawn(partial(self._ask, self._authenticate))
        return None

    def _ask(self, authenticate: Callable[[], str]) -> None:
        try:
            self._answers.put(authenticate())
        except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that polls
            self._answers.put(error)

    def _take_answer(self, now: float) -> str | None:
        try:
            answer = self._answers.get_nowait()
        except queue.Empty:
            return None
        self._asked = False
        if isinstance(answer, SsbenchError):
            self.failures += 1
            self._next_at = now + pause_after_failures(self.failures)
            self.error = str(answer)
            return None
        if isinstance(answer, BaseException):
            raise answer
        self._next_at = now + RENEWAL_INTERVAL
        self._due_at = now + self._seconds
        self._under_way = False
        self.failures = 0
        return answer


class WaitingForToken:
    """Tasks whose token was refused: they wait for a new one, and are sent again with their history."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Task, History, TokenRenewal]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(
        self, task: Task, result: JobResult, history: History | None, renewal: TokenRenewal, ended: float
    ) -> bool:
        """Keep a task whose token, that of ``renewal``, was refused; ``result`` includes its history.

        ``ended`` is when the worker had the refusal, by the master's clock. Returns False if it is not to be
        sent again: there is no way to a new token, or new tokens were refused too often.
        """
        later = history_after_failure(result, UNAUTHORIZED_CAUSE, history, ended)
        if not renewal.possible or not is_sent_again(later.retried[UNAUTHORIZED_CAUSE]):
            return False
        self._waiting.append((task, later, renewal))
        return True

    def take(self, renewal: TokenRenewal | None = None) -> list[tuple[Task, History]]:
        """Return those that wait for this renewal, or for any (None); they then wait no more."""
        waiting, self._waiting = self._waiting, []
        if renewal is not None:
            self._waiting = [each for each in waiting if each[2] is not renewal]
            waiting = [each for each in waiting if each[2] is renewal]
        return [(task, history) for task, history, _ in waiting]

    def renewals(self) -> list[TokenRenewal]:
        """Return what they wait for."""
        return [*dict.fromkeys(renewal for *_, renewal in self._waiting)]
