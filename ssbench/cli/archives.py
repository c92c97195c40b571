"""The stat files of sub-commands that use some: those that are named, and the folder of ``--results-dir``."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench.base.errors import SsbenchError, UsageError, did_you_mean
from ssbench.base.text_values import explain_several_runs, format_duration, is_reference
from ssbench.cli.asked import Asked
from ssbench.cli.options import FOLDER, RUN_FILE, Argument, choose_named_once

if TYPE_CHECKING:
    from ssbench.comparison.archive import Archive, ArchiveEntry, UntilRun
    from ssbench.comparison.noise_floor import NoiseFloors
    from ssbench.results.reading import RunResults
    from ssbench.statistics.run_statistics import ReadableResults

_log = logging.getLogger(__name__)

#: Names the folder where no option does.
RESULTS_DIR_VARIABLE = "SSBENCH_RESULTS_DIR"

#: The folder where neither does; see :mod:`ssbench.run.folders`.
DEFAULT_FOLDER = "~/.local/state/ssbench"


def make_results_dir_option(what: str) -> Argument:
    """Return the option; ``what`` says what becomes of the folder."""
    default = f"the environment variable {RESULTS_DIR_VARIABLE}, or {DEFAULT_FOLDER}"
    return Argument("--results-dir", FOLDER, what, default_text=default)


#: The folder of a sub-command that reads stat files.
RESULTS_DIR_OPTION = make_results_dir_option("folder to find last and @LABEL in")

#: FILE, or ``-s FILE``, of a sub-command that reads a stat file; see :func:`choose_stat_file`.
STAT_FILE_ARGUMENTS = (
    Argument(
        "file", RUN_FILE, "the stat file, compressed or not; or last, last-1, @LABEL", settings={"nargs": "?"}
    ),
    Argument("-s --stats-file", RUN_FILE, "the same, for scripts of ssbench 0.x"),
    RESULTS_DIR_OPTION,
)


@dataclass(frozen=True, kw_only=True)
class ResultsDirAsked(Asked):
    """Which folder runs are in."""

    results_dir: Path | None = None


@dataclass(frozen=True, kw_only=True)
class StatFileAsked(ResultsDirAsked):
    """Which stat file is meant."""

    file: Path | None
    stats_file: Path | None
    more: Sequence[Path] = ()  # of the other masters of the run


def choose_stat_file(asked: StatFileAsked) -> Path:
    """Return the stat file that was named; raises UsageError where it is not one."""
    given = choose_named_once(
        asked,
        asked.file,
        "stats_file",
        "a stat file is given twice, as FILE and with -s; one is expected",
        "a stat file is expected: FILE, last, last-1 or @LABEL (ssbench-master list shows the runs)",
    )
    return _resolve_one(asked.results_dir, str(given))


def choose_stat_files(asked: StatFileAsked) -> list[Path]:
    """Return the stat files that were named, of a command that takes those of several masters.

    The further ones are in ``more``. ``-s A B`` names two, as ``A B`` does.
    """
    several = [each for each in (asked.stats_file, asked.file, *asked.more) if each is not None]
    if not asked.is_given("stats_file") or len(several) == 1:
        several = [choose_stat_file(asked), *asked.more]
    return [_resolve_one(asked.results_dir, str(each)) for each in several]


def _resolve_one(folder: Path | None, named: str) -> Path:
    """Return the stat file of a name or reference; raises UsageError where it is not one."""
    found = resolve_references(folder, [named])
    if not _is_there(found[0]) and (hint := did_you_mean(named, ["last"])):
        raise UsageError(f"{named}: there is no such file{hint}")
    if len(found) > 1:
        raise UsageError(explain_several_runs(named, found))
    return Path(found[0])


@contextmanager
def open_stat_file(path: Path) -> Iterator[RunResults]:
    """Open a stat file, and show on a terminal how much of it has been read; raises StatFileError."""
    from ssbench.results.reading import open_results
    from ssbench.run.bars import ReadingBar

    bar = ReadingBar(path.name)
    try:
        with closing(open_results(path, bar)) as results:
            yield results
    finally:
        bar.stop()


@contextmanager
def open_stat_files(paths: Sequence[Path]) -> Iterator[ReadableResults]:
    """Open the stat file of one run, or those of the masters that made it; raises UsageError as well."""
    if len(paths) == 1:
        with open_stat_file(paths[0]) as results:
            yield results
    else:
        from ssbench.results.merging_masters import MergedResults

        yield MergedResults(paths)


def choose_folder(given: Path | None) -> Path | None:
    """Return the folder that an option or a variable names; None without one.

    Raises UsageError if it is not a folder. ``given`` is the value of ``--results-dir``, here and in all that
    follows.
    """
    variable = os.environ.get(RESULTS_DIR_VARIABLE)
    named = given or (Path(variable) if variable else None)
    with suppress(OSError):  # which is reported where the folder is used
        if named is not None and named.exists() and not named.is_dir():
            raise UsageError(f"{named}: is not a folder")
    return named


def choose_folder_of_last(given: Path | None) -> Path | None:
    """Return the folder where ``last`` is looked for; None where that needs ``--results-dir``."""
    from ssbench.run.folders import results_folder

    if given:
        return None
    if (named := choose_folder(None)) is not None:
        return named
    with suppress(UsageError):  # of a run whose file has a name: it needs no folder
        return results_folder()
    return None


def open_archive(given: Path | None) -> Archive:
    """Open the folder that was named, or the one where runs leave their files without a name."""
    from ssbench.comparison.archive import Archive
    from ssbench.run.folders import earlier_folders, results_folder

    if (named := choose_folder(given)) is not None:
        return Archive(named, _read_entry)
    usual = results_folder()
    return Archive(usual, _read_entry, [each for each in earlier_folders() if each != usual])


def _read_entry(path: Path) -> ArchiveEntry:
    """Make the entry of a stat file; raises StatFileError."""
    from ssbench.comparison.archive import read_entry

    return read_entry(path, open_stat_file)


def find_noise_floors(
    given: Path | None, configurations: Sequence[Mapping[str, str]], compared: Sequence[str]
) -> NoiseFloors | None:
    """Return the noise floor from equal runs of the folder that was named; None where there is none."""
    if (named := choose_folder(given)) is None:
        return None
    with suppress(OSError):  # which the archive reports
        if not named.is_dir():
            return None
    from ssbench.comparison.archive import find_equal_run_floors

    archive = open_archive(given)
    try:
        found = find_equal_run_floors(archive.entries(), configurations, compared)
    except UsageError as error:  # a comparison is possible without it
        _log.warning("%s", error)
        return None
    warn_of_unreadable(archive)
    return found


def describe_until_forecast(given: Path | None, runs: Iterable[UntilRun]) -> str:
    """Return how long earlier runs took that ``--until`` ended, in words; empty where there are none.

    ``runs`` are those that are to be made. Only earlier ones of a folder that was named are known.
    """
    folder = choose_folder(given)
    ways = [*dict.fromkeys(each for each in runs if each.goals)]
    if not ways or folder is None or not folder.is_dir():
        return ""
    from statistics import median

    from ssbench.comparison.archive import list_until_seconds

    entries = open_archive(given).entries()
    known = [found for way in ways if (found := list_until_seconds(entries, way))]
    if not known:
        return ""
    seconds = sorted(each for found in known for each, _ in found)
    # Which store a run goes to is known when it begins.
    places = sorted({where for found in known for _, where in found} - {""})
    where = f" ({' and '.join(places)})" if places else ""
    times = dict.fromkeys(format_duration(each) for each in (seconds[0], seconds[-1]))
    said = f"--until ended {len(seconds)} earlier run{'s' * (len(seconds) > 1)} of"
    if len(ways) == 1:
        return f"{said} {ways[0].words}{where} after {' to '.join(times)}"
    together = format_duration(sum(median(each for each, _ in found) for found in known))
    return (
        f"{said} {len(known)} of {len(ways)} rows{where} after {' to '.join(times)}; by the medians these"
        f" rows take {together} a round"
    )


def resolve_references(given: Path | None, names: Iterable[str]) -> list[str]:
    """Return names of files for names and references (last, @label); ``.gz`` may be missing.

    Runs add it to the name that ``-s`` gives.
    """
    found: list[str] = []
    archive = None
    for name in names:
        if is_reference(name):
            archive = archive or open_archive(given)
            found += [str(path) for path in archive.find(name)]
            warn_of_unreadable(archive)
        elif not _is_there(name) and not _is_there(f"{name}.gz") and _is_label(given, name):
            raise UsageError(f"{name}: there is no such file; did you mean @{name}?")
        else:
            found.append(name if _is_there(name) or not _is_there(f"{name}.gz") else f"{name}.gz")
    return found


def _is_there(name: str) -> bool:
    return os.path.exists(name)  # noqa: PTH110 - it raises nothing where that cannot be known


def _is_label(given: Path | None, name: str) -> bool:
    """Whether runs of the folder have a label, for a hint."""
    try:
        return bool(open_archive(given).find(f"@{name}"))
    except SsbenchError:
        return False


def warn_of_unreadable(archive: Archive) -> None:
    """Say which files could not be read."""
    for text in archive.unreadable:
        _log.warning("%s", text)
