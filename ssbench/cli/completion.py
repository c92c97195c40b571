"""``ssbench-master completion``: what makes a shell complete sub-commands, options and values."""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from ssbench.base.errors import ExitCode, UsageError
from ssbench.cli.asked import Asked
from ssbench.cli.output_file import open_standard_output
from ssbench.cli.parser import COMPLETION_ATTRIBUTE

EXAMPLE = "ssbench-master completion bash > ~/.local/share/bash-completion/completions/ssbench-master"

DESCRIPTION = (
    "Print a script that completes the commands and options of ssbench-master, names of scenarios, last and"
    " @LABEL, or those of ssbench-worker. For bash write it to"
    " ~/.local/share/bash-completion/completions/PROGRAM, for zsh to a file _PROGRAM in a folder of $fpath,"
    " for fish to ~/.config/fish/completions/PROGRAM.fish."
)

SHELLS = ("bash", "zsh", "fish")

#: What the scripts ask this program for, with the words that each is.
_WORD_KINDS = ("scenarios", "runs", "labels")

#: Kinds of values that may be a file instead.
_KINDS_OR_FILES = ("scenarios", "runs")

#: In bash a word would end before an @.
_BASH_FUNCTION = """\
COMP_WORDBREAKS=${{COMP_WORDBREAKS//@}}
_ssbench_{kind}() {{
  compgen -W "$(ssbench-master completion --words {kind} 2>/dev/null)" -- "$1"
  {files}
}}
"""
_ZSH_FUNCTION = """\
_ssbench_{kind}() {{
  compadd -- ${{(f)"$(ssbench-master completion --words {kind} 2>/dev/null)"}}
  {files}
}}
"""
_FISH_WORDS = "(ssbench-master completion --words {kind} 2>/dev/null{files})"


@dataclass(frozen=True, kw_only=True)
class CompletionAsked(Asked):
    """What the command is asked."""

    shell: str | None
    worker: bool
    words: str | None


ASKED = CompletionAsked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument("shell", choices=SHELLS, nargs="?", metavar="SHELL", help=", ".join(SHELLS))
    parser.add_argument("--worker", action="store_true", help="the script for ssbench-worker")
    parser.add_argument("--words", choices=_WORD_KINDS, help=argparse.SUPPRESS)


def run(asked: CompletionAsked) -> ExitCode:
    """Print the script; raises UsageError without a shell."""
    if asked.words:
        made = "".join(f"{word}\n" for word in list_completion_words(asked.words))
    elif asked.shell is not None:
        made = make_completion_script(asked.shell, worker=asked.worker) + "\n"
    else:
        raise UsageError(f"which shell: {', '.join(SHELLS)}?")
    with open_standard_output() as out:
        out.write(made)
    return ExitCode.OK


def list_completion_words(kind: str) -> list[str]:
    """Return what a value of that kind may be."""
    if kind == "scenarios":
        from ssbench.scenario.scenario_files import list_shipped_scenarios

        return [name for name, _ in list_shipped_scenarios()]
    labels = _list_labels()
    return labels if kind == "labels" else ["last", "last-1", *(f"@{label}" for label in labels)]


def _list_labels() -> list[str]:
    """Return the labels that the index of the folder of results has; a shell waits for them."""
    from ssbench.cli import archives
    from ssbench.comparison.archive import INDEX_FILE
    from ssbench.run.folders import results_folder

    found: list[str] = []
    with suppress(sqlite3.Error, OSError, UsageError):
        folder = archives.choose_folder(None) or results_folder()
        address = f"{(folder / INDEX_FILE).absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=1.0)) as index:
            found = [
                str(label)
                for (label,) in index.execute(
                    "SELECT DISTINCT label FROM runs WHERE label IS NOT NULL ORDER BY label"
                )
            ]
    # A word with a blank, or with a character of the shell's own, is left to the user.
    return [label for label in found if label and all(each.isalnum() or each in "._+-" for each in label)]


def make_completion_script(shell: str, *, worker: bool = False) -> str:
    """Return the script for a shell, made of the parser itself, so that it never misses an option."""
    import shtab

    from ssbench.cli import master, worker_options

    parser = worker_options.parser() if worker else master.parser(list(master.COMMANDS))
    helps = _list_auth_helps()
    for action in _list_actions(parser):
        if action.help == argparse.SUPPRESS:
            action.help = helps.get(action.dest, action.help)
        if (kind := getattr(action, COMPLETION_ATTRIBUTE, None)) is not None:
            action.complete = _make_completer(kind)  # type: ignore[attr-defined]
        elif action.type is Path or action.metavar in {"FILE", "LOG"}:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar == "DIR":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    text: str = shtab.complete(parser, shell)
    return text


def _make_completer(kind: str) -> dict[str, object]:
    """Return what shtab takes for a kind of values, by shell."""
    files = kind in _KINDS_OR_FILES
    return {
        "bash": f"_ssbench_{kind}",
        "zsh": f"_ssbench_{kind}",
        "fish": _FISH_WORDS.format(
            kind=kind, files="; __fish_complete_path (commandline -ct)" if files else ""
        ),
        "preamble": {
            "bash": _BASH_FUNCTION.format(kind=kind, files='compgen -f -- "$1"' if files else ":"),
            "zsh": _ZSH_FUNCTION.format(kind=kind, files="_files" if files else ":"),
        },
    }


def _list_auth_helps() -> dict[str, str]:
    """Return the help of each option of authentication, which the help of a sub-command leaves out."""
    from ssbench.cli import auth_options

    page = argparse.ArgumentParser(add_help=False)
    auth_options.add_auth_arguments(page, in_help=True)
    return {action.dest: str(action.help) for action in page._actions}


def _list_actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _list_actions(command)
