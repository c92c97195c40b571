"""``run-scenario --ab NAME=WHAT NAME=WHAT``: two sides in one run."""

from __future__ import annotations

import argparse
import logging
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ssbench.base.errors import StatFileError, UsageError
from ssbench.base.text_values import parse_http_url, redact_url, refuse_user_info
from ssbench.base.untrusted import TooMuchError, read_small_file
from ssbench.cli import auth_options, settings
from ssbench.cli.output_file import make_view
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.run.options import RunSide
from ssbench.store.stores import Credentials

if TYPE_CHECKING:
    from ssbench.comparison.compare import Comparison
    from ssbench.statistics.run_statistics import RunStatistics

_log = logging.getLogger(__name__)

_ASSIGNMENT_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_NAME_PATTERN = re.compile(r"[\w.-]{1,40}\Z")

#: Of a file with the variables of an account.
_MAX_BYTES = 1_000_000


def parse_sides(arguments: argparse.Namespace) -> tuple[RunSide, ...]:
    """Return the two sides, or none; raises UsageError for what cannot be compared."""
    if not arguments.ab:
        return ()
    sides = [_parse_side(text) for text in arguments.ab]
    if sides[0].name == sides[1].name:
        raise UsageError("--ab: both sides have the same name")
    if len({text.partition("=")[2] for text in arguments.ab}) == 1:
        raise UsageError("--ab: both sides are the same")
    if len({(bool(side.storage_url), bool(side.policy)) for side in sides}) > 1:
        raise UsageError("--ab: both sides are storage URLs, or policies, or accounts (@FILE)")
    is_account = not sides[0].storage_url and not sides[0].policy
    if is_account and arguments.local_swift:
        raise UsageError("--ab with accounts is not for --local-swift; two policies are, gold and silver")
    if is_account and arguments.auth_storage_urls:
        raise UsageError("--ab names the accounts: leave out -S/--storage-url")
    if sides[0].storage_url and arguments.local_swift:
        raise UsageError("--ab with storage URLs is not for --local-swift; two policies are, gold and silver")
    if sides[0].storage_url and arguments.auth_storage_urls:
        raise UsageError("--ab names the storage URLs: leave out -S/--storage-url")
    if sides[0].policy:
        settings.ignore_options(arguments, "--ab names the policies", "--policy")
    if sides[0].policy and arguments.policy:
        raise UsageError("--ab names the policies: leave out -p/--policy")
    return tuple(sides)


def _parse_side(text: str) -> RunSide:
    name, equals, what = text.partition("=")
    if not equals or what in {"", "@"} or not _NAME_PATTERN.match(name):
        raise UsageError(f"--ab: {redact_url(text)} is not NAME=URL, NAME=POLICY or NAME=@FILE")
    if what.startswith("@"):
        return RunSide(name)
    if "://" not in what:
        return RunSide(name, policy=what)
    refuse_user_info(what, f"--ab: {name}")  # a no-op run, which does not authenticate, saves it too
    if parse_http_url(what) is None:
        raise UsageError(f"--ab: {name} is not the URL of an account, such as http://proxy:8080/v1/AUTH_test")
    return RunSide(name, storage_url=what.rstrip("/"))


def make_side_credentials(arguments: argparse.Namespace, environ: Mapping[str, str]) -> list[Credentials]:
    """Return the credentials, of each side where the sides are accounts; raises UsageError."""
    if not arguments.sides or any(side.storage_url or side.policy for side in arguments.sides):
        return [auth_options.make_credentials(arguments, environ)]
    found = []
    for name, file in (text.partition("=")[::2] for text in arguments.ab):
        try:
            found.append(auth_options.make_credentials(arguments, _read_variables(Path(file[1:]))))
        except UsageError as error:
            raise UsageError(f"--ab: {name}: {error}") from None
    if found[0] == found[1]:
        raise UsageError("--ab: both sides have the same credentials")
    return [
        replace(each, name=f"side {side.name}") for each, side in zip(found, arguments.sides, strict=True)
    ]


def _read_variables(file: Path) -> dict[str, str]:
    """Read the variables of an account from a file; no shell, so that $ and commands mean nothing."""
    try:
        lines = read_small_file(file, _MAX_BYTES).decode().splitlines()
    except (OSError, TooMuchError) as error:
        raise UsageError(f"{file}: {getattr(error, 'strerror', None) or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file}: is not text") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            words = ["?"]
        words = words[1:] if words[:1] == ["export"] else words
        if not all(_ASSIGNMENT_PATTERN.match(word) for word in words):
            # The line may hold a password.
            raise UsageError(f"{file}, line {number}: expected NAME=VALUE")
        found.update(word.partition("=")[::2] for word in words)
    return found


def import_comparison() -> None:
    """Import what :func:`compare_sides_of_files` needs, which a run does before it begins."""
    from ssbench.comparison import run_figures, sides  # noqa: F401


def compare_sides_of_files(
    arguments: argparse.Namespace, paths: Sequence[Path], statistics: RunStatistics
) -> Comparison:
    """Compare the sides of a run of these stat files.

    Earlier equal runs of the folder of results count, where one was named.
    """
    from ssbench.cli import archives
    from ssbench.comparison.run_figures import collect_run_facts
    from ssbench.comparison.sides import compare_sides

    floors = archives.find_noise_floors(
        arguments, [collect_run_facts(statistics)], [str(path) for path in paths]
    )
    return compare_sides(statistics, floors=floors)


def make_comparison_printer(arguments: argparse.Namespace) -> Callable[[Path, TextIO], None]:
    """Return what prints how the sides of a run compare; it has loaded all that it needs."""
    from ssbench.results.reading import open_results
    from ssbench.statistics.summary import summarize

    write = products.find_writer(Product.COMPARISON, "text")
    import_comparison()

    def print_comparison(path: Path, out: TextIO) -> None:
        try:
            statistics = summarize(open_results(path))
        except StatFileError as error:
            _log.warning("%s", error)
            return
        comparison = compare_sides_of_files(arguments, [path], statistics)
        out.write("\n" + write(comparison, make_view(out)))

    return print_comparison
