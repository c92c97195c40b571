"""A log as the requests of a run, on objects of its own (:mod:`ssbench.scenario.replayed`).

What has to exist first follows from the log: an object that is used before any upload of it succeeds. How
large that is, the first request for it says that tells, else the longest range, else the median of its
container. No name of the log goes any further: containers and objects are numbers in the order in which they
came.
"""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from hashlib import blake2b
from http import HTTPStatus
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from ssbench.base import text_values
from ssbench.base.errors import UsageError, did_you_mean
from ssbench.document.columns import format_plural
from ssbench.logs.column_files import ColumnFiles
from ssbench.logs.log_files import LogFile, find_log_files
from ssbench.logs.logged_requests import (
    FIRST_FAILURE,
    OBJECT_KINDS,
    REQUEST_KINDS,
    RequestColumns,
    read_requests,
)
from ssbench.logs.request_formats import REQUEST_FORMATS, find_request_format, suggest_format
from ssbench.run.bars import ProgressBar
from ssbench.scenario.replay_source import LoggedOperation, Replay, ReplaySource
from ssbench.scenario.replayed import count_replay_containers
from ssbench.traffic.object_uses import NumberedKeys, split_into_blocks
from ssbench.traffic.run_requests import has_stat_file_name, read_run_requests
from ssbench.traffic.traffic_figures import refuse_wrong_clock

_log = logging.getLogger(__name__)

_Numbers = npt.NDArray[np.int64]
_Marks = npt.NDArray[np.bool_]
_Moments = npt.NDArray[np.float64]

#: What is refused for what is asked, or for who asks: no data moved. A replay would be answered, on an object
#: that it had made. What is missing, stalled, or too much for the store is replayed.
_REFUSALS = (400, 401, 403, 405, 409, 411, 412, 413, 416, 422)
_KIND = {kind: code for code, kind in enumerate(REQUEST_KINDS)}
#: Requests that are refused because there is no such thing, by what they are of the log, as a scenario
#: defines them: name, method, path.
_MISSING = {
    "read": ("get_missing", "GET", "{account}/{container}/{object}"),
    "range": ("get_missing", "GET", "{account}/{container}/{object}"),
    "head": ("head_missing", "HEAD", "{account}/{container}/{object}"),
    "delete": ("delete_missing", "DELETE", "{account}/{container}/{object}"),
    "post": ("post_missing", "POST", "{account}/{container}/{object}"),
    "list": ("list_missing", "GET", "{account}/{container}-missing"),
    "head_container": ("head_container_missing", "HEAD", "{account}/{container}-missing"),
}
#: Our operations, in the order in which a replay has them.
_NAMES = (
    *("create", "update", "read", "range", "head", "delete", "post", "copy", "conditional"),
    *("list", "head_container", "list_account", "head_account"),
    *dict.fromkeys(name for name, *_ in _MISSING.values()),
)
_PLACE = {name: place for place, name in enumerate(_NAMES)}
#: Stands for an upload of which no request before tells whether its object is there.
_FIRST_PUT = len(_NAMES)
_ON_CONTAINERS = {"list", "head_container", "list_missing", "head_container_missing"}
#: The places of operations on one object.
_ON_OBJECTS = [
    place for name, place in _PLACE.items() if name not in {*_ON_CONTAINERS, "list_account", "head_account"}
]
#: What stores take in one piece, in bytes. Larger objects were made of several.
_MOST_BYTES = 5 << 30
#: Requests of a log that are looked at together.
_ROWS_AT_ONCE = 1 << 17
#: Users are as many as several times the requests that were in flight at once, and at least so many.
_LEAST_USERS, _MAX_USERS, _USERS_A_REQUEST = 64, 10_000, 8
_TIME = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")
_EXPECTED_MOMENT = "10:00 or 10:00:30 (UTC), 2026-11-29T10:00, or 90s or 10m after the first request"


@dataclass(frozen=True, slots=True)
class ReplayOrder:
    """What ``--replay`` says."""

    logs: tuple[str, ...]
    begin: str = ""  # a moment; empty: that of the first request
    end: str = ""  # the same of the last one
    speed: float = 1.0  # how much faster than the log
    copies: int = 1  # how often each request is made, on other objects
    format: str = "swift"
    template: str | None = None  # how lines are configured; None: as usual
    said: frozenset[str] = field(default=frozenset(), compare=False)  # the fields that its words say


def parse_replay_order(text: str) -> ReplayOrder:
    """Parse ``LOG... [from T] [to T] [speed N] [copies N] [format F] [template TEXT]``; raises ValueError."""
    words = shlex.split(text)
    first = next((place for place, word in enumerate(words) if word in _WORDS), len(words))
    values: dict[str, Any] = {}
    for place in range(first, len(words), 2):
        word = words[place]
        if word not in _WORDS:
            raise ValueError(f"{word!r} is none of {', '.join(_WORDS)}, which follow the logs")
        if place + 1 == len(words):
            raise ValueError(f"{word}: a value is missing")
        name, _ = _WORDS[word]
        if name in values:
            raise ValueError(f"{word} is there twice")
        values[name] = read_order_value(word, words[place + 1])
    if not first:
        raise ValueError("the name of a log comes first, as in 'proxy.log from 10:00 to 11:00 speed 2'")
    return ReplayOrder(tuple(words[:first]), **values, said=frozenset(values))


def read_order_value(word: str, text: str) -> Any:
    """Return the value that follows a word of an order; raises ValueError."""
    return _WORDS[word][1](text)


def _read_speed(text: str) -> float:
    speed = float(text) if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text, re.ASCII) else 0.0
    if not 0.001 <= speed <= 1000:
        raise ValueError(f"speed: expected a number from 0.001 to 1000, not {text!r}")
    return speed


def _read_copies(text: str) -> int:
    copies = int(text) if re.fullmatch(r"\d{1,4}", text, re.ASCII) else 0
    if not 1 <= copies <= 1000:
        raise ValueError(f"copies: expected a whole number from 1 to 1000, not {text!r}")
    return copies


def _read_format(text: str) -> str:
    if text not in REQUEST_FORMATS:
        raise ValueError(f"format: expected one of {', '.join(REQUEST_FORMATS)}, not {text!r}")
    return text


def _check_moment(text: str) -> str:
    find_moment(text, 0.0)
    return text


def find_moment(text: str, first: float) -> float:
    """Return a moment of a log whose first request began at ``first``; raises ValueError.

    A time of the day is the next one, at most an hour before the first request.
    """
    if found := _TIME.fullmatch(text):
        day = datetime.fromtimestamp(first, UTC)
        hour, minute, second = (int(each or 0) for each in found.groups())
        if hour > 23 or minute > 59 or second > 59:
            raise ValueError(f"{text!r} is no moment: expected {_EXPECTED_MOMENT}")
        moment = day.replace(hour=hour, minute=minute, second=second, microsecond=0)
        return (moment + timedelta(days=moment < day - timedelta(hours=1))).timestamp()
    try:
        if "-" in text:
            moment = datetime.fromisoformat(text)
            return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
        return first + text_values.parse_seconds(text)
    except ValueError:
        raise ValueError(f"{text!r} is no moment: expected {_EXPECTED_MOMENT}") from None


#: The words that may follow the logs, each with its field of a :class:`ReplayOrder` and what reads its value.
_WORDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "from": ("begin", _check_moment),
    "to": ("end", _check_moment),
    "speed": ("speed", _read_speed),
    "copies": ("copies", _read_copies),
    "format": ("format", _read_format),
    "template": ("template", str),
}


def read_replay(order: ReplayOrder) -> Replay:
    """Read what is to be replayed; raises StatFileError and UsageError."""
    if any(has_stat_file_name(Path(each)) for each in order.logs):
        if len(order.logs) > 1:
            _find_logs(order.logs)  # a mistyped word is said first
            raise UsageError(f"{order.logs[0]}: give one stat file of a run alone, or logs")
        if order.format != ReplayOrder(()).format or order.template is not None:
            raise UsageError(f"{order.logs[0]}: a stat file has no format and no template of lines")
        requests = read_run_requests(Path(order.logs[0]))
        more: tuple[str, ...] = ()
    else:
        advise = partial(suggest_format, option="--replay '... format {}'")
        form = find_request_format(order.format, order.template)
        with ProgressBar("Lines read", None) as bar:
            requests = read_requests(_find_logs(order.logs), form, bar.advance, advise)
        more = form.replay_doubts
    for doubt in requests.list_doubts():
        _log.warning("--replay: %s", doubt)
    doubts = (*requests.list_doubts(shared=True), *more)  # stat files may go to others
    requests = _select_time(requests, order)
    title = Path(order.logs[0]).name + (f" and {len(order.logs) - 1} more" if len(order.logs) > 1 else "")
    return make_replay(requests, title, order.copies, doubts)


def _find_logs(names: tuple[str, ...]) -> list[LogFile]:
    try:
        return find_log_files(names)
    except UsageError:
        for name in names[1:]:
            if not Path(name).exists() and (meant := did_you_mean(name.partition("=")[0], _WORDS)):
                raise UsageError(f"--replay: {name}: no such log file{meant}") from None
        raise


def _select_time(requests: RequestColumns, order: ReplayOrder) -> RequestColumns:
    began = requests.began
    first = float(began[0])
    begin = find_moment(order.begin, first) if order.begin else first
    # A time of the day is the next one after the beginning; seconds are those since the first request.
    since = begin if _TIME.fullmatch(order.end) else first
    end = find_moment(order.end, since) if order.end else float("inf")
    if end <= begin:
        raise UsageError(f"--replay: to {order.end} is not after from {order.begin or 'the first request'}")
    found = requests.take(slice(*began.searchsorted([begin, end]).tolist()))
    if not len(found):
        ends = (datetime.fromtimestamp(each, UTC).isoformat(timespec="seconds") for each in began[[0, -1]])
        raise UsageError(f"--replay: no request of the log began then; it is from {' to '.join(ends)}")
    refuse_wrong_clock(found)
    return found


def make_replay(
    requests: RequestColumns, title: str, copies: int = 1, doubts: tuple[str, ...] = ()
) -> Replay:
    """Return the requests of a log as those of a run; raises UsageError where there are none to make."""
    reading = _ReplayReading()
    with ProgressBar("Requests looked at", len(requests)) as bar:
        for first in range(0, len(requests), _ROWS_AT_ONCE):
            part = requests.take(slice(first, first + _ROWS_AT_ONCE))
            reading.add(part)
            bar.advance(len(part))
    if not reading.made:
        raise UsageError(f"{title}: no request that can be replayed")
    reading.objects.forget_keys()
    objects, containers, accounts = reading.objects, reading.containers, reading.number_accounts()
    copied = np.concatenate([np.empty(0, np.uint32), *reading.copied])
    homes = np.concatenate([objects.states["home"], copied])
    prepared = np.concatenate([objects.states["prepared"], np.zeros(len(copied), np.bool_)])
    object_sizes = objects.estimate_sizes()
    initial_sizes = object_sizes[objects.states["prepared"]]
    written = objects.states["written"][objects.states["prepared"]]
    if not prepared.any():  # a size class has an initial object at least
        homes, prepared = np.append(homes, np.uint32(0)), np.append(prepared, True)
        initial_sizes, written = np.array([1]), np.array([False])
    made = _NumberedObjects(prepared, copies)
    writing = _ReplayWriting(reading, object_sizes, made, copies)
    with ProgressBar("Requests made ready", reading.made) as bar:
        for first in range(0, reading.made, _ROWS_AT_ONCE):
            writing.add(slice(first, first + _ROWS_AT_ONCE))
            bar.advance(min(_ROWS_AT_ONCE, reading.made - first))
    if large := objects.count_large():
        number = format_plural(large, "object")
        doubts += (f"larger than what stores take in one piece, 5 GiB, which they get: {number}",)
    source = ReplaySource(
        title=title,
        began=reading.began,
        seconds=reading.seconds,
        requests=reading.made,
        objects=len(objects),
        prepared=int(objects.states["prepared"].sum()),
        containers=max(len(containers), 1),
        accounts=len(np.unique(accounts)),
        copies=copies,
        left_out=len(requests) - reading.made,
        early_requests=objects.early_requests if objects.are_timed else None,
        operations=tuple(writing.measure_operations()),
        doubts=doubts,
    )
    return Replay(
        source=source,
        names=writing.names,
        **writing.columns.map(),
        containers=made.spread(homes, len(accounts)),
        accounts=np.tile(accounts, copies).astype(np.uint32),
        initial_sizes=np.concatenate([[0], np.tile(initial_sizes, copies)]),
        written=np.concatenate([[False], np.tile(written, copies)]),
    )


# -- Objects ---------------------------------------------------------------------------------------


#: Whether an object is there, by the last request that made or deleted it; 0: there was none.
_THERE, _GONE = 1, 2
#: What is known of an object.
_STATE = np.dtype(
    [
        ("home", "u4"),  # its container
        ("size", "i8"),  # bytes before it is written, below 0 where the log does not say
        ("later", "i8"),  # bytes of what is read of it then, at most; the same
        ("busy", "f8"),  # until when a write of it lasts, in seconds from the first request on
        ("told", "?"),  # whether a request has told if it was there first
        ("prepared", "?"),  # whether it has to be there first
        ("uploaded", "?"),  # whether a request has uploaded it
        ("sent", "?"),  # whether bytes came with one
        ("written", "?"),  # whether requests replace or delete it
        ("there", "u1"),
    ]
)
_NEW_STATE = np.array([(0, -1, -1, -np.inf, False, False, False, False, False, 0)], _STATE)


class _LoggedObjects:
    """The objects of a log, numbered from 0 in the order in which they came."""

    def __init__(self) -> None:
        self._keys, self._count = NumberedKeys(), 0
        self._states = np.empty(0, _STATE)
        self.early_requests = 0  # for objects, that began before a write of theirs had ended
        self.are_timed = False  # whether the log says how long any request took

    def __len__(self) -> int:
        return self._count

    def forget_keys(self) -> None:
        """Free the memory of what finds an object again, once all requests were noted."""
        self._keys = NumberedKeys()

    @property
    def states(self) -> npt.NDArray[Any]:
        """What is known of each."""
        return self._states[: len(self)]

    def add(
        self, requests: RequestColumns, rows: _Numbers, homes: _Numbers, began: _Moments
    ) -> tuple[_Numbers, _Numbers]:
        """Note some rows, which are requests for objects, with their containers and moments.

        Return their objects, and for each row whether its object was there (:data:`_THERE`, :data:`_GONE`).
        """
        before = len(self)
        ids = self._keys.number(requests.item[rows])
        self._count = len(self._keys)
        if len(self) > len(self._states):  # with some room, so that not each block copies all
            more = np.repeat(_NEW_STATE, max(len(self), before + before // 8) - len(self._states))
            self._states = np.concatenate([self._states, more])
        states = self._states
        states["home"][ids] = homes
        # Object by object from here on.
        order = np.argsort(ids, kind="stable")
        own, rows = ids[order], rows[order]
        begins = np.flatnonzero(np.diff(own, prepend=-1))
        starts = np.repeat(begins, np.diff(begins, append=len(own)))
        kinds, statuses = requests.kind[rows], requests.status[rows]
        is_put, is_delete = kinds == _KIND["put"], kinds == _KIND["delete"]
        # What no request tells of is taken to be there, unless the first one uploads it.
        new = begins[own[begins] >= before]
        states["prepared"][own[new]] = ~is_put[new]
        telling = np.flatnonzero((statuses < FIRST_FAILURE) | (statuses == HTTPStatus.NOT_FOUND))
        told, at = np.unique(own[telling], return_index=True)
        fresh = ~states["told"][told]
        told, at = told[fresh], telling[at[fresh]]
        states["told"][told] = True
        states["prepared"][told] = ~is_put[at] & (statuses[at] != HTTPStatus.NOT_FOUND)
        self._note_sizes(requests, rows, own, is_put, starts)
        states["written"][own[is_put | is_delete]] = True
        self._note_times(requests, rows, own, starts, began[order])
        was_there = np.empty(len(rows), np.int64)
        works = (statuses < FIRST_FAILURE) & (is_put | is_delete)
        last = _find_last(works, starts)
        was_there[order] = np.where(last < 0, states["there"][own], np.where(is_put[last], _THERE, _GONE))
        states["there"][own[works]] = np.where(is_put[works], _THERE, _GONE)  # the last one stays
        return ids, was_there

    def _note_sizes(
        self, requests: RequestColumns, rows: _Numbers, own: _Numbers, is_put: _Marks, starts: _Numbers
    ) -> None:
        states, sizes = self._states, requests.size[rows]
        uploads = is_put.cumsum()
        is_first = uploads == uploads[starts] - is_put[starts]  # of what no request of this block uploaded
        early = np.flatnonzero((sizes >= 0) & is_first & ~states["uploaded"][own])
        np.maximum.at(states["size"], own[early], sizes[early])
        ranges = requests.kind[rows] == _KIND["range"]
        np.maximum.at(states["size"], own[ranges], np.maximum(requests.moved[rows[ranges]], 1))
        later = np.flatnonzero((sizes >= 0) & ~is_put & ~(is_first & ~states["uploaded"][own]))
        np.maximum.at(states["later"], own[later], sizes[later])
        states["uploaded"][own[is_put]] = True
        states["sent"][own[is_put & (sizes > 0)]] = True

    def _note_times(
        self, requests: RequestColumns, rows: _Numbers, own: _Numbers, starts: _Numbers, began: _Moments
    ) -> None:
        seconds = requests.seconds[rows].astype(np.float64)
        self.are_timed |= not np.isnan(seconds).all()
        ends = began + np.nan_to_num(seconds)
        writes = np.isin(requests.kind[rows], [_KIND[kind] for kind in ("put", "delete", "copy")])
        # So that the ends of one object are all below those of the next.
        shift = starts * (float(ends.max(initial=0)) + 1)
        latest = np.maximum.accumulate(np.where(writes, ends + shift, -np.inf))
        latest = np.concatenate([[-np.inf], latest[:-1]])
        self.early_requests += int(((began + shift < latest) | (began < self._states["busy"][own])).sum())
        np.maximum.at(self._states["busy"], own[writes], ends[writes])

    def count_large(self) -> int:
        """Return how many are larger than what is made of them."""
        return int((np.maximum(self.states["later"], self.states["size"]) > _MOST_BYTES).sum())

    def estimate_sizes(self) -> _Numbers:
        """Return the size of each before it is written, for those that are not known that of others."""
        sizes = self.states["size"].copy()
        unknown = np.flatnonzero(sizes < 0)
        sizes[unknown] = self._find_medians(sizes)[self.states["home"][unknown]]
        made: _Numbers = np.minimum(sizes, _MOST_BYTES, out=sizes)
        return made

    def estimate_uploads(self, objects: _Numbers) -> _Numbers:
        """Return the size of what is uploaded as some, where the upload does not say it."""
        sizes = _choose_upload_sizes(self.states[objects])
        sizes = np.where(sizes < 0, self._upload_medians[self.states["home"][objects]], sizes)
        return np.minimum(sizes, _MOST_BYTES)

    @cached_property
    def _upload_medians(self) -> _Numbers:
        return self._find_medians(_choose_upload_sizes(self.states))

    def _find_medians(self, sizes: _Numbers) -> _Numbers:
        """Return the median size of each container, or of all, for those with a size below 0."""
        homes, are_known = self.states["home"], sizes >= 0
        medians = np.zeros(int(homes.max(initial=0)) + 1, np.int64)
        if are_known.all() or not are_known.any():
            return medians
        medians[:] = np.median(sizes[are_known])
        is_asked = np.zeros(len(medians), np.bool_)
        is_asked[homes[~are_known]] = True
        known = np.flatnonzero(are_known & is_asked[homes])
        order = known[np.lexsort((sizes[known], homes[known]))]
        begins = np.flatnonzero(np.diff(homes[order].astype(np.int64), prepend=-1))
        counts = np.diff(begins, append=len(order))
        middles = (sizes[order[begins + each // 2]] for each in (counts - 1, counts))
        medians[homes[order[begins]]] = sum(middles) // 2
        return medians


def _choose_upload_sizes(states: npt.NDArray[Any]) -> _Numbers:
    """Return what is known of sizes after uploads, else of those before."""
    return np.where(states["later"] >= 0, states["later"], states["size"])


def _find_last(marks: _Marks, starts: _Numbers) -> _Numbers:
    """Return the place of the last mark before each place, from its start on; below 0: there is none."""
    last = np.maximum.accumulate(np.where(marks, np.arange(len(marks)), -1))
    last = np.concatenate([[-1], last])[: len(marks)]
    return np.where(last >= starts, last, -1)


class _NumberedObjects:
    """The numbers of objects, of which there are so many copies: those that are prepared come first."""

    def __init__(self, prepared: _Marks, copies: int) -> None:
        self._copies = copies
        self._first, self._count = int(prepared.sum()), len(prepared)
        self._ranks = prepared.cumsum(dtype=np.uint32) - np.uint32(1)
        others = np.flatnonzero(~prepared)
        self._ranks[others] = np.arange(self._first, self._count)

    def number(self, objects: _Numbers, copy: _Numbers) -> _Numbers:
        """Return the numbers of objects, each of one of its copies."""
        ranks, first = self._ranks[objects].astype(np.int64), self._first
        others = first * (self._copies - 1) + ranks + copy * (self._count - first)
        found: _Numbers = 1 + np.where(ranks < first, ranks + copy * first, others)
        return found

    def spread(self, homes: npt.NDArray[np.uint32], containers: int) -> npt.NDArray[np.uint32]:
        """Return the container of each number, by those of the objects; each copy has its own."""
        found = np.zeros(self._copies * self._count + 1, np.uint32)
        for copy in range(self._copies):
            for rows in split_into_blocks(self._count):
                numbers = self.number(np.arange(rows.start, rows.stop), np.array(copy))
                found[numbers] = homes[rows] + copy * containers
        return found


# -- Requests --------------------------------------------------------------------------------------


class _ReplayReading:
    """What the requests of a log become, as far as the requests before tell.

    ``columns`` has those that can be made: of each when, which operation (or :data:`_FIRST_PUT`), on which
    object, container or account of the log, with how many bytes, and its status and seconds.
    """

    def __init__(self) -> None:
        self.objects = _LoggedObjects()
        self.containers = NumberedKeys()
        self.copied: list[npt.NDArray[np.uint32]] = []  # the containers of new objects that are copies
        self.columns = ColumnFiles(
            {"moment": "f8", "operation": "u1", "item": "u4", "size": "i8", "status": "u2", "seconds": "f4"}
        )
        self.made = 0
        self.began = self.seconds = 0.0  # the first request, and from then to the last one
        self._accounts: list[_Numbers] = []  # of new containers

    def add(self, requests: RequestColumns) -> None:
        """Note the next requests."""
        known = (requests.kind != _KIND["other"]) & ~np.isin(requests.status, _REFUSALS)
        known &= (requests.item != 0) | ~requests.is_of(*OBJECT_KINDS)
        requests = requests.take(np.flatnonzero(known))
        if not len(requests):
            return
        self.began = self.began if self.made else float(requests.began[0])
        self.made += len(requests)
        moments = requests.began - self.began
        self.seconds = float(moments[-1])
        has_object = requests.item != 0
        items = requests.account.astype(np.int64)
        used = np.flatnonzero(has_object | requests.is_of("list", "head_container"))
        count = len(self.containers)
        items[used] = self.containers.number(requests.container[used].astype(np.int64))
        _, first = np.unique(items[used], return_index=True)
        new = used[first[items[used[first]] >= count]]
        self._accounts.append(requests.account[new].astype(np.int64))
        rows = np.flatnonzero(has_object)
        homes = items[rows]
        items[rows], was_there = self.objects.add(requests, rows, homes, moments[rows])
        operations = _choose_operations(requests)
        puts = requests.kind[rows] == _KIND["put"]
        choices = np.array([_FIRST_PUT, _PLACE["update"], _PLACE["create"]])
        operations[rows[puts]] = choices[was_there[puts]]
        self.copied.append(homes[operations[rows] == _PLACE["copy"]].astype(np.uint32))
        self.columns.append(
            moment=moments,
            operation=operations,
            item=items,
            size=_find_sizes(requests),  # below 0: an upload does not say it
            status=requests.status,
            seconds=requests.seconds,
        )

    def number_accounts(self) -> _Numbers:
        """Return the account of each container, numbered from 0; one where there is no container."""
        own = self.list_accounts()
        return np.unique(own, return_inverse=True)[1].astype(np.int64) if len(own) else np.zeros(1, np.int64)

    def list_accounts(self) -> _Numbers:
        """Return the log's account of each container."""
        return np.concatenate([np.empty(0, np.int64), *self._accounts])


class _ReplayWriting:
    """The requests of a replay, now that all is known of their objects."""

    def __init__(
        self, reading: _ReplayReading, object_sizes: _Numbers, made: _NumberedObjects, copies: int
    ) -> None:
        self.columns = ColumnFiles(
            {"moments": "f8", "operations": "u1", "items": "u4", "sizes": "i8", "statuses": "u2"}
        )
        self._rows, self._made, self._copies = reading.columns.map(), made, copies
        self._objects, self._object_sizes = reading.objects, object_sizes
        self._next_copy = len(reading.objects)
        accounts = reading.list_accounts()
        self._known, self._some = np.unique(accounts, return_index=True)
        self._containers = max(len(accounts), 1)
        self._latencies = {name: _LatencyCounts() for name in _NAMES}
        used = {
            name
            for place in _find_used(self._rows["operation"])
            for name in (("create", "update") if place == _FIRST_PUT else (_NAMES[place],))
        }
        self.names = tuple(name for name in _NAMES if name in used)
        self._places = np.array([self.names.index(name) if name in used else 0 for name in _NAMES], np.uint8)

    def add(self, rows: slice) -> None:
        """Write some of the requests, each as often as there are copies."""
        moments, operations, items, sizes, statuses, seconds = (
            column[rows] for column in self._rows.values()
        )
        items, operations, sizes = items.astype(np.int64), operations.copy(), sizes.copy()
        states = self._objects.states
        first_puts = np.flatnonzero(operations == _FIRST_PUT)
        operations[first_puts] = np.where(
            states["prepared"][items[first_puts]], _PLACE["update"], _PLACE["create"]
        )
        self._count_latencies(operations, statuses, seconds)
        are_puts = np.isin(operations, [_PLACE["create"], _PLACE["update"]])
        unsaid, empty = np.flatnonzero(are_puts & (sizes < 0)), np.flatnonzero(are_puts & (sizes == 0))
        if len(unsaid):
            sizes[unsaid] = self._objects.estimate_uploads(items[unsaid])
        # Of no byte: a copy at S3, or what points to segments, if no other had any.
        own = states[items[empty]]
        sizes[empty] = np.where(own["sent"], 0, own["later"].clip(0))
        np.minimum(sizes, _MOST_BYTES, out=sizes)
        # Of what is read and does not change.
        reads = np.isin(operations, [_PLACE["read"], _PLACE["head"]]) & (statuses < HTTPStatus.NOT_MODIFIED)
        own = states[items[reads]]
        sizes[reads] = np.where(own["written"] | ~own["prepared"], 0, self._object_sizes[items[reads]])
        if len(self._known):
            lists = np.isin(operations, [_PLACE["list_account"], _PLACE["head_account"]])
            at = np.minimum(self._known.searchsorted(items[lists]), len(self._known) - 1)
            items[lists] = np.where(self._known[at] == items[lists], self._some[at], 0)
        else:
            items[:] = 0
        # Of a copy the job has the number of the new object, and that of its source in place of a size.
        is_copy = operations == _PLACE["copy"]
        sizes[is_copy] = items[is_copy]
        number = int(is_copy.sum())
        items[is_copy] = self._next_copy + np.arange(number)
        self._next_copy += number
        copies = self._copies
        each = np.tile(np.arange(copies), len(items))
        of_objects = np.repeat(np.isin(operations, _ON_OBJECTS), copies)
        copied = np.repeat(is_copy, copies)
        items, sizes = np.repeat(items, copies), np.repeat(sizes, copies)
        sizes[copied] = self._made.number(sizes[copied], each[copied])
        items += each * self._containers * ~of_objects
        items[of_objects] = self._made.number(items[of_objects], each[of_objects])
        self.columns.append(
            moments=np.repeat(moments, copies),
            operations=np.repeat(self._places[operations], copies),
            items=items,
            sizes=sizes,
            statuses=np.repeat(statuses, copies),
        )

    def _count_latencies(self, operations: _Numbers, statuses: _Numbers, seconds: _Moments) -> None:
        for place in np.unique(operations).tolist():
            own = operations == place
            works = (statuses[own] < FIRST_FAILURE) | _NAMES[place].endswith("_missing")
            self._latencies[_NAMES[place]].add(int(own.sum()), seconds[own][works])

    def measure_operations(self) -> Iterator[LoggedOperation]:
        """Yield how long each operation took in the log, of those that went as the replay is to go."""
        for name, counts in self._latencies.items():
            if counts.count:
                p50, p95, p99 = map(counts.find_percentile, (50, 95, 99))
                yield LoggedOperation(name, counts.count, p50, p95, p99, counts.maximum)


class _LatencyCounts:
    """Latencies as numbers of those that are alike, to a thousandth: with the first 18 bits of a float32."""

    _DROPPED_BITS = 13

    def __init__(self) -> None:
        self.count = 0  # also of those whose latency is not known
        self.maximum: float | None = None
        self._counts = np.zeros(0, np.int64)

    def add(self, count: int, seconds: npt.NDArray[np.float32]) -> None:
        """Count so many, of which some have a latency that is known, not NaN."""
        self.count += count
        seconds = seconds[~np.isnan(seconds)]
        if not len(seconds):
            return
        self.maximum = max(float(seconds.max()), self.maximum or 0.0)
        bits = np.bincount(np.abs(seconds).view(np.uint32) >> self._DROPPED_BITS)
        if len(bits) > len(self._counts):
            self._counts = np.pad(self._counts, (0, len(bits) - len(self._counts)))
        self._counts[: len(bits)] += bits

    def find_percentile(self, rank: int) -> float | None:
        """Return a percentile, at most a thousandth below; None where no latency is known."""
        if self.maximum is None:
            return None
        reached = self._counts.cumsum()
        place = int(reached.searchsorted(np.ceil(rank / 100 * reached[-1])))
        return float(np.array([place << self._DROPPED_BITS], np.uint32).view(np.float32)[0])


def _find_used(operations: npt.NDArray[np.uint8]) -> list[int]:
    """Return which operations there are."""
    return [place for place in range(_FIRST_PUT + 1) if (operations == place).any()]


def _choose_operations(requests: RequestColumns) -> npt.NDArray[np.uint8]:
    """Return the places of our operations in their table, but for uploads."""
    kinds, statuses = requests.kind, requests.status
    found = np.zeros(len(requests), np.uint8)
    for kind, code in _KIND.items():
        if kind in _PLACE:
            found[kinds == code] = _PLACE[kind]
    found[(statuses == HTTPStatus.NOT_MODIFIED) & requests.is_of("read", "range")] = _PLACE["conditional"]
    for kind, (name, *_) in _MISSING.items():
        found[(statuses == HTTPStatus.NOT_FOUND) & (kinds == _KIND[kind])] = _PLACE[name]
    return found


def _find_sizes(requests: RequestColumns) -> _Numbers:
    """Return the bytes of uploads and of parts; of others 0. Below 0: an upload does not say it."""
    moved = np.maximum(requests.moved, 0)
    found = np.zeros(len(requests), np.int64)
    puts, ranges = requests.is_of("put"), requests.is_of("range")
    is_known = (requests.size >= 0) | (requests.status < FIRST_FAILURE)
    found[puts] = np.where(is_known, requests.size, moved)[puts]
    # 0 is a part of no known length, which is as long as the longest.
    found[ranges] = np.where(requests.moved[ranges] == 0, 1, moved[ranges])
    return found


# -- The scenario ----------------------------------------------------------------------------------


def write_replay_text(replay: Replay, speed: float = 1.0) -> str:
    """Return the text of a scenario file that says what a replay is of, but for what is due when."""
    source = replay.source
    profile = {each.operation: each.count * source.copies for each in source.operations}
    makes = [place for place, name in enumerate(replay.names) if name in {"create", "update"}]
    largest = max(int(replay.initial_sizes.max()), 1)
    for first in range(0, len(replay), _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        written = replay.sizes[rows][np.isin(replay.operations[rows], makes)]
        largest = max(largest, int(written.max(initial=0)))
    digest = blake2b(replay.initial_sizes.tobytes() + replay.containers.tobytes(), digest_size=4).hexdigest()
    settings: list[dict[str, Any]] = []
    if "range" in profile:
        settings.append({"name": "range", "offset": 0, "length": largest})
    for name, method, path in dict.fromkeys(_MISSING.values()):
        if name in profile:
            effect = {"effect": "reads"} if "{object}" in path else {}
            settings.append(
                {
                    "name": name,
                    "method": method,
                    "path": path,
                    "success": [int(HTTPStatus.NOT_FOUND)],
                    **effect,
                }
            )
    rate = replay.rate * speed
    return yaml.safe_dump(
        {
            "name": f"replay of {source.title} {digest}",
            "sizes": [{"name": "object", "size_min": int("range" in profile), "size_max": largest}],
            "initial_files": {"object": len(replay.initial_sizes) - 1},
            "profile": profile,
            "container_count": count_replay_containers(replay, 1),
            "operation_count": len(replay),
            "user_count": _count_users(replay, rate),
            "rate": rate,
            **({"operations": settings} if settings else {}),
        },
        sort_keys=False,
        allow_unicode=True,
    )


def _count_users(replay: Replay, rate: float) -> int:
    """Return how many requests may be in flight at once: several times as many as in the log."""
    known = [each for each in replay.source.operations if each.p50 is not None]
    total = sum(each.count for each in known)
    seconds = sum(each.count * (each.p95 or 0.0) for each in known) / total if total else 0.0
    return int(min(max(_USERS_A_REQUEST * seconds * rate, _LEAST_USERS), _MAX_USERS))
