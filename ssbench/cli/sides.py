"""``run-scenario --ab NAME=WHAT NAME=WHAT``: two sides in one run."""

from __future__ import annotations

import argparse
import logging
import re
from pathlib import Path

from ssbench.cli.output_file import standard_output
from ssbench.errors import StatFileError, UsageError
from ssbench.run.options import Side
from ssbench.swift.urls import parse_http_url, refuse_user_info, shown

_log = logging.getLogger(__name__)

_NAME = re.compile(r"[\w.-]{1,40}\Z")


def parse(arguments: argparse.Namespace) -> tuple[Side, ...]:
    """Return the two sides, or none; raises UsageError for what cannot be compared."""
    if not arguments.ab:
        return ()
    sides = [_side(text) for text in arguments.ab]
    if sides[0].name == sides[1].name:
        raise UsageError("--ab: both sides have the same name")
    if sides[0].storage_url == sides[1].storage_url and sides[0].policy == sides[1].policy:
        raise UsageError("--ab: both sides are the same")
    if bool(sides[0].storage_url) != bool(sides[1].storage_url):
        raise UsageError("--ab: either two storage URLs or two storage policies are compared")
    if sides[0].storage_url and arguments.local_swift:
        raise UsageError("--ab with storage URLs is not for --local-swift; two policies are, gold and silver")
    if sides[0].storage_url and arguments.auth_storage_urls:
        raise UsageError("--ab names the storage URLs: leave out -S/--storage-url")
    if sides[0].policy and arguments.policy:
        raise UsageError("--ab names the policies: leave out -p/--policy")
    return tuple(sides)


def _side(text: str) -> Side:
    name, equals, what = text.partition("=")
    if not equals or not what or not _NAME.match(name):
        raise UsageError(f"--ab: {shown(text)} is not NAME=URL or NAME=POLICY")
    if "://" not in what:
        return Side(name, policy=what)
    refuse_user_info(what, f"--ab: {name}")  # a no-op run, which does not authenticate, saves it too
    if parse_http_url(what) is None:
        raise UsageError(f"--ab: {name} is not the URL of an account, such as http://proxy:8080/v1/AUTH_test")
    return Side(name, storage_url=what.rstrip("/"))


def print_comparison(path: Path) -> None:
    """Print how the sides of a run compare, behind its report."""
    from ssbench.comparison.formats import text
    from ssbench.comparison.sides import compare_sides
    from ssbench.run_results import open_results
    from ssbench.statistics import summarize

    try:
        comparison = compare_sides(summarize(open_results(path), ("side",)))
    except StatFileError as error:
        _log.warning("%s", error)
        return
    with standard_output() as out:
        out.write("\n" + text(comparison).encode(out.encoding, "replace").decode(out.encoding))
