"""The scenario of a sub-command: FILE, or ``-f FILE`` as ``run-scenario`` has it."""

from __future__ import annotations

import argparse

from ssbench.cli.parser import completes
from ssbench.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add both ways to name it; see :func:`chosen`."""
    file = parser.add_argument(
        "file", nargs="?", metavar="FILE", help="a scenario in YAML or JSON, or the name of a shipped one"
    )
    completes(file, "scenarios")
    option = parser.add_argument(
        "-f", "--scenario-file", metavar="FILE", help="the same, as run-scenario has it"
    )
    completes(option, "scenarios")


def chosen(arguments: argparse.Namespace) -> str:
    """Return the scenario that was named; raises UsageError where it is not one."""
    given: list[str] = [each for each in (arguments.file, arguments.scenario_file) if each is not None]
    if len(given) == 2 and "scenario_file" not in arguments.given:
        given.pop()  # of a file or a variable: what the command line names wins
    if len(given) != 1:
        raise UsageError(
            "a scenario is given twice, as FILE and with -f; one is expected"
            if given
            else "a scenario is expected: FILE (run-scenario --list-scenarios lists shipped ones)"
        )
    return given[0]
