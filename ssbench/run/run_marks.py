"""Marks of runs: small objects in the first container of a run, by which other runs and the clean-up find it.

A mark is renewed while its run is under way, and expires by itself (X-Delete-After) where it is not, because
the run was killed or its host lost power. Swift's own clocks tell its age, so no two hosts' clocks are
compared. A mark of a process that no longer runs on this host counts for nothing at once.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ssbench.scenario.names import MARK_PREFIX, mark_name
from ssbench.store.contract import AttemptError, Listing, RequestOutcome, StoreAccess, StoreRequest
from ssbench.store.credentials import Session
from ssbench.store.stores import STORE, open_dialect

_log = logging.getLogger(__name__)

#: Seconds after which a mark that was not renewed counts for nothing.
MARK_LIFETIME = 60

#: Seconds that the mark of a run that has ended stays for the runs beside which it was.
ENDED_MARK_LIFETIME = 7 * 86400

#: Marks beyond this number, and beyond this many bytes, are not looked at: they are not ours.
_MAX_MARKS = 1000
_MAX_MARK_BYTES = 4096

_NOT_FOUND_STATUS = 404
#: Those of a listing of nothing: some stores have an answer without a body for that.
_EMPTY_STATUSES = frozenset({204, _NOT_FOUND_STATUS})

#: The names of marks; objects with other names are not ours and are ignored.
_MARK_PATTERN = re.compile(re.escape(MARK_PREFIX) + "[0-9a-f]{1,16}", re.ASCII)

#: The parts of the name of a container.
_CONTAINER_PATTERN = re.compile(r".*[_-](?P<number>[0-9]{6,})(?:[_-](?P<policy>[^_]+))?", re.DOTALL)

#: What may be in a name that is shown: a mark is read by whoever finds it, and written by anyone.
_UNSHOWN_CHARACTERS = re.compile(r"[^\w.:@ -]")

MarkText = Annotated[str, Meta(max_length=300)]


class RunMark(Struct, frozen=True, kw_only=True):
    """What a run says of itself."""

    run: Annotated[str, Meta(pattern="^[0-9a-f]{1,16}$")]  # its number in hexadecimal digits
    host: MarkText = ""
    pid: Annotated[int, Meta(ge=0)] = 0
    process: MarkText = ""  # where it runs, as :func:`describe_this_process` says
    scenario: MarkText = ""  # name of the scenario
    #: Keeps the names of its objects apart from those of other runs; empty: the usual names.
    tag: MarkText = ""
    #: Digest of the initial objects that it only reads, once they are all there; empty: it writes.
    reads: MarkText = ""
    kept: Annotated[int, Meta(ge=0)] = 0  # objects that it left by request
    ended: bool = False  # it is over

    def __str__(self) -> str:
        """Name the run for people."""
        scenario = f", scenario {_shown_name(self.scenario)}" if self.scenario else ""
        return f"run {self.run} of host {_shown_name(self.host) or '?'} (pid {self.pid}{scenario})"

    @property
    def sentence_start(self) -> str:
        """Name the run at the beginning of a sentence."""
        return f"R{str(self)[1:]}"


_decoder = msgspec.json.Decoder(RunMark)


class RunMarks:
    """The marks in one container; every method makes requests, and raises AttemptError where one fails.

    Requests that failed are made again within ``retry_seconds`` (None: as long as others of a run).
    """

    def __init__(
        self, access: StoreAccess[Session], container: str, retry_seconds: float | None = None
    ) -> None:
        self._retry_seconds = retry_seconds
        self._access = access
        self._container = container

    def put(self, mark: RunMark) -> None:
        """Write a mark, or renew it. That of objects that are kept does not expire."""
        lifetime = None
        if not mark.kept:
            lifetime = ENDED_MARK_LIFETIME if mark.ended else MARK_LIFETIME
        self._ask(
            "PUT",
            mark_name(mark.run),
            body=msgspec.json.encode(mark),
            headers=(("Content-Type", "application/json"),),
            delete_after=lifetime,
        )

    def delete(self, run: str) -> None:
        """Delete the mark of a run, if there is one."""
        self._ask("DELETE", mark_name(run), missing_ok=True)

    def others(self, run: str = "") -> list[RunMark]:
        """Return the marks that count, except that of ``run``.

        Those that have expired, and those of runs that were killed on this host, are deleted.
        """
        found = []
        for name in self._names():
            if name == mark_name(run):
                continue
            answer = self._ask("GET", name, missing_ok=True)
            if answer.status == _NOT_FOUND_STATUS or answer.reply is None:
                mark, over = None, True  # it is listed for some time after it has expired
            else:
                mark = _decode_mark(answer.reply.body, name)
                # A store that does not know X-Delete-After keeps them.
                expired = _age_of(answer.reply.fields) > MARK_LIFETIME
                over = mark is not None and not mark.ended and (expired or _is_over(mark))
            if over:
                with contextlib.suppress(AttemptError):
                    self._ask("DELETE", name, missing_ok=True)
            elif mark is not None:
                found.append(mark)
        return found

    def _names(self) -> list[str]:
        request = StoreRequest(
            method="GET",
            container=self._container,
            listing=Listing(limit=_MAX_MARKS, prefix=MARK_PREFIX),
            missing_ok=True,
        )
        answer = self._make(request)
        if answer.status in _EMPTY_STATUSES or answer.reply is None:
            return []
        page = open_dialect(self._access.session.storage_url).read_page(answer.reply.body, request)
        return [name for name, size in page.rows if size <= _MAX_MARK_BYTES and _MARK_PATTERN.fullmatch(name)]

    def _ask(self, method: str, name: str, **more: Any) -> RequestOutcome:
        return self._make(StoreRequest(method=method, container=self._container, name=name, **more))

    def _make(self, request: StoreRequest) -> RequestOutcome:
        outcome = STORE.ask(self._access, request, self._retry_seconds)
        if outcome.cause is None:
            return outcome
        error = AttemptError(outcome.cause, f"{outcome.cause} {outcome.detail}".strip())
        error.status = outcome.status
        raise error


def containers_in_use(access: StoreAccess[Session], names: Sequence[str]) -> dict[str, RunMark]:
    """Return which of these containers runs under way use, each with the mark of one of these.

    ``names`` are of one base and of any policies; a run may use all those of its policy. Where marks cannot
    be read, a warning is logged.
    """
    used = {}
    for name in names:
        if (group := _CONTAINER_PATTERN.fullmatch(name)) is None or int(group["number"]):
            continue
        try:
            running = [mark for mark in RunMarks(access, name).others() if not mark.ended]
        except AttemptError as error:
            _log.warning("Whether a run uses %s is not known: %s", name, error)
            continue
        if running:
            for other in names:
                its = _CONTAINER_PATTERN.fullmatch(other)
                if its is not None and its["policy"] == group["policy"]:
                    used[other] = running[0]
    return used


def is_denied(error: AttemptError) -> bool:
    """Whether a request failed because the account may be read only."""
    return error.status == 403


def _decode_mark(content: bytes, name: str) -> RunMark | None:
    """Return the mark of this name; None for what is no mark."""
    try:
        mark = _decoder.decode(content)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return mark if mark_name(mark.run) == name else None


def _age_of(headers: dict[str, str]) -> float:
    """Return the seconds since an object was written, by the clock of the server; 0 where it does not say."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - a no-op run does without

    try:
        now, then = (parsedate_to_datetime(headers[name]) for name in ("date", "last-modified"))
        return (now - then).total_seconds()
    except (KeyError, TypeError, ValueError, OverflowError):
        return 0.0


def _shown_name(name: str) -> str:
    return _UNSHOWN_CHARACTERS.sub("?", name)[:100]


@cache
def describe_this_process() -> str:
    """Return what distinguishes this process from all others of all hosts; empty where that is not known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return ""
    pid = os.getpid()
    return f"{boot}/{space}/{pid}/{_start_of(pid)}"


def _start_of(pid: int) -> str:
    """Return when a process began, as the kernel counts; empty where that cannot be seen."""
    fields = _status_of(pid)
    return fields[19] if len(fields) > 19 else ""


def _status_of(pid: int) -> list[str]:
    """Return what the kernel says of a process after its name, its state first; empty where it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


#: The numbers of the runs of this process that are under way: another mark of it could not be taken away.
MARKS_UNDER_WAY: set[str] = set()


def _is_over(mark: RunMark) -> bool:
    """Whether the run of a mark is known to have ended without taking it away."""
    if mark.process and mark.process == describe_this_process():
        return mark.run not in MARKS_UNDER_WAY
    return _is_gone(mark.process)


def _is_gone(process: str) -> bool:
    """Whether a process of this host has ended; False for those of other hosts."""
    here, its = describe_this_process().split("/"), process.split("/")
    if len(here) != 4 or len(its) != 4 or here[:2] != its[:2] or not its[2].isdecimal():
        return False
    pid = int(its[2])
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        pass
    if _status_of(pid)[:1] in (["Z"], ["X"]):
        return True  # it was killed, and whoever started it has not asked how it ended
    start = _start_of(pid)
    return bool(start) and start != its[3]
