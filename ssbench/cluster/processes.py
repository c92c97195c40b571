"""Reads log files in processes of their own, where there are cores and enough to read."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from threading import Thread

import numpy as np

from ssbench.base import interruption
from ssbench.base.errors import StatFileError
from ssbench.cluster.file_lines import FileLines, WantedLines, read_log_file
from ssbench.cluster.files import LogFile
from ssbench.cluster.ids import TransactionIds

#: Processes take half a second to start: less than this many bytes are read sooner without.
_MIN_PARALLEL_BYTES = 64 << 20


def read_log_files(files: Sequence[LogFile], wanted: WantedLines) -> Iterator[FileLines]:
    """Yield what each file says, in the order of the files.

    Raises StatFileError when one cannot be read.
    """
    processes = min(len(files), len(os.sched_getaffinity(0)))
    if processes < 2 or sum(_file_size(file) for file in files) < _MIN_PARALLEL_BYTES:
        yield from (read_log_file(file, wanted) for file in files)
        return
    # The ids are in a file, whose pages all processes share.
    with (
        tempfile.TemporaryDirectory(prefix="ssbench-attribute-") as folder,
        interruption.undo_on_interrupt(partial(shutil.rmtree, folder, ignore_errors=True)),
    ):
        for each in fields(TransactionIds):
            np.save(Path(folder) / f"{each.name}.npy", getattr(wanted.ids, each.name))
        without = replace(wanted, ids=TransactionIds.of(np.zeros(0, np.uint64), np.zeros(0, np.uint32)))
        with ProcessPoolExecutor(
            processes,
            multiprocessing.get_context("spawn"),
            initializer=_begin_reader,
            initargs=(folder, without),
        ) as pool:
            try:
                yield from pool.map(_read_in_process, files)
            except BrokenProcessPool:
                raise StatFileError("a process that read logs was killed: is there enough memory?") from None
            finally:
                pool.shutdown(cancel_futures=True)


def _file_size(file: LogFile) -> int:
    try:
        return file.path.stat().st_size
    except OSError:
        return 0


class _ReaderProcess:
    """What a reading process knows."""

    wanted: WantedLines


def _begin_reader(folder: str, wanted: WantedLines) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops them
    Thread(target=_end_with_parent, daemon=True).start()
    columns = (np.load(Path(folder) / f"{each.name}.npy", mmap_mode="r") for each in fields(TransactionIds))
    _ReaderProcess.wanted = replace(wanted, ids=TransactionIds(*columns))


def _end_with_parent() -> None:
    """End this process when its parent has, which ends on the spot; the body of a thread."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _read_in_process(file: LogFile) -> FileLines:
    return read_log_file(file, _ReaderProcess.wanted)
