"""``run-scenario --ab NAME=WHAT NAME=WHAT``: two sides in one run; and the stores of ``suite --store``."""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TextIO, TypeVar
from urllib.parse import urlsplit

from ssbench.base.errors import StatFileError, UsageError
from ssbench.base.text_values import parse_http_url, redact_url, refuse_user_info
from ssbench.base.untrusted import TooMuchError, read_small_file
from ssbench.cli import auth_options
from ssbench.cli.output_file import make_view
from ssbench.document.figures import CPU_FIGURES
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.run.bench_options import NamedStore, RunSide
from ssbench.run.trial_swift import is_release, names_swift
from ssbench.scenario.store_kinds import STORE_KINDS, find_store_kind, list_account_apis, strip_store_prefix
from ssbench.store.stores import Credentials

if TYPE_CHECKING:
    from ssbench.cli.auth_options import AuthAsked
    from ssbench.cli.option_table import LoggedSide, RunAsked
    from ssbench.comparison.change import FigureChange
    from ssbench.comparison.run_comparison import Comparison
    from ssbench.reports.part_changes import ChangesByPart
    from ssbench.run.trial_swift import TrialSwift
    from ssbench.statistics.run_statistics import RunStatistics

_AnyRunAsked = TypeVar("_AnyRunAsked", bound="RunAsked")

_log = logging.getLogger(__name__)

_ASSIGNMENT_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_NAME_PATTERN = re.compile(r"[\w.-]{1,40}\Z")

#: Of a file with the variables of an account.
_MAX_BYTES = 1_000_000


def parse_sides(asked: RunAsked) -> tuple[RunSide, ...]:
    """Return the two sides, or none; raises UsageError for what cannot be compared."""
    if not asked.ab:
        return ()
    sides = [_parse_side(text, asked) for text in asked.ab]
    if sides[0].name == sides[1].name:
        raise UsageError("--ab: both sides have the same name")
    sides = _choose_apis(sides, asked.ab)
    is_account = sides[0].has_account and not (sides[0].api or sides[0].swift)
    if is_account and asked.local_swift:
        raise UsageError("--ab with accounts is not for --local-swift; two policies are, gold and silver")
    if is_account and asked.auth_storage_urls:
        raise UsageError("--ab names the accounts: leave out -S/--storage-url")
    if sides[0].storage_url and asked.local_swift:
        raise UsageError("--ab with storage URLs is not for --local-swift; two policies are, gold and silver")
    if sides[0].storage_url and asked.auth_storage_urls:
        raise UsageError("--ab names the storage URLs: leave out -S/--storage-url")
    return tuple(sides)


def ask_for_swifts(
    asked: _AnyRunAsked, option: str, texts: Sequence[str] = (), *, always: bool = False
) -> _AnyRunAsked:
    """Return what is asked, with a local Swift where sides or stores (NAME=WHAT) are Swifts to be started.

    Raises UsageError where ``--local-swift`` names a release too.
    """
    if not always and not any(names_swift(text.partition("=")[2]) for text in texts):
        return asked
    if isinstance(asked.local_swift, str):
        raise UsageError(f"{option} names the releases: leave out --local-swift={asked.local_swift}")
    return replace(asked, local_swift=True)


def _parse_side(text: str, asked: RunAsked) -> RunSide:
    name, equals, what = text.partition("=")
    if not equals or not what or not _NAME_PATTERN.match(name):
        raise UsageError(f"--ab: {redact_url(text)} is not NAME=URL, NAME=POLICY, NAME=RELEASE or NAME=@FILE")
    if what == "@":
        if name not in list_account_apis():
            raise UsageError(f"--ab: {text}: expected swift=@ s3=@, the account over each of these two APIs")
        return RunSide(name, api=name)
    if what.startswith("@"):
        return RunSide(name)
    if names_swift(what):
        # From their logs follows in which part a difference is.
        swift = replace(_make_swift(asked, what, f"--ab: {name}"), access_logs=True)
        return RunSide(name, swift=swift)
    if "://" not in what:
        return RunSide(name, policy=what)
    return RunSide(name, storage_url=_check_account_url(what, f"--ab: {name}"))


def _make_swift(asked: RunAsked, what: str, where: str) -> TrialSwift:
    """Return the Swift of a side or of a store; raises UsageError."""
    try:
        return asked.swift.make_trial_swift(what)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def _check_account_url(url: str, what: str) -> str:
    """Return a storage URL without a slash at its end; raises UsageError for another text."""
    refuse_user_info(url, what)  # a no-op run, which does not authenticate, saves it too
    if parse_http_url(strip_store_prefix(url)) is None:
        raise UsageError(f"{what} is not the URL of an account, such as http://proxy:8080/v1/AUTH_test")
    return url.rstrip("/")


def _choose_apis(sides: list[RunSide], texts: Sequence[str]) -> list[RunSide]:
    """Return sides with their APIs, where these differ; raises UsageError for what cannot be compared."""
    if len({bool(side.swift) for side in sides}) > 1:
        swift, other = sorted(sides, key=lambda side: not side.swift)
        raise UsageError(
            f"--ab: {swift.name} is a Swift to be started, and {other.name} is none: expected two, as"
            " old=2.37.4 new=2.38.3, or none"
        )
    if sides[0].swift:
        return sides  # two equal ones show what chance does
    if len({(text.partition("=")[2], side.api) for text, side in zip(texts, sides, strict=True)}) == 1:
        raise UsageError("--ab: both sides are the same")
    if not all(find_store_kind(side.storage_url or "").takes_token for side in sides):
        sides = [replace(side, api=find_store_kind(side.storage_url or "").name) for side in sides]
    if len({bool(side.api) for side in sides}) > 1:
        raise UsageError("--ab: swift=@ and s3=@ are the two APIs of one account: expected both, or none")
    if len({(bool(side.storage_url), bool(side.policy)) for side in sides}) > 1:
        raise UsageError("--ab: both sides are storage URLs, or policies, or accounts (@FILE)")
    return sides


def make_side_credentials(
    asked: RunAsked, sides: Sequence[RunSide], environ: Mapping[str, str]
) -> list[Credentials]:
    """Return the credentials, of each side where the sides are accounts; raises UsageError."""
    found = []
    if any(side.api and side.storage_url for side in sides):
        for side in sides:
            own = replace(asked, auth_storage_urls=[side.storage_url or ""])
            made = auth_options.make_credentials(own, environ)
            found.append(replace(made, name=f"side {side.name}"))
        return found
    if not sides or any(not side.has_account or side.api for side in sides):
        urls = [side.storage_url for side in sides if side.storage_url and not side.api]
        own = replace(asked, auth_storage_urls=urls) if urls else asked
        return [auth_options.make_credentials(own, environ)]
    for name, file in (text.partition("=")[::2] for text in asked.ab or ()):
        try:
            found.append(auth_options.make_credentials(asked, _read_variables(Path(file[1:]))))
        except UsageError as error:
            raise UsageError(f"--ab: {name}: {error}") from None
    if found[0] == found[1]:
        raise UsageError("--ab: both sides have the same credentials")
    return [replace(each, name=f"side {side.name}") for each, side in zip(found, sides, strict=True)]


# -- Stores of suites ------------------------------------------------------------------------------


def parse_stores(texts: Sequence[str], *, local_swift: bool) -> dict[str, str]:
    """Return what ``--store`` says of each name, "" of swift and s3 alone; raises UsageError."""
    found: dict[str, str] = {}
    account_apis = list_account_apis()
    for text in texts:
        name, _, what = text.partition("=")
        if not _NAME_PATTERN.match(name) or not (what or text in account_apis) or what == "@":
            raise UsageError(
                f"--store: {redact_url(text)} is not {', '.join(account_apis)}, NAME=URL, NAME=RELEASE or"
                " NAME=@FILE"
            )
        if name in found:
            raise UsageError(f"--store: {name} is given twice")
        if what and not what.startswith("@") and not names_swift(what):
            what = _check_account_url(what, f"--store: {name}")
        found[name] = what
    swifts = [*map(names_swift, found.values())]
    if any(swifts) and not all(swifts):
        raise UsageError(
            "--store: a Swift to be started is compared with others: expected none of another kind"
        )
    if local_swift and any(found.values()) and not all(swifts):
        raise UsageError("--store with a URL or @FILE is not for --local-swift; swift and s3 are")
    return found


def make_named_stores(
    asked: RunAsked,
    names: Sequence[str],
    given: Mapping[str, str],
    environ: Mapping[str, str],
    swifts: Mapping[str, Mapping[str, object]] = MappingProxyType({}),
) -> tuple[NamedStore, ...]:
    """Return the stores of these names; raises UsageError, which names the one that lacks credentials.

    ``given`` is what :func:`parse_stores` returns, ``swifts`` what a suite says of Swifts to be started.
    """
    found = []
    for name in names:
        if name in swifts:
            found.append(_make_store_of_suite(asked, name, swifts[name]))
            continue
        what = given.get(name, "")
        if names_swift(what):
            swift = _make_swift(asked, what, f"store {name}")
            found.append(NamedStore(name=name, swift=swift))
            continue
        if not what and (asked.local_swift or asked.options.noop or asked.credentials):
            found.append(NamedStore(name=name, api=name))
            continue
        try:
            if what.startswith("@"):
                own = auth_options.forget_account(asked)
                made = auth_options.make_credentials(own, _read_variables(Path(what[1:])))
            elif what:
                made = auth_options.make_credentials(replace(asked, auth_storage_urls=[what]), environ)
            else:
                made = _make_account_credentials(asked, name, environ)
        except UsageError as error:
            raise UsageError(f"store {name}: {error}") from None
        found.append(NamedStore(name=name, credentials=replace(made, name=f"store {name}")))
    if len(found) == 2 and all(each.swift for each in found):
        # From their logs follows in which part a difference is.
        found = [replace(each, swift=replace(each.swift, access_logs=True)) for each in found if each.swift]
    return tuple(found)


def _make_store_of_suite(asked: RunAsked, name: str, said: Mapping[str, object]) -> NamedStore:
    """Return the store for which a suite has a Swift started; raises UsageError."""
    where = f"stores.{name}"
    api = str(said.get("api", "swift"))
    if api not in list_account_apis():
        raise UsageError(f"{where}.api: expected {' or '.join(list_account_apis())}, not {api!r}")
    # The file may be somebody else's: it starts releases and filters of Swift, no programs.
    filters = said.get("filters", [])
    if isinstance(filters, list) and (others := [each for each in filters if ":" in str(each)]):
        raise UsageError(f"{where}.filters: {others[0]}: expected filters of Swift's own")
    if (release := said.get("release")) and not is_release(str(release)):
        raise UsageError(f"{where}.release: expected a version such as 2.37.4, not {release!r}")
    swift = asked.swift.make_trial_swift(True, {key: said[key] for key in said if key != "api"}, where)
    return NamedStore(name=name, api=api, swift=swift)


def _make_account_credentials(asked: AuthAsked, api: str, environ: Mapping[str, str]) -> Credentials:
    """Return the credentials of the account of the options over an API; raises UsageError."""
    urls = asked.auth_storage_urls or [*filter(None, [environ.get("OS_STORAGE_URL")])]
    kind = STORE_KINDS[api]
    own = [url for url in urls if find_store_kind(url) is kind]
    if urls and not own:
        other = find_store_kind(urls[0])
        if kind.account_in_url or not other.of_swift:
            raise UsageError(
                f"{urls[0]} has {other.api} alone: --store {api}=URL says where the other one is"
            )
        # The servers that have the account; where no URL is given, authentication tells.
        own = [f"{kind.prefix}{parts.scheme}://{parts.netloc}" for parts in map(urlsplit, urls)]
    token = None if own and not kind.takes_token else asked.auth_token
    asked = replace(asked, auth_storage_urls=own or None, auth_token=token)
    made = auth_options.make_credentials(asked, environ)
    return made if own or not kind.prefix else replace(made, storage_urls=(kind.prefix,))


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


def compare_sides_of_files(
    results_dir: Path | None, paths: Sequence[Path], statistics: RunStatistics
) -> Comparison:
    """Compare the sides of a run of these stat files.

    Earlier equal runs of the folder of results count, where one was named.
    """
    from ssbench.cli import archives
    from ssbench.comparison.paired_sides import compare_sides
    from ssbench.comparison.run_figures import collect_run_facts

    facts, names = [collect_run_facts(statistics)], [str(path) for path in paths]
    return compare_sides(statistics, floors=archives.find_noise_floors(results_dir, facts, names))


class SidesComparer:
    """Compares the two sides of a run, once for all of its reports.

    ``list_logs`` returns the folders of the logs of both, where each side has a Swift with such.
    """

    def __init__(
        self, results_dir: Path | None, list_logs: Callable[[], Sequence[Path]] | None = None
    ) -> None:
        # What it needs is loaded before the run.
        from ssbench.comparison import paired_sides, run_figures  # noqa: F401
        from ssbench.results.reading import open_results
        from ssbench.statistics.summary import summarize

        self._results_dir = results_dir
        self._list_logs = list_logs
        self._found: Comparison | None = None
        self._open, self._summarize = open_results, summarize
        self._write = products.find_writer(Product.COMPARISON, "text")

    def compare(self, paths: Sequence[Path], statistics: RunStatistics) -> Comparison:
        """Return how the sides of the run of these stat files compare."""
        if self._found is None:
            found = compare_sides_of_files(self._results_dir, paths, statistics)
            if self._list_logs is not None and (logs := self._list_logs()):
                found = add_parts(found, make_logged_sides(statistics.run.sides, logs, paths))
            self._found = found
        return self._found

    def print(self, path: Path, out: TextIO) -> None:
        """Print how they compare."""
        try:
            found = self._found or self.compare([path], self._summarize(self._open(path)))
        except StatFileError as error:
            _log.warning("%s", error)
            return
        out.write("\n" + self._write(found, make_view(out)))


def make_logged_sides(names: Sequence[str], logs: Sequence[Path], files: Sequence[Path]) -> list[LoggedSide]:
    """Return the sides of runs that have two."""
    from ssbench.cli.option_table import LoggedSide

    pairs = enumerate(zip(names, logs, strict=True))
    return [LoggedSide(name, folder, files, number) for number, (name, folder) in pairs]


def add_parts(found: Comparison, logged: Sequence[LoggedSide]) -> Comparison:
    """Return a comparison with the parts in which two sides differ, by the logs of their Swifts."""
    return replace(found, by_part=find_parts(logged, [(key, each) for _, key, each in found.changes()]))


def find_parts(
    logged: Sequence[LoggedSide], changes: Sequence[tuple[str, FigureChange]]
) -> ChangesByPart | None:
    """Return by which part two sides differ; None, with a message, where their logs do not tell.

    ``changes`` are those of all figures, each with the key of its figure.
    """
    from ssbench.cli.option_table import compare_logged_sides
    from ssbench.comparison.change import is_any_shown

    kinds = {figure.key: kind for kind, figure in CPU_FIGURES.items()}
    cpu = {kinds[key]: each for key, each in changes if key in kinds and each.differs}
    try:
        return compare_logged_sides(logged, cpu, is_any_shown(changes))
    except UsageError as error:
        _log.warning("Which part makes the difference is not known: %s", error)
    return None
