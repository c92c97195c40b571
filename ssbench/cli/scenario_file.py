"""The scenario of a sub-command: FILE, or ``-f FILE`` as ``run-scenario`` has it."""

from __future__ import annotations

import argparse
from pathlib import Path

from ssbench.cli.options import choose_named_once
from ssbench.cli.parser import set_completion_kind


def add_scenario_arguments(parser: argparse.ArgumentParser) -> None:
    """Add both ways to name it; see :func:`choose_scenario_file`."""
    file = parser.add_argument(
        "file", nargs="?", metavar="FILE", help="a scenario in YAML or JSON, or the name of a shipped one"
    )
    set_completion_kind(file, "scenarios")
    option = parser.add_argument(
        "-f", "--scenario-file", metavar="FILE", help="the same, as run-scenario has it"
    )
    set_completion_kind(option, "scenarios")
    add_allow_bodies_option(parser)


def add_allow_bodies_option(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``--allow-bodies``."""
    parser.add_argument(
        "--allow-bodies",
        metavar="DIR",
        type=Path,
        action="append",
        default=[],
        help="allow body files from DIR as well as from the folder of the scenario (default: none); may be"
        " repeated",
    )


def choose_scenario_file(arguments: argparse.Namespace) -> str:
    """Return the scenario that was named; raises UsageError where it is not one."""
    return str(
        choose_named_once(
            arguments,
            "scenario_file",
            "a scenario is given twice, as FILE and with -f; one is expected",
            "a scenario is expected: FILE (run-scenario --list-scenarios lists shipped ones)",
        )
    )
