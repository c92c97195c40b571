"""What the sub-commands share: types of values, and options that several have.

An option is one row, an :class:`Argument`: its spelling, what its value is, its help and its default. Among
those that several commands have are the scenario, FILE or ``-f FILE`` as ``run-scenario`` has it, and the
options of the two sockets between a master and its workers, for the parsers of either side.

What is printed can be written into a file too. :class:`ReportFiles` are those that were asked for of a
report. The sub-commands that print a list or log lines have ``--json FILE``, which is the same as one record.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypeAlias, TypeVar

from ssbench.base import printable, text_values
from ssbench.base.errors import Undecided, UsageError, did_you_mean
from ssbench.cli import output_file
from ssbench.cli.asked import Asked
from ssbench.cli.parser import set_completion_kind
from ssbench.fleet.addresses import DEFAULT_RESULTS_PORT, DEFAULT_WORK_PORT, BindAddress
from ssbench.reports import products
from ssbench.reports.products import Product

if TYPE_CHECKING:
    from ssbench.base.record import JsonHead
    from ssbench.document.elements import View
    from ssbench.fleet.keys import FleetKey
    from ssbench.reports.writing import ReportOptions
    from ssbench.scenario.conditions import Condition
    from ssbench.statistics.run_statistics import RunStatistics

_Value = TypeVar("_Value")

#: What options are added to.
OptionParser: TypeAlias = argparse.ArgumentParser | argparse._ArgumentGroup


def _make_number_type(
    convert: Callable[[str], float], low: float, high: float, expected: str
) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            value = convert(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")
        return value

    return parse


def make_argument_type(parse: Callable[[str], _Value]) -> Callable[[str], _Value]:
    """Return a type of values whose error is what the ValueError of ``parse`` says."""

    def checked(text: str) -> _Value:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return checked


def read_by(module: str, name: str, **settings: Any) -> Callable[[str], Any]:
    """Return a type of values that a function of a module reads, which is imported only for these."""
    return make_argument_type(
        lambda text: getattr(importlib.import_module(f"ssbench.{module}"), name)(text, **settings)
    )


positive_int = _make_number_type(int, 1, 2**62, "a whole number of 1 or more")
non_negative_int = _make_number_type(int, 0, 2**62, "a whole number of 0 or more")
positive_seconds = _make_number_type(
    text_values.parse_seconds, 1e-9, 1e9, f"a time above 0, {text_values.TIME_EXAMPLES}"
)
seconds_or_0 = _make_number_type(
    text_values.parse_seconds, 0, 1e9, f"a time of 0 or more, {text_values.TIME_EXAMPLES}"
)
positive_size = _make_number_type(
    text_values.parse_size, 1, 2**62, f"a number of bytes, {text_values.SIZE_EXAMPLES}"
)
positive_rate = _make_number_type(float, 1e-6, 1e7, "a number of operations a second above 0")
positive_minutes = _make_number_type(float, 1e-9, 10_000, "a number of minutes above 0 and up to 10000")
port_number = _make_number_type(int, 1, 65535, "a port number from 1 to 65535")
percentile_number = _make_number_type(float, 1, 100, "a percentile from 1 to 100")


#: The word for a time that is derived from the results.
AUTOMATIC_WORD = "auto"


def parse_warm_up(text: str) -> float | str:
    """Parse a time of 0 or more, or ``auto``."""
    return text if text == AUTOMATIC_WORD else float(seconds_or_0(text))


def parse_label(text: str) -> str:
    """Parse a word that names runs."""
    if not text or len(text) > 100 or not text.isprintable() or text != text.strip() or text.startswith("@"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a label: a printable text without @ before it")
    return text


def parse_urls(text: str) -> list[str]:
    """Parse URLs with spaces between them: the value of a variable that a shell may not split, as zsh."""
    if not (found := text.split()):
        raise argparse.ArgumentTypeError("expected a URL, not an empty text")
    return found


def parse_share(text: str) -> float:
    """Parse a percentage above 0 and below 100, as in 2% or 2, and return it as a share."""
    parsed: float = _make_number_type(float, 1e-6, 99.999999, "a percentage such as 2%")(
        text.strip().removesuffix("%")
    )
    return parsed / 100


def parse_whole_seconds(text: str) -> int:
    """Parse a time that Swift takes, which knows no fractions."""
    value: float = seconds_or_0(text)
    if not value.is_integer():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of seconds")
    return int(value)


def parse_percentiles(text: str) -> list[float]:
    """Parse percentiles with commas between them."""
    return [percentile_number(part) for part in text.split(",")]


# -- One row for each option -----------------------------------------------------------------------


class ValueKind(NamedTuple):
    """What the value of an option is."""

    metavar: str  # how the help names it
    read: Callable[[str], Any] | None = None  # what argparse calls to read it; None: it is a text
    completes: str | None = None  # what a shell offers: "scenarios", "runs" or "labels"


COUNT = ValueKind("N", positive_int)
COUNT_OR_0 = ValueKind("N", non_negative_int)
SECONDS = ValueKind("SECONDS", positive_seconds)
SECONDS_OR_0 = ValueKind("SECONDS", seconds_or_0)
BYTES = ValueKind("BYTES", positive_size)
MINUTES = ValueKind("N", positive_minutes)
PERCENT = ValueKind("PERCENT", parse_share)
PORT = ValueKind("PORT", port_number)
NAME = ValueKind("NAME")
LABEL = ValueKind("LABEL", parse_label, "labels")
FILE = ValueKind("FILE", Path)
FOLDER = ValueKind("DIR", Path)
RUN_FILE = ValueKind("FILE", Path, "runs")
SCENARIO_FILE = ValueKind("FILE", None, "scenarios")


class Argument(NamedTuple):
    """An option or a positional argument of a command; fields of records become these too."""

    spelling: str  # "-u --user-count", or the name of a positional argument
    kind: ValueKind | Sequence[str] | None  # what its value is, or all that it can be; None: a flag
    help: str
    default: Any = None
    default_text: str | None = None  # how the help says the default; None: as it is
    repeated: bool = False  # the values are a list, to which each use of the option adds
    old: str | None = None  # a letter that scripts may use and the help does not show
    settings: Mapping[str, Any] = MappingProxyType({})  # what else argparse is told


#: Options without a letter whose last value counts, as in ssbench 0.3.9; so does that of those with a letter.
_LAST_COUNTS = ("--zmq-bind-ip", "--zmq-host")


def add_options(parser: OptionParser, *rows: Argument) -> None:
    """Add options and positional arguments to a parser or to one of its groups."""
    for row in rows:
        settings: dict[str, Any] = {"help": _describe_option(row), **row.settings}
        if isinstance(row.kind, ValueKind):
            settings |= {"metavar": row.kind.metavar, "type": row.kind.read, **row.settings}
        elif row.kind is not None:
            settings["choices"] = row.kind
        if row.kind is None:
            settings.setdefault("action", "store_true")
        elif row.repeated:
            settings.setdefault("action", "extend" if "nargs" in settings else "append")
        elif row.old or row.spelling in _LAST_COUNTS:
            settings.setdefault("action", "store")
        if row.default is not None:
            settings["default"] = row.default
        spellings = row.spelling.split()
        action = parser.add_argument(*spellings, **settings)
        if isinstance(row.kind, ValueKind) and row.kind.completes:
            set_completion_kind(action, row.kind.completes)
        if row.old:
            # A letter that the help shows means the same for every sub-command.
            hidden = {"dest": action.dest, "default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
            parser.add_argument(row.old, **{**settings, **hidden})


def _describe_option(row: Argument) -> str:
    """Return the help, with the default at its end."""
    if row.default_text is not None:
        return f"{row.help} (default: {row.default_text})"
    if row.default is None or row.kind is None or row.repeated or "(default: " in row.help:
        return row.help
    return f"{row.help} (default: %(default){'g' if isinstance(row.default, float) else 's'})"


# -- Options that several commands have ------------------------------------------------------------


FORCE_OPTION = Argument("--force", None, "overwrite existing files")
OUTPUT_OPTION = Argument("--output", FILE, "file to write", "-", "standard output", old="-o")

#: What ``--allow`` has besides folders.
EVENTS_WORD = "events"


def _parse_allowed(text: str) -> str | Path:
    if text == EVENTS_WORD:
        return text
    if not Path(text).is_dir():
        raise ValueError(f"{text!r} is neither a folder nor {EVENTS_WORD}{did_you_mean(text, [EVENTS_WORD])}")
    return Path(text)


def list_allowed_folders(allow: Sequence[str | Path]) -> list[Path]:
    """Return the folders of ``--allow``."""
    return [each for each in allow if isinstance(each, Path)]


ALLOW_OPTION = Argument(
    "--allow",
    ValueKind("DIR|events", make_argument_type(_parse_allowed)),
    "allow the scenario, which may be somebody else's, to upload files from DIR (besides its own folder) or,"
    " with the word events, to run its commands on this host; may be repeated",
    [],
    "neither",
    repeated=True,
)

#: See :func:`choose_percentiles`.
PERCENTILES_OPTION = Argument(
    "--pctile",
    ValueKind("N[,N...]", parse_percentiles),
    "percentiles of latencies to report, from 1 to 100, as in 95,99.9; the first is that of the table",
    default_text="95",
    settings={"action": "extend"},
)


@dataclass(frozen=True, kw_only=True)
class ReportAsked(Asked):
    """What is printed of a run."""

    report: str | None
    csv: bool
    pctile: Sequence[float] | None
    fail_if: Sequence[Condition]
    undecided: str | None


def add_report_options(parser: OptionParser) -> None:
    """Add ``--report`` and ``--csv``; see :func:`choose_report`."""
    add_options(
        parser.add_mutually_exclusive_group(),
        Argument(
            "--report",
            ("summary", "table", "both", "full"),
            "what to print: the summary, the table of ssbench 0.3.9, both, or full: the table, all sections"
            " and a longer summary",
            default_text="summary on a terminal, both elsewhere or with --pctile; full with -v",
        ),
        Argument("--csv", None, "print the report as CSV"),
    )


def choose_report(asked: ReportAsked, default: str | None = None) -> tuple[str, bool]:
    """Return the name of the report that was asked for, and whether its summary is to be long.

    ``default`` is what is printed where no option says it. Otherwise a person at a terminal gets the summary
    alone; scripts of ssbench 0.x read pipes and files, and look for the table there.
    """
    if asked.csv:
        return "csv", False
    if default is None:
        # None where the shell closed it; typeshed does not know.
        read_by_person = sys.stdout is not None and sys.stdout.isatty() and not asked.pctile
        default = "summary" if read_by_person else "both"
    name = asked.report or ("full" if asked.verbose else default)
    return name, asked.verbose or name == "full"


FAIL_IF_OPTION = Argument(
    "--fail-if",
    ValueKind("CONDITION", read_by("scenario.conditions", "parse_condition", grouped=True)),
    "exit with code 5 if CONDITION is true: 'read.p99 > 200ms', 'errors > 0.1%%', 'rate < 500',"
    " 'create.mb_per_s < 100'; see doc/reports.rst; may be repeated, and adds to those of the scenario",
    [],
    "none",
    repeated=True,
)

#: See :func:`choose_undecided`.
UNDECIDED_OPTION = Argument(
    "--undecided",
    [each.value for each in Undecided],
    "treat a condition that too few operations or runs leave undecided as failed (exit code 5), as passed"
    " (0), or report it (6)",
    default_text="report",
)


def choose_undecided(word: str | None) -> Undecided:
    """Return what an undecided condition counts as, of what the option has."""
    return Undecided(word or Undecided.REPORT.value)


def choose_percentiles(asked: ReportAsked) -> tuple[float, tuple[float, ...]]:
    """Return the percentile of the table, and the others that were asked for."""
    first, *more = dict.fromkeys(asked.pctile or [95.0])
    return first, tuple(more)


def make_format_option(product: Product) -> Argument:
    """Return ``--format`` with the formats of a product."""
    return Argument("--format", products.format_names(product), "output format", "text")


def choose_named_once(asked: Asked, file: _Value | None, option: str, twice: str, none: str) -> _Value:
    """Return what FILE or an option that is the same names; raises UsageError unless one of them does.

    ``twice`` and ``none`` are the messages of that error.
    """
    given: list[_Value] = [each for each in (file, getattr(asked, option)) if each is not None]
    if len(given) == 2 and not asked.is_given(option):
        given.pop()  # of a file or a variable: what the command line names wins
    if len(given) != 1:
        raise UsageError(twice if given else none)
    return given[0]


# -- The scenario file -----------------------------------------------------------------------------


#: Both ways to name it; see :func:`choose_scenario_file`.
SCENARIO_ARGUMENTS = (
    Argument(
        "file",
        SCENARIO_FILE,
        "a scenario in YAML or JSON, the name of a shipped one, or one in a line: 'size=4kB mix=put,get'",
        settings={"nargs": "?"},
    ),
    Argument("-f --scenario-file", SCENARIO_FILE, "the same, as run-scenario has it"),
    ALLOW_OPTION,
)


@dataclass(frozen=True, kw_only=True)
class ScenarioFileAsked(Asked):
    """Which scenario is meant."""

    file: str | None
    scenario_file: str | None
    allow: Sequence[str | Path]


def choose_scenario_file(asked: ScenarioFileAsked) -> str:
    """Return the scenario that was named; raises UsageError where it is not one."""
    return choose_named_once(
        asked,
        asked.file,
        "scenario_file",
        "a scenario is given twice, as FILE and with -f; one is expected",
        "a scenario is expected: FILE ('ssbench-master help scenarios' lists shipped ones)",
    )


# -- The sockets of master and workers -------------------------------------------------------------


#: Those that a master and a worker both have.
SOCKET_OPTIONS = (
    Argument("--zmq-work-port", PORT, f"port of the master's work socket (default: {DEFAULT_WORK_PORT})"),
    Argument(
        "--zmq-results-port", PORT, f"port of the master's results socket (default: {DEFAULT_RESULTS_PORT})"
    ),
    Argument(
        "--zmq-key",
        FILE,
        "key file that encrypts all messages and keeps out workers without it; use the same file on"
        " the master and every worker; 'ssbench-master keygen' makes one [SSBENCH_ZMQ_KEY]",
    ),
)


@dataclass(frozen=True, kw_only=True)
class SocketAsked(Asked):
    """Where the sockets are."""

    zmq_bind_ip: str | None = None  # of a master
    zmq_work_port: int | None
    zmq_results_port: int | None
    zmq_key: Path | None


def add_zmq_arguments(parser: argparse.ArgumentParser, default_ip: str) -> None:
    """Add the options of a master; ``default_ip`` is for the help."""
    address = Argument(
        "--zmq-bind-ip", ValueKind("IP"), "address that both sockets bind to", default_text=default_ip
    )
    add_options(parser.add_argument_group("sockets"), address, *SOCKET_OPTIONS)


def choose_key_file(asked: SocketAsked) -> Path | None:
    """Return the key file of the options or of the environment."""
    variable = os.environ.get("SSBENCH_ZMQ_KEY")
    return asked.zmq_key or (Path(variable) if variable else None)


def read_chosen_key(asked: SocketAsked) -> FleetKey | None:
    """Read the key file, where there is one; raises KeyFileError."""
    from ssbench.fleet import keys

    path = choose_key_file(asked)
    return keys.read_fleet_key(path) if path else None


def has_zmq_options(asked: SocketAsked) -> bool:
    """Return whether an option of a master was given, so that workers of other hosts may connect."""
    names = ["zmq_bind_ip", "zmq_work_port", "zmq_results_port"]
    if asked.is_given("zmq_key"):  # one that a file or a variable names is there for all runs
        names.append("zmq_key")
    return any(getattr(asked, name) is not None for name in names)


def choose_ports(asked: SocketAsked) -> tuple[int, int]:
    """Return the ports for work and for results; raises UsageError when they are the same."""
    work_port = asked.zmq_work_port or DEFAULT_WORK_PORT
    results_port = asked.zmq_results_port or DEFAULT_RESULTS_PORT
    if work_port == results_port:
        raise UsageError(f"--zmq-work-port and --zmq-results-port are both {work_port}")
    return work_port, results_port


def make_bind_address(asked: SocketAsked, default_ip: str) -> BindAddress:
    """Return where a master listens; raises UsageError."""
    return BindAddress(asked.zmq_bind_ip or default_ip, *choose_ports(asked))


# -- Files of reports ------------------------------------------------------------------------------


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """The files that were asked for: (report, file)."""

    wanted: tuple[tuple[str, Path], ...]
    force: bool

    @property
    def paths(self) -> list[Path]:
        """All files."""
        return [path for _, path in self.wanted]

    @property
    def on_standard_output(self) -> str | None:
        """The report that goes to standard output; None without one."""
        return next((name for name, path in self.wanted if output_file.is_standard_output_name(path)), None)

    @property
    def by(self) -> tuple[str, ...]:
        """The fields that the statistics for these reports keep apart."""
        return products.PAGE_GROUPS if self.over_time else ()

    @property
    def over_time(self) -> bool:
        """Whether they need the course of the run, bin by bin."""
        return any(name in {"json", "html"} for name, _ in self.wanted)

    def check(self, others: Sequence[Path | None], stats_file: Path | None) -> None:
        """Raise UsageError for files that cannot be written, besides the ``others`` of the command.

        Those are options of ssbench 0.3.9, which overwrote them: earlier reports are kept under another name.
        """
        outputs = [*(path for path in others if path), *self.paths]
        if self.on_standard_output and sum(map(output_file.is_standard_output_name, outputs)) > 1:
            raise UsageError("standard output (-) is given for two outputs")
        output_file.check_outputs(outputs, stats_file, force=self.force, kept=others)

    def write(self, statistics: RunStatistics, options: ReportOptions) -> None:
        """Write all; raises UsageError, which names the file."""
        output_file.write_outputs(self.wanted, _make_report_writer(statistics, options), force=self.force)

    def that_are(self, *, slow: bool) -> list[tuple[str, Path]]:
        """Return those that are quick to write, or those that may hold up; without standard output.

        Slow is what is not a regular file, because its reader may be.
        """
        return [
            (name, path)
            for name, path in self.wanted
            if not output_file.is_standard_output_name(path) and slow is output_file.is_stream_path(path)
        ]

    def try_to_write(self, statistics: RunStatistics, options: ReportOptions, *, slow: bool) -> bool:
        """Write those that are quick or slow; return whether all went well."""
        files, write = self.that_are(slow=slow), _make_report_writer(statistics, options)
        return output_file.try_to_write_outputs(files, write, force=self.force)


def _make_report_writer(statistics: RunStatistics, options: ReportOptions) -> Callable[[str, TextIO], None]:
    from ssbench.reports.writing import make_run_report_parts

    return lambda name, out: out.writelines(make_run_report_parts(name, statistics, options))


_CI_OPTION = Argument(
    "--ci",
    ValueKind("FILE", make_argument_type(products.parse_ci_file)),
    "write a report for CI: FILE.xml is JUnit XML with a test case for each condition of --fail-if, FILE.md a"
    " short report in Markdown, for a pull request, say; xml=FILE and md=FILE name the format of any file (-"
    " is standard output); may be repeated",
    [],
    "none",
    repeated=True,
)


def list_report_file_options() -> list[Argument]:
    """Return the options; ``--force`` has to be there too."""
    return [
        Argument(
            products.format_option(name),
            FILE,
            f"{what}; - is standard output, in place of the text report",
            default_text="none",
        )
        for name, what in products.FORMAT_FILES.items()
    ] + [_CI_OPTION]


@dataclass(frozen=True, kw_only=True)
class ReportFilesAsked(Asked):
    """Which files of a report are wanted."""

    json: Path | None
    html: Path | None
    ci: Sequence[tuple[str, Path]]
    force: bool
    resume: bool = False


def choose_report_files(asked: ReportFilesAsked) -> ReportFiles:
    """Return what was asked for; what an interrupted call has written is replaced by one that goes on."""
    given = ((name, getattr(asked, name)) for name in products.FORMAT_FILES)
    force = asked.force or asked.resume
    return ReportFiles((*((name, path) for name, path in given if path), *asked.ci), force)


# -- --json of lists -------------------------------------------------------------------------------


#: The option of a sub-command that has ``--force``.
JSON_OPTION = Argument(
    "--json",
    FILE,
    "write the same as JSON to FILE; - is standard output, in place of the text",
    default_text="none",
)

#: The option, and ``--force``.
JSON_OPTIONS = (JSON_OPTION, FORCE_OPTION)


@dataclass(frozen=True, kw_only=True)
class JsonAsked(Asked):
    """Whether JSON is wanted of a list."""

    json: Path | None
    force: bool


@dataclass(frozen=True, kw_only=True)
class PrintedAsked(JsonAsked):
    """In which format a product is printed."""

    format: str


def check_json_output(asked: JsonAsked) -> None:
    """Raise UsageError for a file that cannot be written; to be called before anything is done."""
    if asked.json is not None:
        output_file.check_output(asked.json, force=asked.force)


def is_json_alone(asked: JsonAsked) -> bool:
    """Whether standard output is for JSON, and for nothing else."""
    return asked.json is not None and output_file.is_standard_output_name(asked.json)


def write_product(
    asked: PrintedAsked,
    product: Product,
    found: object,
    fit_view: Callable[[View, TextIO], View] = lambda view, _: view,
) -> None:
    """Print a product in the format that was asked for, and write its JSON, as far as these are wanted."""
    if not is_json_alone(asked):
        with output_file.open_standard_output(printable.choose_cleaner(asked.format)) as out:
            view = fit_view(output_file.make_view(out, verbose=asked.verbose), out)
            out.writelines(products.make_product_parts(product, asked.format, found, view))
    if asked.json:
        write_json_output(asked, products.make_product_parts(product, "json", found))


def write_json_output(asked: JsonAsked, made: JsonHead | Iterable[str]) -> None:
    """Write a record, or its text in parts, into the file that was asked for, if any; raises UsageError."""
    if asked.json is None:
        return
    from ssbench.base.record import JsonHead, iterate_json

    done = output_file.log_written
    with output_file.open_output(asked.json, "json", force=asked.force, done=done) as out:
        out.writelines(iterate_json(made) if isinstance(made, JsonHead) else made)
