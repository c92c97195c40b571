"""``ssbench-master completion``: what makes a shell complete sub-commands, options and file names."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from ssbench.cli.output_file import standard_output
from ssbench.errors import ExitCode

EXAMPLE = "ssbench-master completion bash > ~/.local/share/bash-completion/completions/ssbench-master"

DESCRIPTION = (
    "Print a script that completes the commands and options of ssbench-master, or of ssbench-worker. For bash"
    " write it to ~/.local/share/bash-completion/completions/PROGRAM, for zsh to a file _PROGRAM in a folder"
    " of $fpath, for fish to ~/.config/fish/completions/PROGRAM.fish."
)

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    parser.add_argument("--worker", action="store_true", help="the script for ssbench-worker")


def run(arguments: argparse.Namespace) -> ExitCode:
    """Print the script."""
    with standard_output() as out:
        out.write(script(arguments.shell, worker=arguments.worker))
        out.write("\n")
    return ExitCode.OK


def script(shell: str, *, worker: bool = False) -> str:
    """Return the script for a shell, made of the parser itself, so that it never misses an option."""
    import shtab

    from ssbench.cli import master
    from ssbench.cli import worker as worker_program

    parser = worker_program.parser() if worker else master.parser(list(master.COMMANDS))
    for action in _actions(parser):
        if action.type is Path or action.metavar in {"FILE", "LOG"}:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar == "DIR":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    text: str = shtab.complete(parser, shell)
    return text


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
