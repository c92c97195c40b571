"""What the parsers of all programs share: types of values, and old spellings of options."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from ssbench import conditions, products, quantities
from ssbench.errors import ExitCode
from ssbench.gates import Undecided
from ssbench.products import Product
from ssbench.suggestions import did_you_mean

_Value = TypeVar("_Value")


#: The attribute of an argument that names the kind of its values, for :mod:`ssbench.cli.completion`.
COMPLETES = "completes"


def completes(action: argparse.Action, kind: str) -> None:
    """Let a shell complete the values of an argument: "scenarios", "runs" or "labels"."""
    setattr(action, COMPLETES, kind)


def add_scenario_file(parser: argparse.ArgumentParser) -> None:
    """Add the scenario as a positional argument."""
    file = parser.add_argument(
        "scenario_file", metavar="FILE", help="a scenario in YAML or JSON, or the name of a shipped one"
    )
    completes(file, "scenarios")


class Preset(list[Any]):
    """Values of an option that may be repeated, from a file or a variable; the command line replaces them."""


class _Append(argparse._AppendAction):
    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        if isinstance(getattr(namespace, self.dest, None), Preset):
            setattr(namespace, self.dest, [])
        super().__call__(parser, namespace, values, option_string)


class _Extend(_Append, argparse._ExtendAction):
    pass


class _HelpAll(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        parser.brief = ()
        parser.print_help()
        parser.exit()


class Parser(argparse.ArgumentParser):
    """An argument parser that also accepts underscores for hyphens in long options.

    Scripts for ssbench 0.x contain ``--zmq-results_port`` and ``--os_username``. The help shows the
    spelling with hyphens only, and begins with ``example``; where there are ``brief`` options it shows only
    these, and ``--help-all`` shows the rest. Abbreviated options are refused, because a new option could
    change their meaning; options and sub-commands that are like an unknown one are offered.

    Options that are set elsewhere are :meth:`preset`. ``alternatives`` are options of which one makes the
    other meaningless. After parsing, the attribute ``given`` of the namespace holds the names of what the
    command line has, and ``set_elsewhere`` the default and the source of each value that is preset.
    """

    def __init__(
        self, *args: Any, example: str | None = None, brief: Sequence[str] = (), **kwargs: Any
    ) -> None:
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)
        self.register("action", "append", _Append)
        self.register("action", "extend", _Extend)
        self.brief = brief
        self.alternatives: tuple[tuple[argparse.Action, ...], ...] = ()
        self.example = example
        self._given: set[str] = set()
        #: Of what is preset: the default that it replaces, and how near to the command line it is.
        self._preset: dict[argparse.Action, tuple[Any, int]] = {}
        self._sources: dict[argparse.Action, str] = {}
        if self.add_help:
            self.add_argument(
                "--help-all", action=_HelpAll, help="show all options" if brief else argparse.SUPPRESS
            )

    def preset(self, action: argparse.Action, value: Any, rank: int, source: str) -> None:
        """Let a value, which is already parsed, be what an option has that is not given."""
        self._preset[action] = action.default, rank
        self._sources[action] = source
        for each in self._actions:  # several may be for one value, as --progress and --live
            if each.dest == action.dest and each.default != argparse.SUPPRESS:
                each.default = value

    def builtin(self, action: argparse.Action) -> Any:
        """Return the default of an option that is not preset."""
        return self._preset.get(action, (action.default, 0))[0]

    def add_opposites(self) -> None:
        """Add ``--no-verify`` for ``--verify``, and so on, which the help does not show."""
        for action in list(self._actions):
            flag = next((each for each in action.option_strings if each.startswith("--")), "")
            if not isinstance(action, argparse._StoreTrueAction | argparse._StoreFalseAction) or not flag:
                continue
            opposite = f"--{flag[5:]}" if flag.startswith("--no-") else f"--no-{flag[2:]}"
            if opposite not in self._option_string_actions and action.help != argparse.SUPPRESS:
                self.add_argument(
                    opposite,
                    dest=action.dest,
                    action="store_const",
                    const=not action.const,
                    default=argparse.SUPPRESS,
                    help=argparse.SUPPRESS,
                )

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        if action.option_strings:
            self._given.add(action.dest)
        return super()._get_values(action, arg_strings)

    def parse_known_args(  # type: ignore[override]  # any namespace is an argparse.Namespace here
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse; see :class:`argparse.ArgumentParser`."""
        self._given = set()
        found, rest = super().parse_known_args(args, namespace)
        if not hasattr(found, "given"):  # a sub-command's parser has said it already
            found.given = frozenset(self._given)
            found.set_elsewhere = {
                action.dest: (default, self._sources[action])
                for action, (default, _) in self._preset.items()
                if action.dest not in self._given
            }
        together = [group._group_actions for group in self._mutually_exclusive_groups]
        for group in (*together, *self.alternatives):
            ranks = {each: self._rank(each) for each in group}
            for action, rank in ranks.items():
                if action in self._preset and rank < max(ranks.values()):
                    setattr(found, action.dest, self.builtin(action))
        return found, rest

    def _rank(self, action: argparse.Action) -> int:
        """Return how near to the command line the value of an option is; 0 for its default."""
        return 10 if action.dest in self._given else self._preset.get(action, (None, 0))[1]

    def format_help(self) -> str:
        """Return the help, with the example before the usage."""
        text = self._format_brief() if self.brief else super().format_help()
        return f"example: {self.example}\n\n{text}" if self.example else text

    def _format_brief(self) -> str:
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        formatter.start_section("the options that people use most")
        formatter.add_arguments([self._option_string_actions[flag] for flag in self.brief])
        formatter.end_section()
        count = sum(action.help != argparse.SUPPRESS for action in self._actions)
        formatter.add_text(f"All {count} options: {self.prog} --help-all")
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def error(self, message: str) -> NoReturn:
        """Exit with one line, without the usage, which can be forty lines."""
        self.exit(ExitCode.USAGE, f"{self.prog}: error: {message} (see '{self.prog} --help')\n")

    def _get_option_tuples(self, option_string: str) -> list[Any]:
        return []

    def _parse_optional(self, arg_string: str) -> Any:
        if arg_string.startswith("--") and "_" in arg_string:
            name, equals, value = arg_string.partition("=")
            arg_string = name.replace("_", "-") + equals + value
        self._refuse_unknown(arg_string)
        return super()._parse_optional(arg_string)

    def _refuse_unknown(self, argument: str) -> None:
        """End with the options that were meant, before argparse complains that those are missing."""
        name = argument.partition("=")[0]
        known = self._option_string_actions
        if not name.startswith("--") or name == "--" or " " in name or name in known:
            return
        if self._subparsers is None:  # a parser with sub-commands is shown their options as well
            self.error(f"unrecognized arguments: {name}{did_you_mean(name, known)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = action.choices
        if choices is not None and value not in choices:
            names = [str(choice) for choice in choices]
            raise argparse.ArgumentError(
                action,
                f"{value!r} is not one of {', '.join(names)}{did_you_mean(str(value), names)}",
            )


def _number(convert: Callable[[str], float], low: float, high: float, expected: str) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            value = convert(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")
        return value

    return parse


def parsed(parse: Callable[[str], _Value]) -> Callable[[str], _Value]:
    """Return a type of values whose error is what the ValueError of ``parse`` says."""

    def checked(text: str) -> _Value:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return checked


positive_int = _number(int, 1, 2**62, "a whole number of 1 or more")
non_negative_int = _number(int, 0, 2**62, "a whole number of 0 or more")
seconds = _number(quantities.seconds, 1e-9, 1e9, f"a time above 0, {quantities.TIME_EXAMPLES}")
seconds_or_0 = _number(quantities.seconds, 0, 1e9, f"a time of 0 or more, {quantities.TIME_EXAMPLES}")
size = _number(quantities.size, 1, 2**62, f"a number of bytes, {quantities.SIZE_EXAMPLES}")
rate = _number(float, 1e-6, 1e7, "a number of operations a second above 0")
port = _number(int, 1, 65535, "a port number from 1 to 65535")
percentile = _number(float, 1, 100, "a percentile from 1 to 100")


#: The word for a time that is derived from the results.
AUTOMATIC = "auto"


def warm_up(text: str) -> float | str:
    """Parse a time of 0 or more, or ``auto``."""
    return text if text == AUTOMATIC else float(seconds_or_0(text))


def label(text: str) -> str:
    """Parse a word that names runs."""
    if not text or len(text) > 100 or not text.isprintable() or text != text.strip() or text.startswith("@"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a label: a printable text without @ before it")
    return text


def urls(text: str) -> list[str]:
    """Parse URLs with spaces between them: the value of a variable that a shell may not split, as zsh."""
    if not (found := text.split()):
        raise argparse.ArgumentTypeError("expected a URL, not an empty text")
    return found


def share(text: str) -> float:
    """Parse a percentage above 0 and below 100, as in 2% or 2, and return it as a share."""
    parsed: float = _number(float, 1e-6, 99.999999, "a percentage such as 2%")(text.strip().removesuffix("%"))
    return parsed / 100


def whole_seconds_or_0(text: str) -> int:
    """Parse a time that Swift takes, which knows no fractions."""
    value: float = seconds_or_0(text)
    if not value.is_integer():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of seconds")
    return int(value)


def percentiles(text: str) -> list[float]:
    """Parse percentiles with commas between them."""
    return [percentile(part) for part in text.split(",")]


def add_renamed(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup, name: str, old: str, **settings: Any
) -> None:
    """Add an option, and an ``old`` letter for it that scripts may use but the help does not show.

    A letter that the help shows means the same for every sub-command.
    """
    parser.add_argument(name, **settings)
    hidden = {**settings, "default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
    parser.add_argument(old, dest=name[2:].replace("-", "_"), **hidden)


def add_percentiles(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``--pctile``; see :func:`chosen_percentiles`."""
    parser.add_argument(
        "--pctile",
        type=percentiles,
        action="extend",
        metavar="N[,N...]",
        help="percentiles of latencies to report, from 1 to 100, as in 95,99.9; the first is that of the"
        " table (default: 95)",
    )


def add_report(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``--report`` and ``--csv``; see :func:`chosen_report`."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--report",
        choices=("both", "table", "summary", "full"),
        help="what to print: the table of ssbench 0.3.9, the summary, both, or full: the table, all sections"
        " and a longer summary (default: both; full with -v)",
    )
    choice.add_argument("--csv", action="store_true", help="print the report as CSV")


def chosen_report(arguments: argparse.Namespace) -> tuple[str, bool]:
    """Return the name of the report that was asked for, and whether its summary is to be long."""
    if arguments.csv:
        return "csv", False
    name = arguments.report or ("full" if arguments.verbose else "both")
    return name, arguments.verbose or name == "full"


def add_fail_if(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``--fail-if``."""
    parser.add_argument(
        "--fail-if",
        type=parsed(partial(conditions.parse, grouped=True)),
        action="append",
        default=[],
        metavar="CONDITION",
        help="exit with code 5 where the figures of the run are so: 'read.p99 > 200ms', 'errors > 0.1%%',"
        " 'rate < 500', 'create.mb_per_s < 100'; see doc/reports.rst; may be repeated, and adds to those of"
        " the scenario (default: none)",
    )


def add_undecided(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``--undecided``; see :func:`chosen_undecided`."""
    parser.add_argument(
        "--undecided",
        choices=[each.value for each in Undecided],
        help="what a condition of --fail-if counts as where too few operations or runs leave it undecided:"
        " fail (exit code 5), pass (0), or report, which ends with exit code 6 (default: report)",
    )


def chosen_undecided(arguments: argparse.Namespace) -> Undecided:
    """Return what an undecided condition counts as."""
    return Undecided(arguments.undecided or Undecided.REPORT.value)


def chosen_percentiles(arguments: argparse.Namespace) -> tuple[float, tuple[float, ...]]:
    """Return the percentile of the table, and the others that were asked for."""
    first, *more = dict.fromkeys(arguments.pctile or [95.0])
    return first, tuple(more)


def add_force(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``--force`` for a sub-command that writes files."""
    parser.add_argument("--force", action="store_true", help="overwrite existing files")


def add_format(parser: argparse.ArgumentParser, product: Product) -> None:
    """Add ``--format`` with the formats of a product."""
    parser.add_argument(
        "--format",
        choices=products.names(product),
        default="text",
        help="how it is written (default: %(default)s)",
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add ``--output`` for a sub-command that writes one file."""
    add_renamed(
        parser,
        "--output",
        "-o",
        type=Path,
        default="-",
        metavar="FILE",
        help="file to write (default: standard output)",
    )
