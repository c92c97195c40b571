"""Results of other tools, as figures that ``compare`` takes: CSV, vegeta, k6, warp and hyperfine.

Each is read from what the tool itself writes; ``doc/comparing.rst`` says how to make such a file. Only what
is in the file is known: no settings, no seed, and not how a figure varied within a run.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ssbench.base.errors import UsageError
from ssbench.comparison.run_figures import ALL_KEY, FigureKey, FigureSample, RunFigures
from ssbench.document.figures import COMPARED_FIGURES, count_needed_results, percentile_of
from ssbench.statistics.confidence import Series

#: A larger file is refused: each of these is a summary, or has some hundred bytes for a request.
_MAX_BYTES = 2 << 30

#: Names that operations of other tools have here.
_OPERATION_NAMES = {"GET": "READ", "PUT": "CREATE", "STAT": "HEAD"}

#: An operation that is sent during the whole time misses at most this share of it at each end, and so many of
#: the mean times between its requests (chance makes it more in 1 of 50).
_MAX_ABSENCE_SHARE = 0.1
_MAX_ABSENT_GAPS = 4

#: Options of warp that differ in each run, or that nobody should read.
_OWN_OPTIONS = re.compile(r" --(?:benchdata|access-key|secret-key|session-token|influxdb|sse-c\S*)[= ]\S+")

#: Columns of a CSV file; the last one may be missing.
CSV_COLUMNS = ("run", "figure", "value", "side")


@dataclass(frozen=True, slots=True)
class ForeignResults:
    """What a file has."""

    tool: str  # the name of the tool, or CSV
    #: The runs of each side, in the order of the file; one side without a name where it has no sides.
    sides: Mapping[str, Sequence[RunFigures]]

    @property
    def note(self) -> str:
        """What cannot be known of such results, in a sentence."""
        return (
            f"results of {self.tool}: neither settings nor drift are known, nor how figures varied within a"
            " run"
        )


def read_foreign_results(path: Path) -> ForeignResults:
    """Read a file; raises UsageError, which says what was expected, where it is none that is known."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UsageError(f"{path}: more than {_MAX_BYTES >> 30} GiB")
        data = path.read_bytes()
        if path.name.endswith(".zst"):
            data = _decompress(data, path)
        text = data.decode("utf-8-sig")
        is_json = path.name.removesuffix(".zst").endswith(".json")
        return _read_json(text, path) if is_json else _read_table(text, path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: expected UTF-8 text") from None
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, csv.Error) as error:
        raise UsageError(f"{path}: not the results that were expected ({_describe_error(error)})") from None


def _describe_error(error: Exception) -> str:
    return f"{error.args[0]} is missing" if isinstance(error, KeyError) and error.args else f"{error}"[:200]


def _decompress(data: bytes, path: Path) -> bytes:
    try:
        import zstandard  # noqa: PLC0415 - an extra, which few need
    except ImportError:
        raise UsageError(f"{path}: needs the package zstandard: pip install 'ssbench[zstd]'") from None
    try:
        with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True) as reader:
            found: bytes = reader.read(_MAX_BYTES + 1)
    except zstandard.ZstdError as error:
        raise ValueError(f"{error}") from None
    if len(found) > _MAX_BYTES:
        raise ValueError(f"more than {_MAX_BYTES >> 30} GiB")
    return found


def _make_run(
    path: Path,
    rows: Mapping[FigureKey, Mapping[str, float]],
    tool: str,
    name: str = "",
    side: str = "",
    started: float | None = None,
    facts: Mapping[str, str] | None = None,
) -> RunFigures:
    """Return a run of figures that are numbers as ours: 0 or more, where a rate of 0 says nothing."""
    known: dict[FigureKey, dict[str, FigureSample]] = {}
    for key, figures in rows.items():
        for figure, value in figures.items():
            is_share = COMPARED_FIGURES[figure].is_share
            if not (math.isfinite(value) and (0 <= value <= 1 if is_share else value >= 0)):
                raise ValueError(f"{key[0]} {figure} is {value}")
            if value or is_share:
                known.setdefault(key, {})[figure] = FigureSample(value)
    return RunFigures(name or path.name, known, {"tool": tool, **(facts or {})}, label=side, started=started)


# -- CSV and warp ------------------------------------------------------------------------------------


def _read_table(text: str, path: Path) -> ForeignResults:
    head = text.partition("\n")[0].strip()
    if "\t" in head and {"op", "start", "end", "error"} <= {*head.split("\t")}:
        return _read_warp(text, path)
    columns = tuple(each.strip().lower() for each in head.split(","))
    if columns not in {CSV_COLUMNS, CSV_COLUMNS[:3]}:
        raise UsageError(
            f"{path}: expected the columns {','.join(CSV_COLUMNS[:3])} (and perhaps {CSV_COLUMNS[3]}),"
            f" or a file of warp, not {head[:100]!r}"
        )
    sides: dict[str, dict[str, dict[FigureKey, dict[str, float]]]] = {}
    for number, cells in enumerate(csv.reader(io.StringIO(text)), 1):
        if number == 1 or not any(cells):
            continue
        if len(cells) != len(columns):
            raise UsageError(f"{path}:{number}: expected {len(columns)} values, not {len(cells)}")
        run, figure, value, side = (*(each.strip() for each in cells), *([""] * (4 - len(columns))))
        key, name = _parse_figure(figure, f"{path}:{number}")
        figures = sides.setdefault(side, {}).setdefault(run, {}).setdefault(key, {})
        if name in figures:
            raise UsageError(f"{path}:{number}: the run {run!r} has {figure} twice")
        try:
            figures[name] = float(value)
        except ValueError:
            raise UsageError(f"{path}:{number}: expected a number, not {value[:40]!r}") from None
    return ForeignResults(
        "CSV",
        {
            side: [_make_run(path, rows, "CSV", f"{path.name} {run}", side) for run, rows in runs.items()]
            for side, runs in sides.items()
        },
    )


def _parse_figure(text: str, where: str) -> tuple[FigureKey, str]:
    """Return the place and the name of a figure such as ``p99`` or ``read.p99``."""
    operation, _, name = text.rpartition(".")
    if name not in COMPARED_FIGURES:
        raise UsageError(
            f"{where}: figure {text[:60]!r}: expected one of {', '.join(COMPARED_FIGURES)}, after an"
            " operation and a point where it is of one (read.p99)"
        )
    return ((operation.upper(), None) if operation else ALL_KEY), name


def _read_warp(text: str, path: Path) -> ForeignResults:
    """Read the requests that warp keeps with ``--benchdata --full``: a line each, separated by tabs.

    Each operation has a window of its own, from its first start to its last end, because the uploads that
    prepare a benchmark of reads are in the same file. There is a row of all operations only where their
    windows are about the same.
    """
    text, command = _split_comment(text)
    requests = [*csv.DictReader(io.StringIO(text), delimiter="\t", restval="")]
    if not requests:
        raise ValueError("no request")
    start = np.array([_parse_moment(each["start"]) for each in requests])
    end = np.array([_parse_moment(each["end"]) for each in requests])
    size = np.array([float(each["bytes"] or 0) for each in requests])
    good = np.array([not each["error"] for each in requests])
    operation = np.array([_OPERATION_NAMES.get(each["op"], each["op"]) for each in requests])
    masks = {name: operation == name for name in dict.fromkeys(operation.tolist())}
    if all(_is_throughout(start, end, own) for own in masks.values()):
        masks["ALL"] = np.full(len(requests), True)
    rows: dict[FigureKey, dict[str, float]] = {}
    for name, own in masks.items():
        seconds = float(end[own].max() - start[own].min())
        if not seconds > 0:
            raise ValueError(f"no time passed in {name}")
        latencies = np.sort((end - start)[own & good])
        figures = {
            "rate": len(latencies) / seconds,
            "mb_per_s": float(size[own & good].sum()) / 1e6 / seconds,
            "errors": float((own & ~good).sum()) / int(own.sum()),
        }
        for key, rank in _ranks():
            if (value := percentile_of(latencies, rank)) is not None:
                figures[key] = value
        rows[name, None] = figures
    facts = {"command": command} if command else {}
    return ForeignResults(
        "warp", {"": [_make_run(path, rows, "warp", facts=facts, started=float(start.min()))]}
    )


def _is_throughout(start: Series, end: Series, own: npt.NDArray[np.bool_]) -> bool:
    """Whether some of the requests were sent during the whole time.

    Of an operation that is rare, the first and the last are away from the ends of the time by chance.
    """
    first, last = start[own].min() - start.min(), end.max() - end[own].max()
    whole = end.max() - start.min()
    return bool(max(first, last) <= _MAX_ABSENCE_SHARE * whole + _MAX_ABSENT_GAPS * whole / own.sum())


def _split_comment(text: str) -> tuple[str, str]:
    """Return the lines of a file of warp, and its command line, which is a comment below them.

    Names of files are left out of the command, because they differ in each run, and so are keys.
    """
    lines = text.splitlines(keepends=True)
    last = len(lines)
    while last and (lines[last - 1].startswith("#") or not lines[last - 1].strip()):
        last -= 1
    command = " ".join(" ".join(line.lstrip("#") for line in lines[last:]).split())
    return "".join(lines[:last]), _OWN_OPTIONS.sub("", command)


def _ranks() -> Iterator[tuple[str, float]]:
    """Yield the percentiles that are compared: key and rank."""
    return ((key, each.rank) for key, each in COMPARED_FIGURES.items() if each.rank is not None)


def _parse_moment(text: str) -> float:
    """Return the seconds since 1970 of a moment in RFC 3339, whose fraction may have nine digits."""
    whole, point, rest = text.partition(".")
    count = next((at for at, each in enumerate(rest) if not each.isdigit()), len(rest))
    fraction = float(f"0.{rest[:count]}") if point else 0.0
    return datetime.fromisoformat(whole + rest[count:]).timestamp() + fraction


# -- JSON ----------------------------------------------------------------------------------------


def _read_json(text: str, path: Path) -> ForeignResults:
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if isinstance(found, dict):
        if "by_op_type" in found or ("commandline" in found and "total" in found):
            raise UsageError(f"{path}: warp wrote totals only: run it with --full, and give the .csv.zst")
        for key, tool, read in _READERS:
            if key in found:
                return ForeignResults(tool, read(found, path))
    raise UsageError(
        f"{path}: expected JSON of vegeta (report -type=json), k6 (--summary-export) or hyperfine"
        " (--export-json)"
    )


def _read_vegeta(found: Mapping[str, Any], path: Path) -> dict[str, list[RunFigures]]:
    """Read a report of vegeta; its latencies are those of all requests, failed ones too."""
    count, latencies = int(found["requests"]), found["latencies"]
    seconds = (found["duration"] + found["wait"]) / 1e9
    figures = {
        "rate": float(found["throughput"]),
        "mb_per_s": (found["bytes_in"]["total"] + found["bytes_out"]["total"]) / 1e6 / seconds,
        "errors": 1 - float(found["success"]),
        **_supported({50: latencies["50th"], 95: latencies["95th"], 99: latencies["99th"]}, count, 1e9),
    }
    return {"": [_make_run(path, {ALL_KEY: figures}, "vegeta", started=_parse_moment(found["earliest"]))]}


def _read_k6(found: Mapping[str, Any], path: Path) -> dict[str, list[RunFigures]]:
    """Read a summary of k6, of ``--summary-export`` or ``handleSummary``: its HTTP requests."""

    def values(name: str) -> Mapping[str, Any]:
        metric = found["metrics"][name]
        inner = metric.get("values", metric)
        if not isinstance(inner, dict):
            raise TypeError(f"{name} is no metric")
        return inner

    requests, latency, failed = values("http_reqs"), values("http_req_duration"), values("http_req_failed")
    errors = float(failed["value"] if "value" in failed else failed["rate"])
    moved = [values(name)["rate"] for name in ("data_received", "data_sent")]
    ranks = {50.0: "med", 95.0: "p(95)", 99.0: "p(99)"}
    known = {rank: latency[name] for rank, name in ranks.items() if name in latency}
    figures = {
        "rate": float(requests["rate"]) * (1 - errors),
        "mb_per_s": sum(moved) / 1e6,
        "errors": errors,
        **_supported(known, int(requests["count"]), 1e3),
    }
    return {"": [_make_run(path, {ALL_KEY: figures}, "k6")]}


def _supported(latencies: Mapping[float, float], count: int, a_second: float) -> dict[str, float]:
    """Return those percentiles that so many latencies support, in seconds."""
    return {
        f"p{rank:g}": value / a_second
        for rank, value in latencies.items()
        if f"p{rank:g}" in COMPARED_FIGURES and count >= count_needed_results(rank)
    }


def _read_hyperfine(found: Mapping[str, Any], path: Path) -> dict[str, list[RunFigures]]:
    """Read an export of hyperfine: a side is a command, and each of its executions a run.

    What one took stands as the 50th percentile, and an exit code that is not 0 as a failure.
    """
    sides: dict[str, list[RunFigures]] = {}
    for each in found["results"]:
        codes = each.get("exit_codes") or [0] * len(each["times"])
        command = str(each["command"])
        if command in sides:
            raise ValueError(f"the command {command[:60]!r} is there twice; -n gives each a name")
        sides[command] = [
            _make_run(
                path,
                {ALL_KEY: {"p50": float(seconds), "errors": float(code != 0)}},
                "hyperfine",
                f"{path.name} {number}",
                command,
            )
            for number, (seconds, code) in enumerate(zip(each["times"], codes, strict=True), 1)
        ]
    return sides


#: (a key that the document has, the tool, what reads it).
_READERS: tuple[tuple[str, str, Callable[[Mapping[str, Any], Path], dict[str, list[RunFigures]]]], ...] = (
    ("latencies", "vegeta", _read_vegeta),
    ("metrics", "k6", _read_k6),
    ("results", "hyperfine", _read_hyperfine),
)
