"""Values of a scenario that are records: bodies, metadata, connections, popularity, reuse.

They say what uploads have (random bytes, zeros, both or the bytes of files; metadata), on which connections
requests are sent, and which object an operation is for.

Files of a folder may be uploaded (:class:`BodyFiles`). The master reads them with the scenario. Each worker
reads the folder at the same path, and refuses to work where that has other files. A scenario may come from
somebody else, and so may what a worker is told to do: both read only folders that :func:`refuse_outside` lets
pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta, Struct

from ssbench.base import text_values
from ssbench.base.errors import UsageError
from ssbench.base.text_values import format_bytes
from ssbench.document import units
from ssbench.document.columns import format_plural
from ssbench.scenario.value_rules import Rule, is_number, shorten_value

#: All files are held in memory, in each process of a worker.
MAX_BODY_FILES_BYTES = 100_000_000
MAX_BODY_FILES = 10_000


class BodyFiles(Struct, frozen=True):
    """The files of a folder. Before they have been read only ``folder`` is set, as the scenario has it."""

    folder: str
    count: int = 0  # files
    size: int = 0  # bytes in all
    digest: str = ""  # of their names and their bytes
    others: int = 0  # other entries of the folder, which are not used

    def __str__(self) -> str:
        """Return it in words."""
        files = f"{self.count:,} file{'s' * (self.count != 1)} of {self.folder}"
        return f"{files} ({format_bytes(self.size)}, digest {self.digest[:8]})"


class BodyContent(NamedTuple):
    """The bytes of all files, one after the other by their names, and where each begins."""

    data: bytes
    starts: tuple[int, ...]


def refuse_outside(folder: Path, within: Iterable[Path]) -> None:
    """Raise ValueError where a folder, or a link in it, leads to what is below none of some folders.

    What is hidden there, such as ``.ssh``, is not part of them; ``/`` has all files, hidden ones too.
    """
    allowed = [each.resolve() for each in within]
    paths = [folder]
    with suppress(OSError):  # which is reported where the folder is read
        paths += [each for each in folder.iterdir() if each.is_symlink() and _is_used(each)]
    for path in paths:
        try:
            real = path.resolve()
        except RuntimeError:  # of links that lead to each other
            raise ValueError(f"{path}: a link that leads to itself") from None
        if not any(_is_below(real, each) for each in allowed):
            which = f"{path}, a link to {real}," if path.is_symlink() else f"{real}"
            where = " or ".join(map(str, allowed))
            raise ValueError(
                f"{which} is {f'not in {where}' if where else 'not allowed here'}, or hidden;"
                " --allow DIR allows a folder"
            )


def _is_below(path: Path, folder: Path) -> bool:
    if folder == Path("/"):  # all files, as for the workers of a master on this host, which has judged them
        return True
    return path.is_relative_to(folder) and not any(
        part.startswith(".") for part in path.relative_to(folder).parts
    )


def find_body_files(folder: Path) -> BodyFiles:
    """Read the files of a folder; raises ValueError where they cannot be bodies.

    Hidden ones, empty ones and sub-folders are not used.
    """
    return _read_files(folder)[0]


@lru_cache(maxsize=1)  # groups of users have the same ones
def load_body_files(files: BodyFiles) -> BodyContent:
    """Return the content of files that the master has read; raises UsageError where they are others here."""
    try:
        found, content = _read_files(Path(files.folder))
    except ValueError as error:
        raise UsageError(f"body: {error}; the folder has to be on the hosts of all workers") from None
    if found.digest != files.digest:
        raise UsageError(
            f"body: other files than the master has: here {found}, there {files}; copy the folder to this"
            " host"
        )
    return content


def _read_files(folder: Path) -> tuple[BodyFiles, BodyContent]:
    try:
        entries = sorted(folder.iterdir(), key=lambda each: each.name)
        used = [each for each in entries if _is_used(each)]
        size = sum(each.stat().st_size for each in used)
        if not used:
            raise ValueError(f"{folder}: expected a file that is not empty")
        if len(used) > MAX_BODY_FILES or size > MAX_BODY_FILES_BYTES:
            raise ValueError(
                f"{folder}: expected at most {MAX_BODY_FILES:,} files of "
                f"{format_bytes(MAX_BODY_FILES_BYTES)} in all, not {len(used):,} of {format_bytes(size)}"
            )
        parts = [*_read_contents(used)]
        str(folder).encode()  # which is how it gets to workers
    except UnicodeEncodeError:
        raise ValueError(f"{str(folder)!a}: expected a path in UTF-8") from None
    except OSError as error:
        raise ValueError(f"{error.filename or folder} cannot be read: {error.strerror}") from None
    sizes = [*map(len, parts)]
    digest = blake2b(b"".join(_make_headers(used, sizes)), digest_size=16)
    for part in parts:
        digest.update(part)
    found = BodyFiles(str(folder), len(used), sum(sizes), digest.hexdigest(), len(entries) - len(used))
    return found, BodyContent(b"".join(parts), tuple(accumulate(sizes, initial=0))[:-1])


def _read_contents(paths: list[Path]) -> Iterator[bytes]:
    """Yield the bytes of files; raises ValueError for those that are not of the size that they had."""
    for path in paths:
        size = path.stat().st_size
        with path.open("rb") as file:
            content = file.read(size + 1)
        if len(content) != size or size > MAX_BODY_FILES_BYTES:
            raise ValueError(f"{path}: is no plain file, or changes while it is read")
        yield content


def _is_used(path: Path) -> bool:
    return not path.name.startswith(".") and path.is_file() and path.stat().st_size > 0


def _make_headers(paths: list[Path], sizes: list[int]) -> Iterator[bytes]:
    for path, size in zip(paths, sizes, strict=True):
        name = path.name.encode("utf-8", "surrogateescape")
        yield b"%d %d %b" % (len(name), size, name)


# -- Bodies and metadata ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Body:
    """Bodies of which a share is ``zeros``, evenly spread; the rest is random. 1: all of it.

    Where there are ``files``, they are of the bytes of these.
    """

    zeros: Annotated[float, Meta(ge=0, le=1)]
    files: BodyFiles | None = None

    @property
    def identity(self) -> str:
        """What distinguishes objects with such bodies from others; empty for random ones."""
        if self.files is not None:
            return f"files {self.files.digest}"
        return f"Body(zeros={self.zeros!r})" if self.zeros else ""

    @property
    def in_full(self) -> str:
        """What bodies are, in a few more words."""
        if self.files is not None:
            others = (
                f"; other entries of the folder, not used: {self.files.others}" if self.files.others else ""
            )
            return f"the bytes of {self.files}{others}"
        if self.zeros in {0, 1}:
            return "zeros" if self.zeros else "random bytes"
        return f"random bytes and zeros, of which a compressor saves about {units.format_share(self.zeros)}"

    def __str__(self) -> str:
        if self.files is not None:
            return str(self.files)
        if self.zeros in {0, 1}:
            return "zero" if self.zeros else "random"
        return f"compressible: {self.zeros:g}"


def _parse_body(value: object) -> object:
    """Return what a scenario says of bodies; a value that says nothing unchanged."""
    match value:
        case "random" | "zero":
            return Body(float(value == "zero"))
        case {"compressible": int() | float() as share, **rest} if not rest and type(share) is not bool:
            return Body(float(share)) if 0 < share < 1 else value
        case {"files": str() as folder, **rest} if not rest and folder and "\0" not in folder:
            return Body(0.0, BodyFiles(folder))
    return value


def read_files_of_body(body: Body, folder: Path, allowed: Sequence[Path] = ()) -> Body:
    """Return bodies whose files, if any, have been read; their path is relative to a folder.

    They have to be in that folder, or in one that is ``allowed``. Raises ValueError.
    """
    if body.files is None:
        return body
    files = folder / body.files.folder
    refuse_outside(files, (folder, *allowed))
    return Body(0.0, find_body_files(files.resolve()))


BODY_RULE = Rule(
    lambda value: isinstance(value, Body),
    "random, zero, {compressible: 0.6}, a share above 0 and below 1, which a compressor saves, or"
    " {files: FOLDER}, whose files are uploaded",
    convert=_parse_body,
)


#: Swift takes 90 items of 256 bytes unless a cluster says otherwise, which is asked before a run.
_MAX_ITEMS, _MAX_BYTES = 1000, 10_000


class Metadata(Struct, frozen=True):
    """``number`` items of metadata of each object, ``size`` bytes of value each."""

    number: Annotated[int, Meta(ge=0, le=2**32 - 1)]
    size: Annotated[int, Meta(ge=0, le=2**32 - 1)]

    def __str__(self) -> str:
        """Return it in words."""
        return f"{format_plural(self.number, 'item')} of {format_plural(self.size, 'byte')}"


def _parse_metadata(value: object) -> object:
    """Return what a value means; any wrong value unchanged."""
    match value:
        case {"number": int() as number, "size": int() | str() as given, **others} if not others:
            size = int(text_values.parse_size(given)) if isinstance(given, str) else given
            if type(number) is not bool and type(given) is not bool:
                return Metadata(number, size)
    return value


METADATA_RULE = Rule(
    lambda value: (
        isinstance(value, Metadata) and 1 <= value.number <= _MAX_ITEMS and 1 <= value.size <= _MAX_BYTES
    ),
    f"a mapping with number, a whole number of items from 1 to {_MAX_ITEMS}, and size, the bytes of each"
    f" value from 1 to {_MAX_BYTES}",
    convert=_parse_metadata,
)


# -- Connections -----------------------------------------------------------------------------------


class ConnectionSettings(Struct, frozen=True):
    """A share of operations, ``new``, has a new connection for each request; the others use kept ones.

    With ``tls_resume`` a new connection continues the TLS session of an earlier one, where the server allows
    it.
    """

    new: Annotated[float, Meta(ge=0, le=1)] = 0.0
    tls_resume: bool = False

    def __str__(self) -> str:
        """Return it in words."""
        words = f"new for {100 * self.new:g}% of operations" if self.new else "kept"
        return f"{words}, TLS sessions resumed" if self.tls_resume else words


def _parse_connections(value: object) -> object:
    """Return what a value means; any wrong value unchanged."""
    match value:
        case "kept" | "new":
            return ConnectionSettings(float(value == "new"))
        case dict() if value and value.keys() <= {"new", "tls_resume"}:
            new, resume = value.get("new", 0), value.get("tls_resume", False)
            if is_number(new) and new <= 1 and type(resume) is bool:
                return ConnectionSettings(float(new), resume)
    return value


CONNECTIONS_RULE = Rule(
    lambda value: isinstance(value, ConnectionSettings),
    "kept, new, or a mapping with new, the share of operations from 0 to 1 that have new connections,"
    " tls_resume, which is true or false, or both",
    convert=_parse_connections,
)


# -- Which object an operation is for --------------------------------------------------------------


PopularityKind = Literal["rotate", "uniform", "sequential", "zipf", "latest", "hotspot", "counts"]

#: Kinds that have no parameters; "latest" may have one.
_PLAIN_KINDS = ("rotate", "uniform", "sequential", "latest")

#: The exponent of "latest" where none is given; that of YCSB (Cooper et al. 2010).
_DEFAULT_EXPONENT = 0.99

#: Requests that are remembered for each size class at most, in 4 bytes each.
_MAX_REUSE_DISTANCE = 1_000_000


class Popularity(Struct, frozen=True):
    """How an object is chosen."""

    kind: PopularityKind = "rotate"  # ``latest`` ranks the newest object first, and is then as Zipf's law
    #: Of Zipf's law: the object of rank n is asked for n ** -exponent times as often as the first.
    exponent: float = 0.0
    objects: float = 0.0  # of a hotspot: a part of the objects, from 0 to 1
    requests: float = 0.0  # of a hotspot: the part of the requests that these have, from 0 to 1
    #: Of counts: (how often each is asked for, how many objects relative to others), the rarest first.
    bands: tuple[tuple[float, float], ...] = ()

    def __str__(self) -> str:
        """Return it in words."""
        if self.kind == "hotspot":
            return f"hotspot, {100 * self.requests:g}% of requests for {100 * self.objects:g}% of objects"
        if self.kind == "counts":
            low, high = self.bands[0][0], self.bands[-1][0]
            return f"counts, {len(self.bands)} from {low:g} to {high:g} requests an object"
        return f"{self.kind} {self.exponent:g}" if self.exponent else self.kind


class Reuse(Struct, frozen=True):
    """A share of reads is for what was read not long ago; or ``classes`` say when objects are used again."""

    share: float
    nearest: int  # reads ago, at least
    farthest: int  # reads ago, at most
    #: (the least count of an object, weights of its reuse distances): the class of the highest such count
    #: holds. The n-th distance from 0 is 2**-n to 2**-(n + 1) of a cycle, in which each object has its count.
    classes: tuple[tuple[float, tuple[float, ...]], ...] = ()
    created: float = 0.0  # the share of the objects of a cycle that do not exist at its beginning
    deleted: float = 0.0  # the share of those that exist at its beginning, are used, and are gone at its end

    def __str__(self) -> str:
        """Return it in words."""
        if self.classes:
            return f"by distances, of {format_plural(len(self.classes), 'kind')} of objects"
        far = "" if self.nearest == self.farthest else f" to {self.farthest:,}"
        return f"{100 * self.share:g}% of what was read {self.nearest:,}{far} reads ago"


def _parse_popularity(value: object) -> object:
    """Return what a value means; any wrong value unchanged."""
    match value:
        case str() if value in _PLAIN_KINDS:
            return Popularity(value, _DEFAULT_EXPONENT if value == "latest" else 0.0)  # type: ignore[arg-type]
        case {"zipf": exponent, **others} if not others and _is_exponent(exponent):
            return Popularity("zipf", float(exponent))
        case {"latest": exponent, **others} if not others and _is_exponent(exponent):
            return Popularity("latest", float(exponent))
        case {"hotspot": {"objects": objects, "requests": requests, **beside}, **others} if (
            not others and not beside and _is_part(objects) and _is_part(requests)
        ):
            return Popularity("hotspot", objects=float(objects), requests=float(requests))
        case {"counts": list() as bands, **others} if not others and _are_bands(bands):
            return Popularity("counts", bands=tuple((float(count), float(share)) for count, share in bands))
    return value


def _is_exponent(value: Any) -> bool:
    return is_number(value) and 0 < value <= 10


def _is_part(value: Any) -> bool:
    return is_number(value) and 0 < value < 1


#: Most bands of counts, classes of reuse, and distances of one.
_MAX_BANDS, _MAX_DISTANCES = 100, 64
#: At most this share of the objects of a cycle are created in it.
_MAX_CREATED = 0.999999


def _are_bands(bands: list[Any]) -> bool:
    """Whether these are counts that rise, of 1 or more, each with a number of objects above 0."""
    if not 1 <= len(bands) <= _MAX_BANDS or not all(
        isinstance(each, list) and len(each) == 2 for each in bands
    ):
        return False
    counts = [count for count, _ in bands]
    return all(is_number(count) and count <= 1e12 for count in counts) and (
        counts[-1] >= 1
        and all(is_number(share) and 0 < share <= 1e12 for _, share in bands)
        and all(low < high for low, high in pairwise(counts))
    )


def _are_classes(classes: list[Any]) -> bool:
    """Whether these are counts that rise, each with weights of distances, one of which is above 0."""
    return _are_bands(
        [[each[0], 1] if isinstance(each, list) and len(each) == 2 else each for each in classes]
    ) and (
        all(
            isinstance(weights, list)
            and 1 <= len(weights) <= _MAX_DISTANCES
            and all(is_number(weight) and weight <= 1e12 for weight in weights)
            and any(weights)
            for _, weights in classes
        )
    )


def _are_shares(created: Any, deleted: Any) -> bool:
    are_numbers = is_number(created) and is_number(deleted)
    return are_numbers and created <= _MAX_CREATED and round(created + deleted, 5) <= 1


def _parse_reuse(value: object) -> object:
    match value:
        case {"classes": list() as classes, **others} if (
            others.keys() <= {"created", "deleted"}
            and _are_classes(classes)
            and _are_shares(others.get("created", 0), others.get("deleted", 0))
        ):
            own_shares: Any = others
            found = tuple((float(count), tuple(map(float, own))) for count, own in classes)
            return Reuse(0.0, 1, 1, found, **{name: float(share) for name, share in own_shares.items()})
        case {"share": share, "distance": distance, **others} if not others and is_number(share):
            ends = str(distance).split("..")
            if type(distance) is bool or len(ends) > 2 or not all(end.strip().isdecimal() for end in ends):
                raise ValueError(f"expected {_EXPECTED_REUSE}, not {shorten_value(value)}")
            return Reuse(float(share), int(ends[0]), int(ends[-1]))
    return value


_EXPECTED_REUSE = (
    "a mapping with share, a number above 0 up to 1, and distance, a number of reads from 1 to"
    f" {_MAX_REUSE_DISTANCE:,} or two as in 1..1000; or {{classes: [[2, [1, 5]], ...]}}, counts that"
    " rise, each with weights of distances, which may have created and deleted, shares, beside them"
)

POPULARITY_RULE = Rule(
    lambda value: isinstance(value, Popularity),
    "rotate, uniform, sequential, latest, or a mapping: {zipf: 0.99} or {latest: 0.99} (above 0, up to 10),"
    " or {hotspot: {objects: 0.2, requests: 0.8}} (above 0, below 1), or {counts: [[1, 70], [4, 30]]},"
    " counts of requests that rise, each with a number of objects",
    convert=_parse_popularity,
)
REUSE_RULE = Rule(
    lambda value: (
        isinstance(value, Reuse)
        and (0 < value.share <= 1 or bool(value.classes))
        and 1 <= value.nearest <= value.farthest <= _MAX_REUSE_DISTANCE
    ),
    _EXPECTED_REUSE,
    convert=_parse_reuse,
)
