"""``ssbench-master check-scenario``: what a scenario file would do."""

from __future__ import annotations

import argparse

from ssbench.cli.options import completes
from ssbench.cli.output_file import standard_output
from ssbench.errors import ExitCode

EXAMPLE = "ssbench-master check-scenario my.yaml"

DESCRIPTION = (
    "Say in words what a scenario would do: operations by kind, bytes to upload first, containers, whether"
    " objects run out, and a guess at the time. Nothing is sent. All faults of a file are reported at once,"
    " with exit code 2."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    file = parser.add_argument(
        "scenario_file", metavar="FILE", help="a scenario in YAML or JSON, or the name of a shipped one"
    )
    completes(file, "scenarios")


def run(arguments: argparse.Namespace) -> ExitCode:
    """Print what it would do; raises ScenarioError."""
    from ssbench.printable import printable
    from ssbench.scenario.outlook import outlook
    from ssbench.scenario.reading import load

    scenario = load(arguments.scenario_file)
    with standard_output() as out:
        out.writelines(f"{printable(line)}\n" for line in outlook(scenario))
    return ExitCode.OK
