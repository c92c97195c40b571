"""Options from the environment and from files, for whatever the command line does not say.

The command line wins over the environment (``SSBENCH_WORKERS``), that over ``ssbench.toml`` (or the table
``tool.ssbench`` of ``pyproject.toml``) in the current folder, that over the user's own ``ssbench.toml``. A
file in the current folder may be somebody else's, as in a clone: it sets what :data:`_OPTIONS_OF_ANY_FILE`
has. ``doc/configuration.rst`` is for users.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssbench.base.errors import UsageError, did_you_mean
from ssbench.base.untrusted import TooMuchError, read_small_file
from ssbench.cli.parser import (
    Origin,
    Parser,
    PresetValues,
    ValueSource,
    spell_option,
    suggest_options,
    suggest_replacement,
)

_log = logging.getLogger(__name__)

#: Names a file to read instead of all others; an empty value: none.
CONFIG_VARIABLE = "SSBENCH_CONFIG"
VARIABLE_PREFIX = "SSBENCH_"

SETTINGS_FILE_NAME = "ssbench.toml"
_PROJECT_FILE_NAME = "pyproject.toml"

#: Options that are for one call, by their fields: ``to`` is that of ``compare``, which names runs.
_FIELDS_NOT_SETTABLE = {"at", "help", "help_all", "to", "version"}

#: Options that a file in the current folder may set: they say what is measured, how, and what is shown. All
#: others are the user's own to set: they write or overwrite files, choose where data and the token go, open
#: ports, read what is sent elsewhere, delete more, or say less (``quiet``).
_OPTIONS_OF_ANY_FILE = {
    "accounts", "batch-size", "block-size", "compare", "compare-logs", "concurrency",
    "connect-timeout", "container-count", "csv", "delete-after", "detect", "devices", "duration",
    "end-with-stdin", "expect-workers", "fail", "fail-if", "find", "format",
    "give-up-after", "holds", "hosts", "idle-exit", "keep-objects", "label", "local-swift", "log-format",
    "minutes", "network-timeout", "no-default-report", "noise",
    "noop", "number", "object-servers", "op-count", "operations", "part", "pause", "pctile", "phases",
    "policy", "prepared", "progress", "proxies", "rate", "repeat", "replicas", "report",
    "resume", "retries", "ring", "rounds", "run-seconds", "runs",
    "sample", "scale", "scenario", "scenario-file", "seed", "set", "sides", "site", "sizes", "slow",
    "sweep", "swift-logs", "transaction", "trend", "undecided", "until",
    "user-count", "verbose", "verify", "warmup", "workers",
}  # fmt: skip

#: Of those, what such a file may only turn on or off: their values are programs.
_SWITCHES_OF_ANY_FILE = {"local-swift"}

#: How the help of an option begins that has none, or no effect.
_IGNORED_HELP = (argparse.SUPPRESS, "ignored")

#: Of these, one makes the other meaningless. That which is given nearer to the command line holds.
_EXCLUSIVE_OPTIONS = (("run-seconds", "op-count"), ("stats-file", "results-dir"))

#: Their variables are older than this module, and read where they are used.
_OPTIONS_READ_ELSEWHERE = {"results-dir", "zmq-key"}

#: Bytes of the largest file that is read.
_MAX_BYTES = 1 << 20

#: Dots of a line: tomllib takes time by the square of the parts of a dotted key.
_MAX_DOTS = 500

_TRUE_WORDS, _FALSE_WORDS = {"true", "1", "yes", "on"}, {"false", "0", "no", "off", ""}

#: A variable is a mistyped one when its name is so much like another one's.
_MISTYPED_LIKENESS = 0.85

Parsers = Callable[[], Mapping[str, Parser]]


@dataclass(frozen=True, slots=True)
class Setting:
    """A value for an option, and where it is from."""

    value: Any  # a text of the environment, or a value of TOML
    source: str
    rank: int  # higher the nearer ``source`` is to the command line


@dataclass(frozen=True, slots=True)
class _SettingsFile:
    path: Path
    content: Mapping[str, Any]
    rank: int
    is_own: bool = True


def list_settable_options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Return the options of a sub-command that can be set, by their names without hyphens before them.

    Those of authentication are not among them: they have variables of their own, and clouds.yaml.
    """
    found = {}
    for action in parser._actions:
        long = [each for each in action.option_strings if each.startswith("--")]
        if (
            long
            and not (action.help or "").startswith(_IGNORED_HELP)
            and action.dest not in _FIELDS_NOT_SETTABLE
        ):
            found[long[0][2:]] = action
    return found


def format_variable_name(name: str) -> str:
    """Return the name of an option's variable."""
    return VARIABLE_PREFIX + name.upper().replace("-", "_")


def find_settings(
    command: str, parser: argparse.ArgumentParser, parsers: Parsers, environ: Mapping[str, str]
) -> dict[str, Setting]:
    """Return what is set for a sub-command, by the names of options; raises UsageError for what is wrong.

    ``parsers`` returns those of all sub-commands, to tell an option of another one from none at all.
    """
    known = list_settable_options(parser)
    found: dict[str, Setting] = {}
    for file in _find_files(environ):
        refused = []
        for where, table in _find_tables(file, command, parsers):
            for key, value in table.items():
                name = key.replace("_", "-")
                if name in known:
                    found[name] = Setting(value, f"{file.path}{where}", file.rank)
                    is_program = name in _SWITCHES_OF_ANY_FILE and not isinstance(value, bool)
                    if not file.is_own and (name not in _OPTIONS_OF_ANY_FILE or is_program):
                        refused.append(name)
                elif where or not any(name in list_settable_options(each) for each in parsers().values()):
                    raise UsageError(f"{file.path}{where}: {_describe_unknown(key, where, known, parsers)}")
        if refused:
            raise UsageError(
                f"{file.path}: a file in the current folder cannot set {', '.join(sorted({*refused}))};"
                f" your own file ({_find_own_file(environ)}), a variable or the command line can, or"
                f" {CONFIG_VARIABLE}={file.path} takes this file for your own"
            )
    for name in known:
        if (text := environ.get(format_variable_name(name))) is not None:
            found[name] = Setting(text, format_variable_name(name), 9)
    return found


def _find_tables(file: _SettingsFile, command: str, parsers: Parsers) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the settings for all sub-commands, then those for this one: (words for where, settings)."""
    common = {key: value for key, value in file.content.items() if not isinstance(value, dict)}
    yield "", common
    for key, value in file.content.items():
        if not isinstance(value, dict):
            continue
        name = key.replace("_", "-")
        if name == command:
            yield f" [{key}]", value
        elif name not in parsers():
            raise UsageError(f"{file.path}: [{key}] is not a sub-command{did_you_mean(name, parsers())}")


def _describe_unknown(key: str, where: str, known: Mapping[str, object], parsers: Parsers) -> str:
    """Say that a key is no option, and what was meant."""
    name = key.replace("_", "-")
    names = (
        set(known) if where else {name for each in parsers().values() for name in list_settable_options(each)}
    )
    actions = [each._option_string_actions.get(f"--{name}") for each in parsers().values()]
    if any(action is not None and action.dest.startswith("auth_") for action in actions):
        return f"{key} cannot be set here; authentication has variables of its own (doc/authentication.rst)"
    if any(action is not None and action.dest in _FIELDS_NOT_SETTABLE for action in actions):
        return f"{key} cannot be set here; it is for one call, on the command line"
    meant = _write_as_setting(suggest_options(name, [f"--{each}" for each in sorted(names)]))
    return f"{key} is not an option{' of this sub-command' if where else ''}{meant}"


def _write_as_setting(hint: str) -> str:
    """Return a hint with an option as a file has it, ``set = "think_time=10ms"`` for ``--set ...``."""
    found = re.match(r"; write (-f|--[a-z-]+) (\S+|'.*') instead\Z", hint)
    if found is None:
        return hint.replace("--", "")
    name = "scenario-file" if found[1] == "-f" else found[1][2:]
    value = f'"{found[2].strip(chr(39))}"'
    return f"; write {name} = {f'[{value}]' if name == 'set' else value} instead"


def _find_files(environ: Mapping[str, str]) -> Iterator[_SettingsFile]:
    """Yield the files that are there, the user's own first."""
    if (named := environ.get(CONFIG_VARIABLE)) is not None:
        if named:
            yield _SettingsFile(Path(named), _read_settings(Path(named)), 2)
        return
    if (path := _find_own_file(environ)) is not None and _is_there(path):
        yield _SettingsFile(path, _read_settings(path), 1)
    if _is_there(path := Path(SETTINGS_FILE_NAME)):
        if _is_trusted(path):
            yield _SettingsFile(path, _read_settings(path), 2, is_own=False)
    elif _is_there(path := Path(_PROJECT_FILE_NAME)) and _has_table(path) and _is_trusted(path):
        yield _SettingsFile(path, _read_settings(path), 2, is_own=False)


def _find_own_file(environ: Mapping[str, str]) -> Path | None:
    """Return where the user's own file is, or would be; None without a home."""
    own, home = environ.get("XDG_CONFIG_HOME", ""), environ.get("HOME", "")
    folder = Path(own) if own.startswith("/") else Path(home) / ".config"
    return folder / "ssbench" / SETTINGS_FILE_NAME if folder.is_absolute() else None


def _is_there(path: Path) -> bool:
    """Whether a file is there; warn where that is not known, as in the home of another user."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        _log.warning("%s is ignored: %s", path, error.strerror)
        return False


def _has_table(path: Path) -> bool:
    """Whether settings are in a file."""
    try:
        with path.open("rb") as file:
            return b"tool.ssbench" in file.read(_MAX_BYTES)
    except OSError:
        return False


def _is_own(path: Path) -> bool:
    """Whether only the user, or root, can have written a file that happens to be in the current folder."""
    users = {0, os.geteuid()}
    return path.lstat().st_uid in users and path.stat().st_uid in users and not path.stat().st_mode & 0o002


def _is_trusted(path: Path) -> bool:
    """Whether a file is the user's own; warn where it is not."""
    if _is_own(path):
        return True
    _log.warning("%s is ignored: others own it or may write to it (%s=FILE reads it)", path, CONFIG_VARIABLE)
    return False


def _read_settings(path: Path) -> dict[str, Any]:
    """Return the settings of a file; raises UsageError where it cannot be read."""
    read = _parse_file(path)
    if path.name != _PROJECT_FILE_NAME:
        return read
    tools = read.get("tool", {})
    content = tools.get("ssbench", {}) if isinstance(tools, dict) else {}
    if not isinstance(content, dict):
        raise UsageError(f"{path}: tool.ssbench is not a table")
    return content


def _parse_file(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        text = read_small_file(path, _MAX_BYTES).decode()
        if any(line.count(".") > _MAX_DOTS for line in text.split("\n")):
            raise TooMuchError(f"a line with more than {_MAX_DOTS} dots")
        return tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except TooMuchError as error:
        raise UsageError(f"{path}: {error}") from None
    except RecursionError:
        raise UsageError(f"{path}: is nested too deeply") from None
    except ValueError as error:  # also text that is not UTF-8
        raise UsageError(f"{path}: is not TOML: {error}") from None


def apply_settings(parser: Parser, found: Mapping[str, Setting]) -> None:
    """Let what is set be the defaults of a parser; raises UsageError for a wrong value."""
    known = list_settable_options(parser)
    for name, setting in sorted(found.items(), key=lambda item: item[1].rank):
        action = known[name]
        if name in _OPTIONS_READ_ELSEWHERE and setting.source == format_variable_name(name):
            continue
        try:
            value = _convert_value(parser, action, setting.value)
        except (argparse.ArgumentError, argparse.ArgumentTypeError, ValueError) as error:
            text = error.message if isinstance(error, argparse.ArgumentError) else str(error)
            what = (
                setting.source
                if setting.source == format_variable_name(name)
                else f"{setting.source}: {name}"
            )
            raise UsageError(f"{what}: {text}") from None
        origin = Origin.VARIABLE if setting.source.startswith(VARIABLE_PREFIX) else Origin.FILE
        words = () if value == parser.builtin(action) else _spell_setting(action, setting.value, value)
        parser.preset(action, value, setting.rank, ValueSource(origin, setting.source, words=words))
        action.required = False
    parser.alternatives = tuple(
        tuple(known[name] for name in names if name in known) for names in _EXCLUSIVE_OPTIONS
    )


def _convert_value(parser: Parser, action: argparse.Action, value: Any) -> Any:
    """Return a value of TOML or of the environment as the command line would give it."""
    if action.nargs == 0:
        text = str(value).strip().lower()
        if text not in _TRUE_WORDS | _FALSE_WORDS:
            raise ValueError(f"{value!r} is not true or false")
        return action.const if text in _TRUE_WORDS else parser.builtin(action)
    if action.nargs == "?" and (text := str(value).strip().lower()) in _TRUE_WORDS | _FALSE_WORDS:
        return action.const if text in _TRUE_WORDS else parser.builtin(action)
    several = isinstance(action, argparse._AppendAction)
    if action.nargs not in {None, "?"} or several:
        if isinstance(value, str):
            texts = [value] if action.nargs is None else shlex.split(value)
        else:
            texts = [_format_value(each) for each in (value if isinstance(value, list) else [value])]
        if isinstance(action.nargs, int) and len(texts) != action.nargs:
            raise ValueError(f"{action.nargs} values are expected, not {len(texts)}")
        values = [_convert_one(parser, action, text) for text in texts]
        if isinstance(action, argparse._ExtendAction) and action.nargs is None:
            values = [each for group in values for each in group]
        return PresetValues(values)
    return _convert_one(parser, action, _format_value(value))


def _spell_setting(action: argparse.Action, given: Any, value: Any) -> tuple[str, ...]:
    """Return the words of a command line that set an option to what a file or a variable has."""
    if value is action.const and value is not None:
        return spell_option(action, [""])
    texts = [str(each) for each in (given if isinstance(given, list) else [given])]
    if isinstance(action, argparse._AppendAction):
        return tuple(word for text in texts for word in spell_option(action, [text]))
    return spell_option(action, texts)


def _convert_one(parser: Parser, action: argparse.Action, text: str) -> Any:
    value = parser._get_value(action, text)
    parser._check_value(action, value)
    return value


def _format_value(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is not a text or a number")
    return str(value)


def describe_mistyped(parsers: Parsers, environ: Mapping[str, str]) -> list[str]:
    """Say which variables are probably mistyped."""
    names = [name for name in environ if name.startswith(VARIABLE_PREFIX) and name != CONFIG_VARIABLE]
    if not names:
        return []
    from difflib import SequenceMatcher

    known = {
        format_variable_name(name) for each in parsers().values() for name in list_settable_options(each)
    }
    options = {flag for each in parsers().values() for flag in each._option_string_actions}
    found = []
    for name in sorted({*names} - known):
        option = name.removeprefix(VARIABLE_PREFIX).lower().replace("_", "-")
        meant = suggest_replacement(option, options)
        if meant or any(
            SequenceMatcher(None, name[8:], each[8:]).ratio() >= _MISTYPED_LIKENESS for each in known
        ):
            found.append(f"{name} is not known{meant or did_you_mean(name, known)}")
    return found


def log_settings_files(sources: Mapping[str, ValueSource]) -> None:
    """Say which files set options of this call, and which ones."""
    by_file: dict[str, list[str]] = {}
    for field, source in sources.items():
        if source.origin is Origin.FILE:
            by_file.setdefault(source.where, []).append(field.replace("_", "-"))
    for where, names in by_file.items():
        _log.info("Settings of %s: %s", where, ", ".join(sorted(names)))


def use_settings(command: str, parser: Parser, parsers: Parsers, argv: Sequence[str]) -> None:
    """Find and apply what is set for a sub-command; raises UsageError, but not where help is asked for."""
    try:
        apply_settings(parser, find_settings(command, parser, parsers, os.environ))
    except UsageError:
        if not {"-h", "--help", "--help-all"} & set(argv):
            raise


def describe_option_sources(sources: Mapping[str, ValueSource], message: str) -> str:
    """Return where the options that an error message names are set, to come after it; empty where nowhere."""
    found = []
    for field, source in sources.items():
        name = re.escape(field).replace("_", "[-_]")
        if source.where and re.search(rf"--{name}(?![\w-])|^{name}: ", message):
            found.append(f"--{field.replace('_', '-')} is set by {source.where}")
    if not found:
        return ""
    return f" ({'; '.join(found)}; the command line, or SSBENCH_CONFIG= for no file, overrides that)"
