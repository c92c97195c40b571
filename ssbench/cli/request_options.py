"""The options of ``run-scenario`` for requests: timeouts, retries, checks, and how many may fail."""

from __future__ import annotations

import argparse

from ssbench.cli import option_table
from ssbench.run.options import RunOptions
from ssbench.swift.request_options import RequestOptions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    group = parser.add_argument_group("requests")
    option_table.add(group, RequestOptions)
    option_table.add(group, RunOptions, "verify", "mark_transactions", "max_errors", "give_up_after")
