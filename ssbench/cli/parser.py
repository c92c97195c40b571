"""The parser of the command line of all programs: old spellings, what is set elsewhere, the help.

It imports little, because ``--help`` needs no more; the types of values are in :mod:`ssbench.cli.options`.
"""

from __future__ import annotations

import argparse
import enum
import os
import re
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from ssbench.base.errors import ExitCode, did_you_mean, find_similar
from ssbench.base.printable import make_printable, make_printable_lines

#: The attribute of an argument that names the kind of its values, for :mod:`ssbench.cli.completion`.
COMPLETION_ATTRIBUTE = "completes"


class Origin(enum.Enum):
    """What a value is from."""

    DEFAULT = "default"
    FILE = "file"
    VARIABLE = "variable"
    LINE = "command line"
    SCENARIO = "scenario"  # an option does not fit it, and is left out


class ValueSource(NamedTuple):
    """Where the value of an option is from."""

    origin: Origin = Origin.DEFAULT
    where: str = ""  # the name of a file, with its table, or of a variable
    default: Any = None  # what the option is without that
    words: tuple[str, ...] = ()  # how a command line has the value, with its option; none: the default holds


def spell_option(action: argparse.Action, texts: Sequence[str]) -> tuple[str, ...]:
    """Return an option with its values as the words of a command line; ``[""]`` is none."""
    flag = action.option_strings[-1]
    if action.nargs == 0 or (action.nargs == "?" and [*texts] == [""]):
        return (flag,)
    if action.nargs == "?" or (len(texts) == 1 and texts[0].startswith("-")):
        return (f"{flag}={texts[0]}",)
    return (flag, *texts)


def set_completion_kind(action: argparse.Action, kind: str) -> None:
    """Let a shell complete the values of an argument: "scenarios", "runs" or "labels"."""
    setattr(action, COMPLETION_ATTRIBUTE, kind)


#: What other programs (fio, k6, locust, swift-bench, warp, wrk) call options, and what is meant.
_OTHER_NAMES = {
    other: meant
    for others, meant in (
        ("time duration runtime run-time seconds timelimit", ("--run-seconds", "--duration")),
        (
            "users vus threads concurrency concurrent clients connections numjobs iodepth",
            ("--user-count", "--concurrency"),
        ),
        ("get-concurrency put-concurrency del-concurrency", ("--user-count",)),
        ("operations iterations requests ops count number totalops", ("--op-count", "--number")),
        ("output out output-file benchdata", ("--output", "--stats-file", "--json")),
        ("json summary-export", ("--json", "--format")),
        ("format output-format", ("--json", "--csv", "--ci")),
        ("rps qps arrival-rate rps-limit", ("--rate",)),
        ("threshold thresholds sla", ("--fail-if",)),
        ("containers buckets num-containers", ("--container-count",)),
        ("processes procs jobs", ("--workers",)),
        ("url host endpoint", ("--auth-url", "--storage-url", "--zmq-host")),
        ("cluster cluster-url auth", ("--auth-url",)),
        ("scenario file config", ("--scenario-file", "--stats-file")),
        (
            "-f scenario-file",
            ("--sizes and --operations (an envelope takes no scenario; run-scenario --find does)",),
        ),
        ("username", ("--user", "--os-username")),
        ("password", ("--key", "--os-password")),
        ("name tag", ("--label",)),
        ("obj-size obj.size obj.randsize object-size bs blocksize", ("-f size=4kB",)),
        ("get-distrib put-distrib stat-distrib delete-distrib s3rwmix rwmixpct", ("-f mix=get=9,put=1",)),
        ("warp-client hosts", ("--expect-workers",)),
        ("noclear", ("--keep-objects",)),
        ("autoterm", ("--until",)),
        ("rampup", ("--warmup",)),
        ("latency", ("--pctile",)),
        ("num-objects", ("-f objects=1000",)),
        ("-d -z", ("--run-seconds",)),
        ("-t", ("--run-seconds", "--workers")),
        ("-n -g -N", ("--op-count",)),
        ("-l", ("-f size=4kB",)),
        ("-C", ("--container-count",)),
        ("-P", ("--policy",)),
        ("-w -F", ("--phases",)),
        ("-T -j", ("--workers",)),
        ("-x", ("--keep-objects",)),
    )
    for other in others.split()
}

#: Options of before, by what says the same now.
_REPLACED_OPTIONS = {
    "metrics-port": "--metrics 9102",
    "metrics-push": "--metrics push+http://HOST:9091",
    "otlp": "--metrics otlp+http://HOST:4318",
    "statsd": "--metrics statsd://HOST:8125",
    "recon": "--observe http://HOST:6200",
    "recon-ring": "--observe DIR",
    "recon-interval": "--observe, which asks every 5 s",
    "statsd-listen": "--observe statsd:8125",
    "live": "--progress live",
    "web": "--metrics web",
    "web-open": "--metrics web, and open the URL that it logs,",
    "find-within": "--find 'read.p99 <= 50ms within 5%'",
    "existing-list": "--existing @FILE",
    "size": "-f 'size=4kB mix=put,get'",
    "mix": "-f 'size=4kB mix=put,get'",
    "objects": "-f 'size=4kB mix=put,get objects=1000'",
    "print-scenario": "'ssbench-master check-scenario --print SCENARIO'",
    "arrivals": "--set arrivals=poisson",
    "think-time": "--set think_time=10ms",
    "accounts": "--set accounts=4",
    "s3-payload": "--set s3_payload=chunked",
    "request-timeout": "--network-timeout, a third of it,",
    "no-trans-id-extra": "nothing",
    "retry-404": "RequestOptions(retry_404=5) in Python",
    "swift-set": "--swift-config FILE:SECTION:KEY=VALUE",
    "swift-filter": "--swift-config +NAME",
    "start-at": "--part 1/2@14:30",
    "allow-bodies": "--allow DIR",
    "allow-events": "--allow events",
    "list-scenarios": "'ssbench-master help scenarios'",
    "list-suites": "'ssbench-master help suites'",
    "max-errors": "--give-up-after '1% errors'",
    "worker-timeout": "--expect-workers N@SECONDS",
    "no-download": "PIP_NO_INDEX=1 UV_OFFLINE=1 before the command",
    "junit": "--ci FILE.xml",
    "summary-md": "--ci FILE.md",
    "isolate": "--versus 'without GROUP'",
}

#: What they have options for, and a scenario has keys.
_SCENARIO_KEYS = {
    **dict.fromkeys(("files", "nrfiles"), "initial_files"),
    "container-name": "container_base",
    **dict.fromkeys(("stages", "ramp-up", "ramp-time", "spawn-rate"), "stages"),
}

#: How like an option is that is offered. One that turns off checks has to be nearly the same, and of three
#: letters one may be wrong.
_LEAST_LIKENESS, _LEAST_LIKENESS_OF_UNSAFE, _LEAST_LIKENESS_OF_SHORT = 0.72, 0.9, 0.66
_UNSAFE_OPTIONS = ("--insecure",)


def suggest_replacement(name: str, known: Iterable[str]) -> str:
    """Return what to write for an option of before, to append to a message; empty where it never was one."""
    instead = _REPLACED_OPTIONS.get(name, "")
    return f"; write {instead} instead" if instead and _has_option(instead, {*known}) else ""


def _has_option(hint: str, known: Container[str]) -> bool:
    """Return whether a command has the option that a hint begins with, if it begins with one."""
    option = re.split("[ ,]", hint)[0]
    # Other commands have an -f that is no scenario, and files of settings have no letters.
    return not option.startswith("-") or ("--scenario-file" if option == "-f" else option) in known


def suggest_options(wrong: str, known: Iterable[str]) -> str:
    """Return what was meant by an unknown option, to append to a message; nothing where that is unknown."""
    known = {*known}
    names = {name.removeprefix("--"): name for name in sorted(known) if name.startswith("--")}
    word = wrong.removeprefix("--").lower() if wrong.startswith("--") else wrong
    if replacement := suggest_replacement(word, known):
        return replacement
    if (key := _SCENARIO_KEYS.get(word)) and "scenario-file" in names:
        return f"; the scenario has the key {key} for that (see doc/scenarios.rst)"
    if word == "local-swift" and word not in names:
        return "; 'ssbench-master local-swift' starts one for all commands"
    found = [name for name in _OTHER_NAMES.get(word, ()) if _has_option(name, known)]
    if not found:
        least = _LEAST_LIKENESS_OF_SHORT if len(word) <= len("csv") else _LEAST_LIKENESS
        found = [names[name] for name in find_similar(word, names, least)]
        if any(each in _UNSAFE_OPTIONS for each in found):
            sure = find_similar(word, names, _LEAST_LIKENESS_OF_UNSAFE)
            found = [each for each in found if each not in _UNSAFE_OPTIONS or each.removeprefix("--") in sure]
    if not found:  # --timeout is a part of several
        found = [name for each, name in names.items() if word in each.split("-")][:3]
    return f"; did you mean {' or '.join(found)}?" if found else ""


class _StoreOnce(argparse._StoreAction):
    """What stores a value where nothing else is said, so that a second one would replace the first unseen.

    Numbers, words of a list and options of a letter, which ssbench 0.3.9 has, may follow each other: scripts
    append them to a line of their own, and the last one counts.
    """

    def refuse_second(self, first: Any, second: Any) -> None:
        """Raise ArgumentError where a value cannot follow another one."""
        may_follow = self.choices or isinstance(second, int | float) or len(self.option_strings[0]) == 2
        if first != second and not may_follow:
            raise argparse.ArgumentError(self, "given twice with different values; give it once")


class ValueAfterEquals(argparse._StoreAction):
    """A flag that may have a value, given as ``--flag=VALUE`` alone: what follows ``--flag`` is no value.

    The constant is what the flag alone is.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "nargs": "?", "const": True})


class PresetValues(list[Any]):
    """Values of an option that may be repeated, from a file or a variable; the command line replaces them."""


class _Append(argparse._AppendAction):
    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        if isinstance(getattr(namespace, self.dest, None), PresetValues):
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

    ``other_names`` are what is meant by names that are like no sub-command.

    Options that are set elsewhere are :meth:`preset`. ``alternatives`` are options of which one makes the
    other meaningless. After parsing, the attribute ``sources`` of the namespace says where what is no default
    is from, by the names of attributes.
    """

    def __init__(
        self,
        *args: Any,
        example: str | None = None,
        brief: Sequence[str] = (),
        other_names: Mapping[str, str] = MappingProxyType({}),
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)
        self.register("action", None, _StoreOnce)
        self.register("action", "append", _Append)
        self.register("action", "extend", _Extend)
        self.brief = brief
        self.alternatives: tuple[tuple[argparse.Action, ...], ...] = ()
        self.example = example
        self.other_names = other_names
        #: The last value of each option of the command line, by its attribute.
        self._given: dict[str, Any] = {}
        #: The words of these: of all values, where each use adds one.
        self._words: dict[str, tuple[str, ...]] = {}
        #: Of what is preset: the default that it replaces, and how near to the command line it is.
        self._preset: dict[argparse.Action, tuple[Any, int]] = {}
        self._sources: dict[argparse.Action, ValueSource] = {}
        if self.add_help:
            self.add_argument(
                "--help-all", action=_HelpAll, help="show all options" if brief else argparse.SUPPRESS
            )

    def preset(self, action: argparse.Action, value: Any, rank: int, source: ValueSource) -> None:
        """Let a value, which is already parsed, be what an option has that is not given."""
        self._preset[action] = action.default, rank
        self._sources[action] = source
        action.default = value

    def builtin(self, action: argparse.Action) -> Any:
        """Return the default of an option that is not preset."""
        return self._preset.get(action, (action.default, 0))[0]

    def add_opposites(self) -> None:
        """Add ``--no-verify`` for ``--verify``, and so on, which the help does not show."""
        for action in list(self._actions):
            flag = next((each for each in action.option_strings if each.startswith("--")), "")
            flags = (argparse._StoreTrueAction, argparse._StoreFalseAction, ValueAfterEquals)
            if not isinstance(action, flags) or not flag:
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
        alone = isinstance(action, ValueAfterEquals) and arg_strings == [""]
        value = action.const if alone else super()._get_values(action, arg_strings)
        if action.option_strings:
            if isinstance(action, _StoreOnce):
                action.refuse_second(self._given.get(action.dest, value), value)
            self._given[action.dest] = value
            before = self._words.get(action.dest, ()) if isinstance(action, argparse._AppendAction) else ()
            self._words[action.dest] = before + spell_option(action, arg_strings)
        return value

    def parse_known_args(  # type: ignore[override]  # any namespace is an argparse.Namespace here
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse; see :class:`argparse.ArgumentParser`."""
        self._given, self._words = {}, {}
        args = self._separate_flags(sys.argv[1:] if args is None else args)
        found, rest = super().parse_known_args(args, namespace)
        if not hasattr(found, "sources"):  # a sub-command's parser has said it already
            found.sources = {
                action.dest: self._sources[action]._replace(default=default)
                for action, (default, _) in self._preset.items()
            } | {dest: ValueSource(Origin.LINE, words=words) for dest, words in self._words.items()}
        together = [group._group_actions for group in self._mutually_exclusive_groups]
        for group in (*together, *self.alternatives):
            ranks = {each: self._rank(each) for each in group}
            for action, rank in ranks.items():
                if action in self._preset and rank < max(ranks.values()):
                    setattr(found, action.dest, self.builtin(action))
        return found, rest

    def _separate_flags(self, args: Sequence[str]) -> list[str]:
        """Return arguments in which no flag takes the argument after it for its value."""
        known = self._option_string_actions
        end = args.index("--") if "--" in args else len(args)
        flags = {each: known.get(each.replace("_", "-")) for each in args[:end] if each.startswith("--")}
        alone = {each for each, action in flags.items() if isinstance(action, ValueAfterEquals)}
        return [*(f"{each}=" if each in alone else each for each in args[:end]), *args[end:]]

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

    def refuse_arguments(self, unknown: Sequence[str]) -> NoReturn:
        """Exit because of arguments that nothing takes."""
        meant = ""
        if "--scenario-file" in self._option_string_actions and not unknown[0].startswith("-"):
            meant = f"; did you mean -f {unknown[0]}?"
        self.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")

    def error(self, message: str) -> NoReturn:
        """Exit with one line, without the usage, which can be forty lines."""
        if message.startswith("the following arguments are required") and self.example:
            message += f", as in: {self.example}"
        said = make_printable(f"{self.prog}: error: {message} (see '{self.prog} --help')")
        self.exit(ExitCode.USAGE, f"{said}\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write at once, as argparse would not notice that a disk is full."""
        out = file or sys.stderr
        if not message or out is None:  # closed by the shell
            return
        try:
            out.write(make_printable_lines(message))
            out.flush()
        except OSError as error:
            # Otherwise the interpreter would try to flush it again at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
            if out is sys.stdout and not isinstance(error, BrokenPipeError):
                self.error(f"standard output: cannot be written: {error.strerror}")

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except argparse.ArgumentError as error:
            if "-r" in action.option_strings and "-R" in self._option_string_actions:
                error.message += "; -R leaves the report out, as -r did in ssbench 0.2.9"
            raise

    def _get_option_tuples(self, option_string: str) -> list[Any]:
        # Of one letter with its value: -r60. Beginnings of long names are no options, and what has a space is
        # the value of an option: --versus '-p silver'.
        is_letter = not option_string.startswith("--") and " " not in option_string
        return super()._get_option_tuples(option_string) if is_letter else []

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
        is_letter = len(name) == 2 and name[0] == "-" and name[1].isalpha()
        if not (is_letter or name.startswith("--")) or name == "--" or " " in name or name in known:
            return
        if self._subparsers is None:  # a parser with sub-commands is shown their options as well
            self.error(f"unrecognized arguments: {name}{suggest_options(name, known)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = action.choices
        if choices is not None and value not in choices:
            names = [str(choice) for choice in choices]
            raise argparse.ArgumentError(
                action,
                f"{value!r} is not one of {', '.join(names)}{self._suggest_choices(str(value), names)}",
            )

    def _suggest_choices(self, wrong: str, names: Iterable[str]) -> str:
        other = self.other_names.get(wrong)
        return f"; did you mean {other}?" if other else did_you_mean(wrong, names)
