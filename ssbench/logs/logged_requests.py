"""The requests of clients in logs, as columns.

No name leaves this module: accounts and containers become numbers in the order in which they came, objects
hashes with a key that is made anew for each reading, so that nobody can find a name by guessing it.

A line may be none of a request of a client (an error, a request that middleware made): it is left out and
counted, with the first as an example. One that should be a request and cannot be read is counted apart, and
the first is kept as well. Where these are more than 1 of 100, and than one a file, the log is of another
format than was said: an error.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ssbench.base.errors import UsageError
from ssbench.base.printable import make_printable
from ssbench.document.columns import format_plural
from ssbench.logs.column_files import ColumnFiles, NamelessFile
from ssbench.logs.log_files import LogFile, LogFileReader
from ssbench.logs.request_formats import LoggedRequest, RequestFormat
from ssbench.logs.rewriting import RewriterFinder

#: What a request does. ``put`` writes an object, new or not; ``other`` is what no operation of ours does.
REQUEST_KINDS = (
    "put",
    "read",
    "range",
    "head",
    "delete",
    "post",
    "copy",
    "list",
    "head_container",
    "list_account",
    "head_account",
    "other",
)
_CODES = {kind: code for code, kind in enumerate(REQUEST_KINDS)}
#: Kinds of requests that are about one object.
OBJECT_KINDS = REQUEST_KINDS[:7]
#: Those that are about one container, or an object in it.
KINDS_IN_CONTAINERS = REQUEST_KINDS[:9]
#: Those that read it.
READING_KINDS = ("read", "range", "head")

#: More lines than this share that cannot be read are an error.
MAX_UNREADABLE_SHARE = 0.01
#: More lines left out for each that was read are a doubt: the log of a node with all servers of a store has
#: up to ten.
_MANY_LEFT_OUT = 20
#: The most days of a log: it is looked at by the second.
MAX_DAYS = 800
#: Statuses from this one on are failures.
FIRST_FAILURE = 400
#: So much of a line that cannot be read is shown.
_EXAMPLE_BYTES = 200
#: What opens a door: tokens, and what signs an address (S3, TempURL), as it is or encoded.
_SECRET = re.compile(rb"(AUTH_i?tk|(?i:signature|security-token|temp_url_sig)(?:=|(?:%25|%)3D))[^&\s\"]+")
#: Requests that become rows together, and so many times as many that are sorted together.
_ROWS_AT_ONCE, _PIECES_A_RUN = 4096, 64
#: The seed by which moments of whole seconds are spread within their seconds.
_SPREAD_SEED = 7


@dataclass(frozen=True, slots=True)
class RequestColumns:
    """Requests in the order in which they began, one in each row; those of logs are in files."""

    began: npt.NDArray[np.float64]  # seconds since 1970
    seconds: npt.NDArray[np.float32]  # how long each took; NaN: not known
    kind: npt.NDArray[np.uint8]  # places in REQUEST_KINDS
    status: npt.NDArray[np.uint16]
    size: npt.NDArray[np.int64]  # bytes of the object; UNKNOWN_SIZE of request_formats
    moved: npt.NDArray[np.int64]  # bytes of bodies
    account: npt.NDArray[np.uint32]  # numbers of accounts
    container: npt.NDArray[np.uint32]  # numbers of containers, of all accounts together
    item: npt.NDArray[np.int64]  # keyed hashes of objects; 0: the request is about none
    #: Of one that reads an object: whether its name is behind that of the one read before in its container.
    rises: npt.NDArray[np.bool_]
    sources: int = 0  # how many clients there are
    left_out: int = 0  # lines that are no requests of clients
    left_out_example: str = ""  # the first of these
    unreadable: int = 0  # lines that should be requests and cannot be read
    example: str = ""  # the first of these
    whole_seconds: int = 0  # moments that are known to a second, and were spread within it
    damage: tuple[str, ...] = ()  # what is wrong with files
    doubts: tuple[str, ...] = ()  # what lines of the format do not say

    def __len__(self) -> int:
        return len(self.began)

    @property
    def are_few(self) -> bool:
        """Whether so many lines were left out that these may be requests in another layout."""
        return self.left_out > _MANY_LEFT_OUT * len(self)

    def describe_left_out(self, *, shared: bool = False) -> str:
        """Return in words how many lines were left out, with one of them unless it is shared."""
        example = "" if shared or not self.left_out_example else f", such as: {self.left_out_example}"
        return f"{format_plural(self.left_out, 'line')} left out as no requests of clients{example}"

    def list_doubts(self, *, shared: bool = False) -> Iterator[str]:
        """Yield what to know of how they were read; without lines and names of files where it is shared."""
        if self.whole_seconds:
            moments = format_plural(self.whole_seconds, "moment")
            yield (
                f"known to a second only, and spread within it: {moments}; nothing is known of arrivals"
                " within a second"
            )
        if self.unreadable:
            example = "" if shared or not self.example else f", such as: {self.example}"
            yield f"{format_plural(self.unreadable, 'line')} cannot be read{example}"
        if self.are_few:
            yield (
                f"far more lines were left out than read ({format_plural(len(self), 'request')}); if they are"
                f" requests, another format or --log-format is needed:"
                f" {self.describe_left_out(shared=shared)}"
            )
        yield from self.doubts
        if not shared:
            yield from self.damage
        elif self.damage:
            yield f"damaged files: {len(self.damage)}"

    def take(self, rows: npt.NDArray[np.int64] | slice) -> RequestColumns:
        """Return some of the rows."""
        return RequestColumns(**{name: getattr(self, name)[rows] for name in _COLUMN_KINDS})

    def is_of(self, *kinds: str) -> npt.NDArray[np.bool_]:
        """Return which rows are of some kinds."""
        return np.isin(self.kind, [_CODES[kind] for kind in kinds])


#: The columns, in the order of their fields in a row of a :class:`_Collector`.
_COLUMN_KINDS = {
    "began": "f8",
    "seconds": "f4",
    "kind": "u1",
    "status": "u2",
    "size": "i8",
    "moved": "i8",
    "account": "u4",
    "container": "u4",
    "item": "i8",
    "rises": "?",
}
_ROW = np.dtype([*_COLUMN_KINDS.items(), ("whole", "?")])


class _Collector:
    """Takes requests as they come, and puts them in the order in which they began.

    In memory are as many as are sorted together; all others are in files.
    """

    def __init__(self) -> None:
        self._rows: list[tuple[float, ...]] = []
        self._pieces: list[npt.NDArray[Any]] = []  # of the next run
        self._runs = [0]  # where sorted runs of rows begin in the file, and where the next one will
        self._file = NamelessFile()
        self._accounts: dict[bytes, int] = {}
        self._containers: dict[tuple[bytes, bytes], int] = {}
        self._latest: list[bytes] = []  # the name that was read last, of each container
        self._sources: set[int] = set()
        self._key = secrets.token_bytes(16)
        self._random = np.random.default_rng(_SPREAD_SEED)
        self._whole_seconds = 0

    def add(self, request: LoggedRequest) -> None:
        began, seconds, kind, status, size, moved, account, container, name, source, whole = request
        place = account, container
        number = self._containers.get(place)
        if number is None:
            number = self._containers[place] = len(self._containers)
            self._latest.append(b"")
        item, rises = 0, False
        if name:
            # The hash of Python is keyed as well (SipHash), and a prefix that nobody knows comes before.
            item = hash((self._key, number, name)) or 1
            if kind in READING_KINDS and status < FIRST_FAILURE:
                rises = name > self._latest[number]
                self._latest[number] = name
        if source:
            self._sources.add(hash(source))
        self._rows.append(
            (
                began,
                seconds,
                _CODES[kind],
                status,
                size,
                moved,
                self._accounts.setdefault(account, len(self._accounts)),
                number,
                item,
                rises,
                whole,
            )
        )
        if len(self._rows) >= _ROWS_AT_ONCE:
            self._settle()

    def _settle(self) -> None:
        self._pieces.append(np.array(self._rows, _ROW))
        self._rows.clear()
        if len(self._pieces) >= _PIECES_A_RUN:
            self._end_run()

    def _end_run(self) -> None:
        """Write the rows that came last, sorted."""
        rows = np.concatenate([np.empty(0, _ROW), *self._pieces])
        self._pieces.clear()
        whole = rows["whole"]
        rows["began"][whole] = np.floor(rows["began"][whole])
        self._whole_seconds += int(whole.sum())
        self._file.append(rows[np.argsort(rows["began"], kind="stable")])
        self._runs.append(self._runs[-1] + len(rows))

    def columns(self, **counts: Any) -> RequestColumns:
        """Return all in the order in which they began."""
        self._settle()
        self._end_run()
        self._file.flush()
        columns = ColumnFiles(_COLUMN_KINDS)
        for rows in self._spread(self._merge()) if self._whole_seconds else self._merge():
            columns.append(**{name: rows[name] for name in _COLUMN_KINDS})
        made: dict[str, Any] = {**columns.map(), **counts}
        return RequestColumns(**made, sources=len(self._sources), whole_seconds=self._whole_seconds)

    def _spread(self, blocks: Iterable[npt.NDArray[Any]]) -> Iterator[npt.NDArray[Any]]:
        """Spread moments of whole seconds within these; ``blocks`` are in order.

        Those of a second stay in the order of the log: an object is not read before its upload. So in memory
        are all that began in one second.
        """
        held: list[npt.NDArray[Any]] = []  # of the second that may go on
        for rows in blocks:
            latest = np.floor(rows["began"][-1])
            ended = int(rows["began"].searchsorted(latest))
            if ended or (held and held[0]["began"][0] < latest):
                yield self._spread_seconds(np.concatenate([*held, rows[:ended]]))
                held = []
            held.append(rows[ended:])
        if held:
            yield self._spread_seconds(np.concatenate(held))

    def _spread_seconds(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        whole = np.flatnonzero(rows["whole"])
        seconds, parts = rows["began"][whole], self._random.random(len(whole))
        rows["began"][whole] = (seconds + parts)[np.lexsort((parts, seconds))]
        return rows[np.argsort(rows["began"], kind="stable")]

    def _merge(self) -> Iterator[npt.NDArray[Any]]:
        """Yield the rows of all runs in their order, some at a time."""
        at, ends = self._runs[:-1], self._runs[1:]
        blocks = [np.empty(0, _ROW)] * len(at)
        while True:
            for run, end in enumerate(ends):
                if not len(blocks[run]) and at[run] < end:
                    blocks[run] = self._file.read(_ROW, at[run], min(_ROWS_AT_ONCE, end - at[run]))
                    at[run] += len(blocks[run])
            left = [run for run, block in enumerate(blocks) if len(block)]
            if not left:
                return
            # No row that is not in memory began before the first of these.
            first = min(left, key=lambda run: blocks[run]["began"][-1])
            until = blocks[first]["began"][-1]
            parts = []
            for run in left:
                # It may have more that began at the same moment, which come before those of later runs.
                count = int(blocks[run]["began"].searchsorted(until, "right" if run <= first else "left"))
                parts.append(blocks[run][:count])
                blocks[run] = blocks[run][count:]
            rows = np.concatenate(parts)
            yield rows[np.argsort(rows["began"], kind="stable")]


def read_requests(
    files: Sequence[LogFile],
    form: RequestFormat,
    progress: Callable[[int], None] = lambda _: None,
    advise: Callable[[bytes], str] = lambda _: "",
) -> RequestColumns:
    """Read the requests of logs; ``progress`` is told how many more lines were read.

    ``advise`` is asked for a word about a line that cannot be read. Raises StatFileError for a file that
    cannot be read, and UsageError for logs without requests of this format.
    """
    collector, read = _Collector(), form.read
    lines = left_out = unreadable = 0
    example, first, damage = b"", b"", []
    for chunk, line_damage in _chunks(files, form.find_rewriter):
        damage += line_damage
        own = chunk.splitlines()
        for line in own:
            try:
                request = read(line)
                if request is None:
                    left_out += 1
                    first = first or line
                else:
                    collector.add(request)
            except (ValueError, OverflowError):
                unreadable += 1
                example = example or line
        lines += len(own)
        progress(len(own))
    found = lines - left_out - unreadable
    # The last line of each file may be cut, because the file is or because it is being written.
    if unreadable > max(MAX_UNREADABLE_SHARE * (found + unreadable), len(files)) or not found:
        what = (
            f"{unreadable:,} of {found + unreadable:,} lines cannot be read"
            if unreadable
            else ("no line is a request of a client" if lines else "there are no lines")
        )
        shown = show_line(example or first)
        example_word = "such as" if example else "the first one"
        where = f"{files[0].path}{f' and {len(files) - 1} more' if len(files) > 1 else ''}" if files else ""
        text = f"{where}: expected {form.title}, but {what}{f', {example_word}: {shown}' if shown else ''}"
        advice = advise(example or first)
        raise UsageError(f"{text} ({advice})" if advice else text)
    return _leave_out_wrong_clock(
        collector.columns(
            left_out=left_out,
            left_out_example=show_line(first),
            unreadable=unreadable,
            example=show_line(example),
            damage=tuple(damage),
            doubts=form.doubts,
        )
    )


def _leave_out_wrong_clock(requests: RequestColumns) -> RequestColumns:
    """Leave out the few that began years before or after all others."""
    began, most = requests.began, MAX_DAYS * 86_400
    if began[-1] - began[0] <= most:
        return requests
    usual = float(began[len(began) // 2])
    first, end = began.searchsorted([usual - most, usual + most]).tolist()
    wrong = len(began) - int(end - first)
    if not 0 < wrong <= MAX_UNREADABLE_SHARE * len(began):
        return requests
    date = time.strftime("%Y-%m-%d", time.gmtime(float(began[0 if first else -1])))
    doubt = f"{format_plural(wrong, 'request')} left out because of a wrong clock, such as one of {date}"
    return replace(
        requests,
        **{name: getattr(requests, name)[first:end] for name in _COLUMN_KINDS},
        doubts=(*requests.doubts, doubt),
    )


def _chunks(files: Iterable[LogFile], find: RewriterFinder) -> Iterator[tuple[bytes, list[str]]]:
    for file in files:
        reader = LogFileReader(file, find)
        for chunk in reader.chunks():
            yield chunk, []
        if reader.damage:
            yield b"", [f"{file.path}: {reader.damage}"]


def show_line(line: bytes) -> str:
    """Return the beginning of a line as it may be shown, without tokens and signatures."""
    text = make_printable(_SECRET.sub(rb"\1...", line[:_EXAMPLE_BYTES]).decode("utf-8", "replace"))
    return f"{text}..." if len(line) > _EXAMPLE_BYTES else text
