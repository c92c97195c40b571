"""``ssbench-master check-scenario``: what a scenario file would do."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from ssbench.base.errors import ExitCode
from ssbench.cli import options, output_file
from ssbench.cli.options import PrintedAsked, ScenarioFileAsked
from ssbench.reports.products import Product

EXAMPLE = "ssbench-master check-scenario my.yaml"

DESCRIPTION = (
    "Say in words what a scenario would do: operations by kind, bytes to upload first, containers, whether"
    " objects run out, and an estimate of the time. Nothing is sent. The first twenty faults of a file are"
    " reported at once, with exit code 2."
)


@dataclass(frozen=True, kw_only=True)
class CheckScenarioAsked(ScenarioFileAsked, PrintedAsked):
    """What the command is asked."""

    print: bool


ASKED = CheckScenarioAsked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    options.add_options(
        parser,
        *options.SCENARIO_ARGUMENTS,
        options.make_format_option(Product.OUTLOOK),
        options.Argument(
            "--print", None, "print the scenario as a file instead, to change it and run it with -f"
        ),
        *options.JSON_OPTIONS,
    )


def run(asked: CheckScenarioAsked) -> ExitCode:
    """Print what it would do; raises ScenarioError."""
    from ssbench.scenario import ad_hoc

    options.check_json_output(asked)
    wanted = options.choose_scenario_file(asked)
    scenario = ad_hoc.read_named_scenario(wanted, bodies=options.list_allowed_folders(asked.allow))
    if asked.print:
        with output_file.open_standard_output() as out:
            out.write(ad_hoc.read_named_text(wanted))
        return ExitCode.OK
    options.write_product(asked, Product.OUTLOOK, scenario)
    return ExitCode.OK
