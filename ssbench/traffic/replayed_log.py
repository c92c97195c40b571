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
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from ssbench.base import text_values
from ssbench.base.errors import UsageError, did_you_mean
from ssbench.logs.log_files import LogFile, find_log_files
from ssbench.logs.logged_requests import OBJECT_KINDS, REQUEST_KINDS, RequestColumns, read_requests
from ssbench.logs.request_formats import REQUEST_FORMATS, find_request_format, suggest_format
from ssbench.scenario.replay_source import LoggedOperation, Replay, ReplaySource
from ssbench.scenario.replayed import count_replay_containers
from ssbench.traffic.run_requests import has_stat_file_name, read_run_requests

_log = logging.getLogger(__name__)

_Numbers = npt.NDArray[np.int64]
_Marks = npt.NDArray[np.bool_]

_FIRST_FAILURE, _NOT_FOUND, _NOT_MODIFIED = 400, 404, 304
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
    "head_container": ("list_missing", "GET", "{account}/{container}-missing"),
}
#: Our operations, in the order in which a replay has them.
_NAMES = (
    *("create", "update", "read", "range", "head", "delete", "post", "copy", "conditional"),
    *("list", "head_container", "list_account", "head_account"),
    *dict.fromkeys(name for name, *_ in _MISSING.values()),
)
_PLACE = {name: place for place, name in enumerate(_NAMES)}
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
        field, read = _WORDS[word]
        if field in values:
            raise ValueError(f"{word} is there twice")
        values[field] = read(words[place + 1])
    if not first:
        raise ValueError("the name of a log comes first, as in 'proxy.log from 10:00 to 11:00 speed 2'")
    return ReplayOrder(tuple(words[:first]), **values)


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
            raise UsageError(f"{order.logs[0]}: give one stat file of a run alone, or logs")
        if order.format != ReplayOrder(()).format or order.template is not None:
            raise UsageError(f"{order.logs[0]}: a stat file has no format and no template of lines")
        requests = read_run_requests(Path(order.logs[0]))
    else:
        advise = partial(suggest_format, option="--replay '... format {}'")
        form = find_request_format(order.format, order.template)
        requests = read_requests(_find_logs(order.logs), form, advise=advise)
    for doubt in requests.list_doubts():
        _log.warning("--replay: %s", doubt)
    doubts = tuple(requests.list_doubts(shared=True))  # stat files may go to others
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
    return found


def make_replay(
    requests: RequestColumns, title: str, copies: int = 1, doubts: tuple[str, ...] = ()
) -> Replay:
    """Return the requests of a log as those of a run; raises UsageError where there are none to make."""
    known = requests.kind != _KIND["other"]
    known &= (requests.item != 0) | ~requests.is_of(*OBJECT_KINDS)
    left_out = len(requests) - int(known.sum())
    requests = requests.take(np.flatnonzero(known))
    if not len(requests):
        raise UsageError(f"{title}: no request that can be replayed")
    objects = _find_objects(requests)
    operations = _choose_operations(requests, objects)
    containers, accounts = _number_containers(requests, objects)
    items, sizes = containers.copy(), _find_sizes(requests, objects, containers)
    items[objects.rows] = objects.ids
    # Of a copy the job has the number of the new object, and that of its source in place of a size.
    is_copy = operations == _PLACE["copy"]
    sizes[is_copy] = items[is_copy]
    items[is_copy] = objects.count + np.arange(int(is_copy.sum()))
    homes = np.concatenate([_find_homes(objects, containers), containers[is_copy]])
    prepared = np.concatenate([objects.prepared, np.zeros(int(is_copy.sum()), np.bool_)])
    initial_sizes, written = objects.sizes, objects.written
    if not prepared.any():  # a size class has an initial object at least
        homes, prepared = np.append(homes, 0), np.append(prepared, True)
        initial_sizes, written = np.array([1]), np.array([False])
    else:
        initial_sizes, written = initial_sizes[objects.prepared], written[objects.prepared]
    source = ReplaySource(
        title=title,
        began=float(requests.began[0]),
        seconds=float(requests.began[-1] - requests.began[0]),
        requests=len(requests),
        objects=objects.count,
        prepared=int(objects.prepared.sum()),
        containers=len(accounts),
        accounts=len(np.unique(accounts)),
        copies=copies,
        left_out=left_out,
        early_requests=_count_early_requests(requests, objects),
        operations=tuple(_measure_operations(requests, operations)),
        doubts=doubts,
    )
    made = _NumberedObjects(prepared, copies)
    each = np.tile(np.arange(copies), len(requests))
    of_objects, copied = np.repeat(requests.item != 0, copies), np.repeat(is_copy, copies)
    operations, items, sizes = (np.repeat(column, copies) for column in (operations, items, sizes))
    sizes[copied] = made.number(sizes[copied], each[copied])
    items += each * len(accounts) * ~of_objects
    items[of_objects] = made.number(items[of_objects], each[of_objects])
    used, places = np.unique(operations, return_inverse=True)
    return Replay(
        source=source,
        names=tuple(_NAMES[place] for place in used.tolist()),
        moments=np.repeat(requests.began - requests.began[0], copies),
        operations=places.astype(np.uint8),
        items=items.astype(np.uint32),
        sizes=sizes,
        statuses=np.repeat(requests.status, copies),
        containers=made.spread(homes, len(accounts)).astype(np.uint32),
        accounts=np.tile(accounts, copies).astype(np.uint32),
        initial_sizes=np.concatenate([[0], np.tile(initial_sizes, copies)]),
        written=np.concatenate([[False], np.tile(written, copies)]),
    )


# -- Objects ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _LoggedObjects:
    """The objects of a log, numbered from 0 in the order in which they came, and requests for them."""

    rows: _Numbers  # of the requests for objects
    ids: _Numbers  # of their objects
    count: int
    order: _Numbers  # places in these, object by object
    starts: _Numbers  # of each place in the order, where its object begins there
    prepared: _Marks  # of each object, whether it has to be there first
    written: _Marks  # whether requests replace or delete it
    sizes: _Numbers  # of each object before it is written, below 0 where the log does not say


def _find_objects(requests: RequestColumns) -> _LoggedObjects:
    rows = np.flatnonzero(requests.item)
    _, first, found = np.unique(requests.item[rows], return_index=True, return_inverse=True)
    ids = np.argsort(np.argsort(first, kind="stable"), kind="stable")[found]
    count = len(first)
    kinds, statuses, sizes = requests.kind[rows], requests.status[rows], requests.size[rows]
    order = np.argsort(ids, kind="stable")
    begins = np.flatnonzero(np.diff(ids[order], prepend=-1))
    starts = np.repeat(begins, np.diff(begins, append=len(order)))
    is_put = kinds == _KIND["put"]
    # What no request tells of is taken to be there, unless the first one uploads it.
    prepared = ~is_put[order[begins]]
    telling = np.flatnonzero((statuses < _FIRST_FAILURE) | (statuses == _NOT_FOUND))
    told, at = np.unique(ids[telling], return_index=True)
    at = telling[at]
    prepared[told] = ~is_put[at] & (statuses[at] != _NOT_FOUND)
    first_put = np.full(count, len(rows))
    np.minimum.at(first_put, ids[is_put], np.flatnonzero(is_put))
    early = np.flatnonzero((sizes >= 0) & ~is_put & (np.arange(len(rows)) < first_put[ids]))
    own_sizes = np.full(count, -1, np.int64)
    sized, at = np.unique(ids[early], return_index=True)
    own_sizes[sized] = sizes[early[at]]
    ranges = kinds == _KIND["range"]
    np.maximum.at(own_sizes, ids[ranges], np.maximum(requests.moved[rows][ranges], 1))
    written = np.zeros(count, np.bool_)
    written[ids[is_put | (kinds == _KIND["delete"])]] = True
    return _LoggedObjects(rows, ids, count, order, starts, prepared, written, own_sizes)


def _find_homes(objects: _LoggedObjects, containers: _Numbers) -> _Numbers:
    """Return the container of each object."""
    homes = np.zeros(objects.count, np.int64)
    homes[objects.ids] = containers[objects.rows]
    return homes


class _NumberedObjects:
    """The numbers of objects, of which there are so many copies: those that are prepared come first."""

    def __init__(self, prepared: _Marks, copies: int) -> None:
        self._copies = copies
        self._order = np.argsort(~prepared, kind="stable")
        self._ranks = np.argsort(self._order, kind="stable")
        self._first, self._count = int(prepared.sum()), len(prepared)

    def number(self, objects: _Numbers, copy: _Numbers) -> _Numbers:
        """Return the numbers of objects, each of one of its copies."""
        ranks, first = self._ranks[objects], self._first
        others = first * (self._copies - 1) + ranks + copy * (self._count - first)
        found: _Numbers = 1 + np.where(ranks < first, ranks + copy * first, others)
        return found

    def spread(self, homes: _Numbers, containers: int) -> _Numbers:
        """Return the container of each number, by those of the objects; each copy has its own."""
        found = np.zeros(self._copies * self._count + 1, np.int64)
        for copy in range(self._copies):
            found[self.number(np.arange(self._count), np.array(copy))] = homes + copy * containers
        return found


# -- Requests --------------------------------------------------------------------------------------


def _choose_operations(requests: RequestColumns, objects: _LoggedObjects) -> _Numbers:
    """Return the places of our operations in their table, of each request."""
    kinds, statuses = requests.kind, requests.status
    found = np.zeros(len(requests), np.int64)
    for kind, code in _KIND.items():
        if kind in _PLACE:
            found[kinds == code] = _PLACE[kind]
    found[(statuses == _NOT_MODIFIED) & requests.is_of("read", "range")] = _PLACE["conditional"]
    for kind, (name, *_) in _MISSING.items():
        found[(statuses == _NOT_FOUND) & (kinds == _KIND[kind])] = _PLACE[name]
    found[objects.rows[_find_updates(requests, objects)]] = _PLACE["update"]
    return found


def _find_updates(requests: RequestColumns, objects: _LoggedObjects) -> _Numbers:
    """Return which requests for objects are uploads of such that are there."""
    order = objects.order
    if not len(order):
        return order
    kinds, works = requests.kind[objects.rows][order], requests.status[objects.rows][order] < _FIRST_FAILURE
    is_put, places = kinds == _KIND["put"], np.arange(len(order))
    changes = works & (is_put | (kinds == _KIND["delete"]))
    last = np.maximum.accumulate(np.where(changes, places, -1))
    last = np.concatenate([[-1], last[:-1]])
    changed = last >= objects.starts
    exists = np.where(changed, is_put[np.maximum(last, 0)], objects.prepared[objects.ids[order]])
    found: _Numbers = order[is_put & exists]
    return found


def _number_containers(requests: RequestColumns, objects: _LoggedObjects) -> tuple[_Numbers, _Numbers]:
    """Return the container of each request, numbered anew, and the account of each container.

    A request for an account has some container of that, or the first one.
    """
    used = requests.is_of("list", "head_container")
    used[objects.rows] = True
    rows = np.flatnonzero(used)
    _, first, found = np.unique(requests.container[rows], return_index=True, return_inverse=True)
    numbers = np.zeros(len(requests), np.int64)
    numbers[rows] = np.argsort(np.argsort(first, kind="stable"), kind="stable")[found]
    if not len(rows):
        return numbers, np.zeros(1, np.int64)
    accounts = requests.account[rows[np.sort(first)]]
    known, some = np.unique(accounts, return_index=True)
    others = np.flatnonzero(~used)
    at = np.minimum(np.searchsorted(known, requests.account[others]), len(known) - 1)
    numbers[others] = np.where(known[at] == requests.account[others], some[at], 0)
    return numbers, np.unique(accounts, return_inverse=True)[1].astype(np.int64)


def _find_sizes(requests: RequestColumns, objects: _LoggedObjects, containers: _Numbers) -> _Numbers:
    """Return the bytes of the job of each request; sets the sizes of objects that the log does not say."""
    own = objects.sizes
    unknown = own < 0
    if unknown.any():
        homes = _find_homes(objects, containers)
        usual = int(np.median(own[~unknown])) if not unknown.all() else 0
        for home in np.unique(homes[unknown]).tolist():
            inside = own[(homes == home) & ~unknown]
            own[unknown & (homes == home)] = int(np.median(inside)) if len(inside) else usual
    moved = np.maximum(requests.moved, 0)
    found = np.zeros(len(requests), np.int64)
    rows, ids = objects.rows, objects.ids
    sized = requests.is_of("read", "head")[rows] & ~objects.written[ids] & objects.prepared[ids]
    found[rows[sized]] = own[ids[sized]]
    found[requests.status >= _NOT_MODIFIED] = 0
    puts, ranges = requests.is_of("put"), requests.is_of("range")
    found[puts] = np.where(requests.size[puts] >= 0, requests.size[puts], moved[puts])
    # 0 is a part of no known length, which is as long as the longest.
    found[ranges] = np.where(requests.moved[ranges] == 0, 1, moved[ranges])
    return found


def _count_early_requests(requests: RequestColumns, objects: _LoggedObjects) -> int | None:
    """Return how many requests for objects began before a write of theirs had ended; None: not known."""
    rows = objects.rows[objects.order]
    seconds = requests.seconds[rows].astype(np.float64)
    if not len(rows) or np.isnan(seconds).all():
        return None
    began = requests.began[rows] - requests.began[0]
    ends = began + np.nan_to_num(seconds)
    writes = np.isin(requests.kind[rows], [_KIND[kind] for kind in ("put", "delete", "copy")])
    # So that the ends of one object are all below those of the next.
    shift = np.cumsum(objects.starts == np.arange(len(rows))) * (float(ends.max()) + 1)
    latest = np.maximum.accumulate(np.where(writes, ends + shift, -np.inf))
    latest = np.concatenate([[-np.inf], latest[:-1]])
    return int((began + shift < latest).sum())


def _measure_operations(requests: RequestColumns, operations: _Numbers) -> list[LoggedOperation]:
    """Return how long each operation took in the log, of those that went as the replay is to go."""
    found = []
    for place, name in enumerate(_NAMES):
        own = np.flatnonzero(operations == place)
        if not len(own):
            continue
        works = (requests.status[own] < _FIRST_FAILURE) | name.endswith("_missing")
        seconds = requests.seconds[own[works]].astype(np.float64)
        seconds = seconds[~np.isnan(seconds)]
        ranks = [None] * 4
        if len(seconds):
            ranks = np.percentile(seconds, [50, 95, 99, 100], method="inverted_cdf").tolist()
        found.append(LoggedOperation(name, len(own), *ranks))
    return found


# -- The scenario ----------------------------------------------------------------------------------


def write_replay_text(replay: Replay, speed: float = 1.0) -> str:
    """Return the text of a scenario file that says what a replay is of, but for what is due when."""
    counts = np.bincount(replay.operations, minlength=len(replay.names)).tolist()
    profile = {name: count for name, count in zip(replay.names, counts, strict=True) if count}
    makes = [place for place, name in enumerate(replay.names) if name in {"create", "update"}]
    written = replay.sizes[np.isin(replay.operations, makes)]
    largest = max(int(written.max()) if len(written) else 0, int(replay.initial_sizes.max()), 1)
    digest = blake2b(replay.initial_sizes.tobytes() + replay.containers.tobytes(), digest_size=4).hexdigest()
    settings: list[dict[str, Any]] = []
    if "range" in profile:
        settings.append({"name": "range", "offset": 0, "length": largest})
    for name, method, path in dict.fromkeys(_MISSING.values()):
        if name in profile:
            effect = {"effect": "reads"} if "{object}" in path else {}
            settings.append({"name": name, "method": method, "path": path, "success": [_NOT_FOUND], **effect})
    rate = replay.rate * speed
    return yaml.safe_dump(
        {
            "name": f"replay of {replay.source.title} {digest}",
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
