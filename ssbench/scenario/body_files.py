"""The files of a folder whose bytes are uploaded: ``files`` of the key ``body`` of a scenario.

The master reads them with the scenario. Each worker reads the folder at the same path, and refuses to work
where that has other files. A scenario may come from somebody else, and so may what a worker is told to do:
both read only folders that :func:`refuse_outside` lets pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from ssbench.base.errors import UsageError
from ssbench.base.text_values import format_bytes

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
                " --allow-bodies allows a folder"
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
                f"{folder}: expected at most {MAX_BODY_FILES:,} files of"
                f" {format_bytes(MAX_BODY_FILES_BYTES)} in all,"
                f" not {len(used):,} of {format_bytes(size)}"
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
