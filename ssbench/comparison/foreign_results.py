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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ssbench.base.errors import UsageError
from ssbench.base.version import describe_zstd_lack
from ssbench.comparison.run_figures import ALL_KEY, FigureKey, FigureSample, RunFigures
from ssbench.document.figures import COMPARED_FIGURES, COMPARED_RANKS, count_needed_results, percentile_of
from ssbench.statistics.confidence import Series

#: A larger file is refused: each of these is a summary, or has some hundred bytes for a request.
_MAX_BYTES = 2 << 30

#: Names that operations of other tools have here.
_OPERATION_NAMES = {"GET": "READ", "PUT": "CREATE", "STAT": "HEAD"}

#: An operation that is sent during the whole time misses at most this share of it at each end, and so many of
#: the mean times between its requests (chance makes it more in 1 of 50).
_MAX_ABSENCE_SHARE = 0.1
_MAX_ABSENT_GAPS = 4

#: Options of warp that differ in each run, or are secret.
_OWN_OPTIONS = re.compile(r" --(?:benchdata|access-key|secret-key|session-token|influxdb|sse-c\S*)[= ]\S+")

#: So many failed requests, for each that lies beyond a percentile, do not change it noticeably.
_MAX_FAILING_SHARE = 0.1

#: Columns of a CSV file; the last two may be missing.
CSV_COLUMNS = ("run", "figure", "value", "side", "time")


@dataclass(frozen=True, slots=True)
class ForeignResults:
    """What a file has."""

    tool: str  # the name of the tool, or CSV
    #: The runs of each side, in the order of the file; one side without a name where it has no sides.
    sides: Mapping[str, Sequence[RunFigures]]
    remark: str = ""  # how the file was understood, after a semicolon

    @property
    def note(self) -> str:
        """What cannot be known of such results, in a sentence."""
        ordered = all(
            run.started is not None or run.turn is not None for runs in self.sides.values() for run in runs
        )
        unknown = "settings are not known" if ordered else "neither settings nor drift are known"
        if all("command" in run.facts for runs in self.sides.values() for run in runs):
            unknown = "of settings only the command is known"
        return f"results of {self.tool}: {unknown}, nor how figures varied within a run{self.remark}"


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
        raise UsageError(f"{path}: {describe_zstd_lack()}") from None
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
    columns = [each.strip().lower() for each in head.split(",")]
    if not {*CSV_COLUMNS[:3]} <= {*columns} <= {*CSV_COLUMNS} or len({*columns}) < len(columns):
        raise UsageError(
            f"{path}: expected the columns {','.join(CSV_COLUMNS[:3])} (and perhaps "
            f"{' or '.join(CSV_COLUMNS[3:])}), or a file of warp, not {head[:100]!r}"
        )
    runs: dict[tuple[str, str], dict[FigureKey, dict[str, float]]] = {}
    started: dict[tuple[str, str], float] = {}
    for number, cells in enumerate(csv.reader(io.StringIO(text)), 1):
        if number == 1 or not any(cells):
            continue
        where = f"{path}:{number}"
        if len(cells) != len(columns):
            raise UsageError(f"{where}: expected {len(columns)} values, not {len(cells)}")
        line = {name: cell.strip() for name, cell in zip(columns, cells, strict=True)}
        run = line.get("side", ""), line["run"]
        key, name = _parse_figure(line["figure"], where)
        figures = runs.setdefault(run, {}).setdefault(key, {})
        if name in figures:
            raise UsageError(f"{where}: the run {run[1]!r} has {line['figure']} twice")
        figures[name] = _parse_number(line["value"], "a number", float, where)
        if "time" in line:
            moment = _parse_number(
                line["time"], "a time, as 2026-05-01T12:00:00Z or in seconds", _parse_time, where
            )
            started[run] = min(moment, started.get(run, math.inf))
    # Lines that are sorted by side say nothing of when the runs were measured.
    changes_of_side = sum(one[0] != two[0] for one, two in pairwise(runs))
    is_in_turn = not started and changes_of_side > len({side for side, _ in runs}) - 1
    sides: dict[str, list[RunFigures]] = {}
    for turn, (run, rows) in enumerate(runs.items()):
        made = _make_run(path, rows, "CSV", f"{path.name} {run[1]}", run[0], started.get(run))
        sides.setdefault(run[0], []).append(replace(made, turn=turn if is_in_turn else None))
    remark = "; its lines are taken to be in the order of the runs (a column time says more)"
    return ForeignResults("CSV", sides, remark if is_in_turn else "")


def _parse_number(text: str, what: str, parse: Callable[[str], float], where: str) -> float:
    try:
        return parse(text)
    except (ValueError, OverflowError):
        raise UsageError(f"{where}: expected {what}, not {text[:40]!r}") from None


def _parse_time(text: str) -> float:
    """Return the seconds since 1970 of a number of these, or of a moment in ISO 8601."""
    try:
        found = float(text)
    except ValueError:
        return _parse_moment(text)
    if not math.isfinite(found):
        raise ValueError(text)
    return found


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
        for key, rank in COMPARED_RANKS.items():
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
        for key, kind, tool, read in _READERS:
            if isinstance(found.get(key), kind):
                return ForeignResults(tool, read(found, path))
    raise UsageError(
        f"{path}: expected JSON of envelope, vegeta (report -type=json), k6 (--summary-export) or"
        " hyperfine (--export-json)"
    )


def _read_vegeta(found: Mapping[str, Any], path: Path) -> dict[str, list[RunFigures]]:
    """Read a report of vegeta, whose latencies include failed requests.

    Of requests that were sent at one moment it has their number where others have a rate.
    """
    count, latencies, success = int(found["requests"]), found["latencies"], float(found["success"])
    if count <= 0:
        raise ValueError("no request")
    seconds = (found["duration"] + found["wait"]) / 1e9
    if not seconds > 0:
        raise ValueError("no time passed")
    figures = {
        "errors": _keep_share(1 - success),
        **_supported(
            {50: latencies["50th"], 95: latencies["95th"], 99: latencies["99th"]}, count, 1e9, 1 - success
        ),
    }
    if found["duration"]:
        figures["rate"] = count * success / seconds
        figures["mb_per_s"] = (found["bytes_in"]["total"] + found["bytes_out"]["total"]) / 1e6 / seconds
    return {"": [_make_run(path, {ALL_KEY: figures}, "vegeta", started=_parse_moment(found["earliest"]))]}


def _read_k6(found: Mapping[str, Any], path: Path) -> dict[str, list[RunFigures]]:
    """Read a summary of k6, of ``--summary-export`` or ``handleSummary``: its HTTP requests."""
    metrics = {
        name: each["values"] if isinstance(each.get("values"), dict) else each
        for name, each in found["metrics"].items()
    }
    return _read_k6_metrics(metrics, path)


def _read_k6_results(found: Mapping[str, Any], path: Path) -> dict[str, list[RunFigures]]:
    """Read a summary of k6 with ``--new-machine-readable-summary``, where counts stand for rates."""
    seconds = float(found["config"]["duration"])
    if not seconds > 0:
        raise ValueError("no time passed")
    metrics = {each["name"]: dict(each["values"]) for each in found["results"]["metrics"]}
    for values in metrics.values():
        if "count" in values:
            values["rate"] = values["count"] / seconds
    return _read_k6_metrics(metrics, path)


def _read_k6_metrics(metrics: Mapping[str, Mapping[str, Any]], path: Path) -> dict[str, list[RunFigures]]:
    requests, failed = metrics["http_reqs"], metrics["http_req_failed"]
    errors = float(failed["value"] if "value" in failed else failed["rate"])
    count = int(requests["count"])
    # The latency of successes is there unless the script changed its expected responses.
    of_successes = metrics.get("http_req_duration{expected_response:true}")
    latency = of_successes or metrics["http_req_duration"]
    ranks = {50.0: "med", 95.0: "p(95)", 99.0: "p(99)"}
    known = {rank: latency[name] for rank, name in ranks.items() if name in latency}
    if of_successes:
        figures = _supported(known, round(count * (1 - errors)), 1e3)
    else:
        figures = _supported(known, count, 1e3, errors)
    figures |= {
        "rate": float(requests["rate"]) * (1 - errors),
        "mb_per_s": sum(metrics[name]["rate"] for name in ("data_received", "data_sent")) / 1e6,
        "errors": errors,
    }
    return {"": [_make_run(path, {ALL_KEY: figures}, "k6")]}


def _keep_share(value: float) -> float:
    """Return a share that a difference from 1 made, without what rounding added."""
    return 0.0 if abs(value) < 1e-9 else value


def _supported(
    latencies: Mapping[float, float], count: int, a_second: float, failing: float = 0.0
) -> dict[str, float]:
    """Return those percentiles that so many latencies support, in seconds.

    A share of them are ``failing`` requests: a percentile is none of successes where these may change it.
    """
    return {
        key: latencies[rank] / a_second
        for key, rank in COMPARED_RANKS.items()
        if rank in latencies
        and count >= count_needed_results(rank)
        and failing <= _MAX_FAILING_SHARE * (1 - rank / 100)
    }


def _read_hyperfine(found: Mapping[str, Any], path: Path) -> dict[str, list[RunFigures]]:
    """Read an export of hyperfine: a side is a command, and each of its executions a run.

    What one took stands as the 50th percentile, and an exit code that is not 0 as a failure, or a signal
    (null). hyperfine runs the commands one after the other.
    """
    sides: dict[str, list[RunFigures]] = {}
    for each in found["results"]:
        command = str(each["command"])
        if not each.get("times"):
            raise ValueError(f"the command {command[:60]!r} has no times")
        codes = each.get("exit_codes") or [0] * len(each["times"])
        if command in sides:
            raise ValueError(f"the command {command[:60]!r} is there twice; -n gives each a name")
        first = sum(map(len, sides.values()))
        sides[command] = [
            replace(
                _make_run(
                    path,
                    {ALL_KEY: {"p50": float(seconds), "errors": float(code != 0)}},
                    "hyperfine",
                    f"{path.name} {number}",
                    command,
                ),
                turn=first + number,
            )
            for number, (seconds, code) in enumerate(zip(each["times"], codes, strict=True), 1)
        ]
    if not sides:
        raise ValueError("no command")
    return sides


#: (a key that the document has and the type of its value, the tool, what reads it).
_READERS: tuple[
    tuple[str, type, str, Callable[[Mapping[str, Any], Path], dict[str, list[RunFigures]]]], ...
] = (
    ("latencies", dict, "vegeta", _read_vegeta),
    ("metrics", dict, "k6", _read_k6),
    ("results", dict, "k6", _read_k6_results),
    ("results", list, "hyperfine", _read_hyperfine),
)
