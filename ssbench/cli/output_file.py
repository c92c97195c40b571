"""The output of a sub-command: standard output, a device or pipe, or a new file; and its log lines.

Log lines of all programs are ``LEVEL:message`` on standard error.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeAlias, TypeVar

from ssbench.base import interruption, printable
from ssbench.base.errors import UsageError
from ssbench.run import terminal

if TYPE_CHECKING:
    from ssbench.document.elements import View

_log = logging.getLogger(__name__)

_View = TypeVar("_View", bound="View")

#: Lines of text that are longer are tiring to read.
_MAX_COLUMNS = 160


class _ReaderGoneError(Exception):
    """The reader of an output (``head``, a pager) has closed it."""


@contextmanager
def open_standard_output(clean: Callable[[str], str] = printable.make_printable_lines) -> Iterator[TextIO]:
    """Yield standard output; ``clean`` makes texts printable.

    Raises UsageError when it is closed or cannot be written. Where its reader is gone, the context ends
    there: that is no failure.
    """
    with suppress(_ReaderGoneError), _open_standard_output(clean) as out:
        yield out


@contextmanager
def _open_standard_output(clean: Callable[[str], str]) -> Iterator[TextIO]:
    if sys.stdout is None:  # closed by the shell; typeshed does not know
        raise UsageError("standard output is closed")
    terminal.end_row()
    terminal.drain_output()  # standard error may be the same file or terminal, and comes first there
    try:
        yield printable.make_printable_stream(sys.stdout, clean)
        sys.stdout.flush()
    except OSError as error:
        # Otherwise the interpreter would try to flush it again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise _ReaderGoneError from None
        raise UsageError(f"standard output: cannot be written: {error.strerror}") from None


def make_view(out: TextIO, *, verbose: bool = False) -> View:
    """Return what a document is written for: a terminal has its columns, all else the usual 80."""
    # Here, because --help does without.
    from ssbench.document.elements import View

    return fit_view(View(verbose=verbose), out)


def fit_view(wanted: _View, out: TextIO) -> _View:
    """Return a view with the columns, rows and encoding of a file, and with colours where they are wanted."""
    from ssbench.document.columns import DEFAULT_COLUMNS

    columns = min(max(measure_terminal(out) or 0, DEFAULT_COLUMNS), _MAX_COLUMNS)
    size = _find_terminal_size(out)
    coloured = printable.wants_colours(out)
    if coloured and isinstance(out, printable.PrintableStream):
        out.let_paint()
    return replace(
        wanted,
        columns=columns,
        rows=size.lines if size else 0,
        encoding=out.encoding or "utf-8",
        coloured=coloured,
    )


def measure_terminal(out: TextIO) -> int | None:
    """Return the width of the terminal that a stream is; None where it is none, or does not tell."""
    size = _find_terminal_size(out)
    return (size.columns or None) if size else None


def _find_terminal_size(out: TextIO) -> os.terminal_size | None:
    try:
        return os.get_terminal_size(out.fileno())
    except (AttributeError, OSError, ValueError):  # it is closed, or replaced by a test
        return None


def check_outputs(
    outputs: Sequence[Path], stats_file: Path | None, *, force: bool, kept: Sequence[Path | None] = ()
) -> None:
    """Check several outputs before anything is read or written.

    As :func:`check_output`, and that they differ. ``kept`` are those whose earlier reports are kept.
    """
    for index, output in enumerate(outputs):
        if stats_file is not None and is_same_file(output, stats_file):
            raise UsageError(f"{output}: that is the stat file itself")
        check_output(output, force=force, keeps=output in kept)
        if not is_standard_output_name(output) and output.resolve() in [
            other.resolve() for other in outputs[:index]
        ]:
            raise UsageError(f"{output}: given for two outputs")


def refuse_inputs(outputs: Iterable[Path | None], inputs: Iterable[Path]) -> None:
    """Raise UsageError where an output is a file that is read, which would be lost."""
    for given in inputs:
        if any(output is not None and is_same_file(output, given) for output in outputs):
            raise UsageError(f"{given}: is read, and cannot be an output too")


def check_output(output: Path, *, force: bool, keeps: bool = False) -> None:
    """Raise UsageError when it cannot be written, or would be overwritten without ``force``.

    ``keeps``: an earlier report of ours is given another name when the new one is written.
    """
    if is_standard_output_name(output):
        return
    try:
        mode = output.stat().st_mode
    except FileNotFoundError:
        # Also a link to nowhere. A name that is too long raises another error.
        if not output.resolve().parent.is_dir():  # better known before a run than after it
            raise UsageError(f"{output}: cannot be written: {os.strerror(errno.ENOENT)}") from None
        _check_folder(output)
        return
    except (OSError, ValueError) as error:
        raise _make_write_error(output, error) from None
    if stat.S_ISDIR(mode) or stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise UsageError(f"{output}: is not a regular file")
    if stat.S_ISREG(mode) and not force and not (keeps and _is_own_report(output)):
        raise UsageError(f"{output}: exists already; give another name, or --force to overwrite it")
    if stat.S_ISREG(mode):
        _check_folder(output)  # another file takes its place
    elif not os.access(output, os.W_OK):
        raise UsageError(f"{output}: cannot be written: {os.strerror(errno.EACCES)}")


def _check_folder(output: Path) -> None:
    """Raise UsageError if no file can be created in the folder of an output; tries with an unnamed file."""
    import tempfile  # here, because --help does without

    try:
        tempfile.TemporaryFile(dir=output.resolve().parent).close()
    except OSError as error:
        raise _make_write_error(output, error) from None


#: How the table of ssbench 0.3.9 says what made it, and how reports as CSV begin.
_TABLE_MARK = b"  (generated with ssbench version "
_CSV_HEADS = (b'"scenario_name","ssbench_version"', b'"Seconds Since Start","Requests Completed"')


def _is_own_report(output: Path) -> bool:
    """Return whether a file is a report with the table of ssbench 0.3.9, or one as CSV."""
    try:
        if output.is_symlink():
            return False
        with output.open("rb") as file:
            begin = file.read(65536)
    except OSError:
        return False
    return begin.startswith(_CSV_HEADS) or _TABLE_MARK in begin


def is_same_file(one: Path, other: Path) -> bool:
    """Return whether two paths are of one file that exists."""
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False


def is_standard_output_name(output: Path) -> bool:
    """Return whether the name is ``-`` or another name of standard output, such as ``/dev/stdout``."""
    if output == Path("-"):
        return True
    try:
        return output.parent == Path("/dev") and os.path.samestat(output.stat(), os.fstat(1))
    except (OSError, ValueError):
        return False


def is_stream_path(output: Path) -> bool:
    """Return whether something is there that is no regular file: a pipe, a device."""
    return output.exists() and not output.is_file()


@contextmanager
def open_output(
    output: Path,
    format_: str = "text",
    *,
    force: bool = False,
    keeps: bool = False,
    done: Callable[[Path], object] | None = None,
) -> Iterator[TextIO]:
    """Yield the stream to write UTF-8 to; its ``buffer`` takes bytes.

    Texts are made printable, as is right for the format. A new file gets its name when it is complete, so
    that a failure leaves nothing behind. Raises UsageError as :func:`check_output` does, and when it cannot
    be written. Where its reader is gone, the context ends there. ``done`` is called with the output when all
    of it has been written.
    """
    with suppress(_ReaderGoneError):
        with _open_output(output, format_, force=force, keeps=keeps) as out:
            yield out
        if done is not None:
            done(output)


@contextmanager
def _open_output(output: Path, format_: str, *, force: bool, keeps: bool = False) -> Iterator[TextIO]:
    clean = printable.choose_cleaner(format_)
    check_output(output, force=force, keeps=keeps)
    if is_standard_output_name(output):
        with _open_standard_output(clean) as stdout:
            yield stdout
        return
    try:
        if is_stream_path(output):
            with _open_stream(output) as stream:
                yield printable.make_printable_stream(stream, clean)
        else:
            # Follow a link that may be overwritten instead of replacing it.
            with _replace_file(output.resolve(), force=force, keeps=keeps) as file:
                yield printable.make_printable_stream(file, clean)
    except BrokenPipeError:
        raise _ReaderGoneError from None
    except OSError as error:
        raise _make_write_error(output, error) from None


def _open_stream(output: Path) -> TextIO:
    """Open a device or a pipe. A pipe without a reader is an error; do not wait for one."""
    descriptor = os.open(output, os.O_WRONLY | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return open(descriptor, "w", encoding="utf-8", newline="")  # noqa: PTH123 - a descriptor


@contextmanager
def _replace_file(output: Path, *, force: bool, keeps: bool) -> Iterator[TextIO]:
    part = output.with_name(f".ssbench-{os.urandom(6).hex()}.part")
    try:
        with interruption.undo_on_interrupt(partial(part.unlink, missing_ok=True)):
            with part.open("x", encoding="utf-8", newline="") as file:
                yield file
            check_output(output, force=force, keeps=keeps)
            if keeps and not force and output.exists():
                from ssbench.run.folders import rename_earlier_file  # here, because --help does without

                _log.info("Kept the earlier %s as %s", output, rename_earlier_file(output))
            part.replace(output)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _make_write_error(output: Path, error: OSError | ValueError) -> UsageError:
    if isinstance(error, OSError):
        return UsageError(f"{output}: cannot be written: {error.strerror}")
    return UsageError(f"{str(output)!r}: no file can have this name here")


def try_to_write_output(
    output: Path, write: Callable[[TextIO], object], format_: str = "text", *, force: bool = False
) -> bool:
    """Write a report as :func:`open_output` does; return whether it was written, and log why it was not.

    A reader that is gone is no failure, nor is standard output that was closed from the start.
    """
    try:
        with _open_output(output, format_, force=force) as out:
            write(out)
    except UsageError as error:
        _log.warning("A report was not written: %s", error)
        return sys.stdout is None and is_standard_output_name(output)
    except _ReaderGoneError:
        _log.warning("%s: its reader is gone", output)
    else:
        log_written(output)
    return True


#: Formats with the files for them.
FormatFiles: TypeAlias = Iterable[tuple[str, Path]]


def try_to_write_outputs(files: FormatFiles, write: Callable[[str, TextIO], object], *, force: bool) -> bool:
    """Write a report in several formats; return whether all went well, and log what did not."""
    written = [try_to_write_output(path, partial(write, name), name, force=force) for name, path in files]
    return all(written)


def write_outputs(files: FormatFiles, write: Callable[[str, TextIO], object], *, force: bool) -> None:
    """Write all that can be; then raises UsageError, which names those that could not."""
    errors: list[UsageError] = []
    for name, path in files:
        try:
            with open_output(path, name, force=force, done=log_written) as out:
                write(name, out)
        except UsageError as error:
            errors.append(error)
    if errors:
        raise UsageError("; ".join(map(str, errors)))


def log_written(output: Path) -> None:
    """Log which file was written."""
    if not is_standard_output_name(output):
        _log.info("Wrote %s", output)


class _StandardErrorHandler(logging.Handler):
    """Writes to the current ``sys.stderr``, which a progress bar replaces while it is shown."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
            if terminal.messages_disappear() and terminal.may_disappear(record):
                terminal.write_passing(text.partition("\n")[0])
            else:
                terminal.write_line(text, record.levelname)
        except Exception:  # noqa: BLE001 - as logging.StreamHandler does
            self.handleError(record)


def set_up_logging(*, verbose: bool = False, quiet: bool = False, time_stamps: bool = False) -> None:
    """Send log lines to standard error: INFO and above, DEBUG when verbose, WARNING when quiet.

    From then on nothing that is written there can block or end the program.
    """
    terminal.set_up_terminal()
    stamped = verbose or time_stamps
    logging.basicConfig(
        handlers=[_StandardErrorHandler()],
        level=logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO,
        format="%(asctime)s %(levelname)s:%(message)s" if stamped else "%(levelname)s:%(message)s",
        force=True,
    )
    # Their DEBUG lines contain tokens and passwords; their warnings repeat our own messages.
    for name in ("swiftclient", "keystoneauth", "keystoneclient", "urllib3", "requests"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
