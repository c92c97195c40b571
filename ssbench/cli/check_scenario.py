"""``ssbench-master check-scenario``: what a scenario file would do."""

from __future__ import annotations

import argparse

from ssbench.base import printable
from ssbench.base.errors import ExitCode
from ssbench.cli import json_output, output_file, scenario_file
from ssbench.cli.options import add_format
from ssbench.reports import products
from ssbench.reports.products import Product

EXAMPLE = "ssbench-master check-scenario my.yaml"

DESCRIPTION = (
    "Say in words what a scenario would do: operations by kind, bytes to upload first, containers, whether"
    " objects run out, and a guess at the time. Nothing is sent. The first twenty faults of a file are"
    " reported at once, with exit code 2."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    scenario_file.add_arguments(parser)
    add_format(parser, Product.OUTLOOK)
    json_output.add_arguments(parser)


def run(arguments: argparse.Namespace) -> ExitCode:
    """Print what it would do; raises ScenarioError."""
    from ssbench.scenario.reading import load

    json_output.check(arguments)
    scenario = load(scenario_file.chosen(arguments), bodies=arguments.allow_bodies)
    if not json_output.alone(arguments):
        with output_file.standard_output(printable.of(arguments.format)) as out:
            out.write(products.find(Product.OUTLOOK, arguments.format)(scenario, output_file.view(out)))
    if arguments.json:
        json_output.write(arguments, products.parts(Product.OUTLOOK, "json", scenario))
    return ExitCode.OK
