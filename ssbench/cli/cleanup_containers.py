"""``ssbench-master cleanup-containers``: delete what benchmarks left in an account, or in several."""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ssbench.base.errors import ExitCode, UsageError, choose_worst_code
from ssbench.base.interruption import Interrupts, say_last_line, undo_on_interrupt
from ssbench.cli import auth_options, options
from ssbench.cli.auth_options import AuthAsked
from ssbench.cli.options import COUNT, NAME, SECONDS, SECONDS_OR_0, Argument, JsonAsked, add_options
from ssbench.document.columns import format_plural
from ssbench.run import terminal
from ssbench.run.bars import ProgressBar
from ssbench.scenario.names import (
    DEFAULT_ACCOUNT_BASE,
    DEFAULT_CONTAINER_BASE,
    container_name,
    container_pattern,
    longer_base_pattern,
    make_account_names,
)
from ssbench.scenario.store_kinds import find_store_kind

if TYPE_CHECKING:
    from ssbench.run.account_cleaner import AccountCleaner, CleanUpResult, CleanUpSettings
    from ssbench.run.run_marks import RunMark
    from ssbench.run.tokens import TokenSource
    from ssbench.store.contract import StoreAccess
    from ssbench.store.stores import Session

USAGE = "%(prog)s [option ...]"

EXAMPLE = "ssbench-master cleanup-containers --policy gold"

DESCRIPTION = (
    "Delete the containers that ssbench made for a base name (BASE_000000, BASE_000000_POLICY and so on)"
    " and everything in them. No other container is touched. On a terminal it asks first."
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CleanUpAsked(AuthAsked, JsonAsked):
    """What the command is asked."""

    container_base: str
    concurrency: int
    policy: str | None
    accounts: int | None
    account_base: str | None
    yes: bool
    in_use: bool
    connect_timeout: float
    network_timeout: float
    give_up_after: float


ASKED = CleanUpAsked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    add_options(
        parser,
        Argument("--container-base", NAME, "base name of the containers", "ssbench", old="-b"),
        Argument("--concurrency", COUNT, "maximum number of concurrent requests", 10, old="-c"),
        Argument(
            "-p --policy",
            NAME,
            "only containers whose name ends in _NAME",
            default_text="with any policy or none",
        ),
        Argument(
            "--accounts",
            COUNT,
            "clean the accounts that a run with this many made, with the credentials of a reseller admin",
        ),
        Argument(
            "--account-base", NAME, "what the names of these accounts begin with", default_text="ssbench"
        ),
        Argument("--yes", None, "do not ask for confirmation"),
        Argument(
            "--in-use", None, "delete containers even if another run is using them", default_text="keep them"
        ),
        Argument("--connect-timeout", SECONDS, "seconds to wait for a connection", 10.0),
        Argument("--network-timeout", SECONDS, "seconds to wait for progress of a request", 60.0),
        Argument(
            "--give-up-after",
            SECONDS_OR_0,
            "give up if nothing succeeds for this many seconds; 0 means never",
            120.0,
        ),
        *options.JSON_OPTIONS,
    )
    auth_options.add_auth_arguments(parser)


def _account_names(asked: CleanUpAsked) -> Sequence[str]:
    """Return the names of the accounts to clean, none for that of the credentials; raises UsageError."""
    from ssbench.scenario.key_rules import ACCOUNT_BASE_RULE, MAX_ACCOUNTS

    base, count = asked.account_base, asked.accounts
    if count is None:
        if base is not None:
            raise UsageError("--account-base: expected --accounts beside it")
        return []
    if count > MAX_ACCOUNTS:
        raise UsageError(f"--accounts: expected at most {MAX_ACCOUNTS:,}, not {count:,}")
    if base is None:
        base = DEFAULT_ACCOUNT_BASE
    if not ACCOUNT_BASE_RULE.accepts(base):  # a slash would make it a container of another account
        raise UsageError(f"--account-base: expected {ACCOUNT_BASE_RULE.expected}, not {base!r:.80}")
    return make_account_names(base, count)


def run(asked: CleanUpAsked) -> ExitCode:
    """Delete the containers; raises SsbenchError when authentication or listing an account fails."""
    from ssbench.run.tokens import TokenSource
    from ssbench.store.stores import STORE

    options.check_json_output(asked)
    credentials = auth_options.read_account_credentials(asked, os.environ)
    names = _account_names(asked)
    if names and credentials:
        raise UsageError("--credentials names the accounts: leave out --accounts")
    credentials = credentials or [auth_options.make_credentials(asked, os.environ)]
    again = "Run it again to delete what is left"
    with undo_on_interrupt(lambda: say_last_line(f"WARNING:{again}")):
        try:
            return _clean_accounts(
                asked,
                TokenSource(credentials, names, lambda each: STORE.authenticate(each, asked.connect_timeout)),
            )
        except KeyboardInterrupt:
            _log.warning("%s", again)
            raise
        finally:
            STORE.end()


def _clean_accounts(asked: CleanUpAsked, tokens: TokenSource) -> ExitCode:
    """Find the containers of each account, and delete those that are free."""
    from ssbench.run.account_cleaner import CleanedAccount, CleanUpReport, CleanUpResult, CleanUpSettings
    from ssbench.store.contract import StoreAccess
    from ssbench.store.stores import STORE

    settings = CleanUpSettings(
        asked.concurrency, asked.connect_timeout, asked.network_timeout, asked.give_up_after
    )
    accounts, base = [], asked.container_base
    seen = set[str]()
    for number, session in enumerate(tokens.sessions):
        places = {
            f"{url} {'' if find_store_kind(url).account_in_url else session.token}"
            for url in session.storage_urls
        }
        if places & seen:  # of two users of one account
            continue
        seen |= places
        base = STORE.container_base(session, asked.container_base)
        # Suites and runs over both APIs have base names of their own, which are named where only the usual
        # one is asked for. Nothing is deleted but what this listing has.
        longer = asked.container_base == DEFAULT_CONTAINER_BASE
        access = StoreAccess(session, settings.timeouts)
        listed = STORE.find_containers(access, base, asked.policy, longer=longer)
        own, found, left = container_pattern(base, asked.policy), {}, []
        for name, count in listed:
            if own.match(name):
                found[name] = count
            else:
                left.append(name)
        used = {} if asked.in_use or not found else _find_in_use(access, list(found))
        free = {name: count for name, count in found.items() if name not in used}
        accounts.append(_FoundAccount(session, tokens.renewing(number), len(found), used, free, left))
    code, results = ExitCode.OK, [CleanUpResult() for _ in accounts]
    if not any(each.matched for each in accounts):
        example = container_name(base, 0, asked.policy)
        _log.info("No matching containers (%s and so on)", example)
    elif any(each.free for each in accounts) and not asked.yes and not _ask_to_confirm(accounts):
        _log.info("Nothing was deleted")
    else:
        code, results = _clean_all(accounts, settings)
        code = code or (ExitCode.FAILED if any(each.used for each in accounts) else ExitCode.OK)
    if code in {ExitCode.OK, ExitCode.FAILED}:
        _say_what_has_longer_names(base, asked.policy, accounts)
    cleaned = [
        CleanedAccount(
            storage_url=each.session.storage_url,
            matched=each.matched,
            in_use={name: mark.run for name, mark in each.used.items()},
            deleted=result,
        )
        for each, result in zip(accounts, results, strict=True)
    ]
    options.write_json_output(asked, CleanUpReport.of(cleaned, code))
    return code


def _say_what_has_longer_names(base: str, policy: str | None, accounts: Sequence[_FoundAccount]) -> None:
    """Log how to delete the containers of suites and of runs over both APIs."""
    pattern = longer_base_pattern(base, policy)
    left: dict[str, list[str]] = {}
    for name in (name for each in accounts for name in each.longer):
        if match := pattern.match(name):
            left.setdefault(match["base"], []).append(name)
    if left:
        names = [name for each in left.values() for name in each]
        commands = [f"--container-base {shlex.quote(each)}" for each in left]
        _log.info(
            "Not deleted: %s (%s and so on) of suites or runs over the S3 API; to delete them, give %s",
            format_plural(len(names), "container"),
            names[0],
            commands[0] if len(commands) == 1 else f"in a call each {', '.join(commands)}",
        )


@dataclass(frozen=True, slots=True)
class _FoundAccount:
    """What was found in an account: matching containers, those that are in use and those that are free."""

    session: Session
    renew: Callable[[], Session] | None
    matched: int
    used: dict[str, RunMark]
    free: dict[str, int]
    longer: list[str]  # containers of base names that begin with the usual one and a hyphen, which stay


def _clean_all(
    accounts: Sequence[_FoundAccount], settings: CleanUpSettings
) -> tuple[ExitCode, list[CleanUpResult]]:
    """Delete what is free in each account, one after the other, until Ctrl-C or nothing succeeds."""
    from ssbench.run.account_cleaner import CleanUpResult

    code, results = ExitCode.OK, []
    for each in accounts:
        if not each.free or code in {ExitCode.INTERRUPTED, ExitCode.CLUSTER}:
            results.append(CleanUpResult())
            continue
        if len(accounts) > 1:
            _log.info(
                "%s: %s to delete", each.session.storage_url, format_plural(len(each.free), "container")
            )
        own, result = _clean_account(each, settings)
        code = choose_worst_code([code, own])
        results.append(result)
    return code, results


def _clean_account(account: _FoundAccount, settings: CleanUpSettings) -> tuple[ExitCode, CleanUpResult]:
    from ssbench.run.account_cleaner import AccountCleaner

    free = account.free
    with ProgressBar("Cleaning up", len(free) + sum(free.values())) as bar:
        cleaner = AccountCleaner(
            account.session,
            settings,
            account.renew,
            bar.advance,
            lambda objects: bar.expect(len(free) + objects),
        )
        result = _clean_containers(cleaner, list(free))
    return _report_failures(cleaner, settings.give_up_after), result


def _find_in_use(access: StoreAccess[Session], names: list[str]) -> dict[str, RunMark]:
    """Return the containers that runs under way use, each with one of these; say which they are."""
    from ssbench.run.run_marks import containers_in_use

    used = containers_in_use(access, names)
    for mark in {mark.run: mark for mark in used.values()}.values():
        count = sum(other.run == mark.run for other in used.values())
        _log.warning(
            "%s is under way in %d of these containers, which stay (--in-use deletes them too)",
            mark.sentence_start,
            count,
        )
    return used


def _clean_containers(cleaner: AccountCleaner, containers: list[str]) -> CleanUpResult:
    """Delete the containers until Ctrl-C; log and return how much was deleted."""

    def stop() -> str:
        cleaner.stop()
        return "no more is deleted. Ctrl-C again ends it at once"

    with Interrupts() as interrupts, interrupts.armed(stop):
        try:
            cleaner.run(containers)
        finally:
            result = cleaner.result
            seconds = max(result.seconds, 1e-3)
            _log.info(
                "Deleted %s and %s in %.1f s: %.0f containers and %.0f objects a second",
                format_plural(result.containers, "container"),
                format_plural(result.objects, "object"),
                seconds,
                result.containers / seconds,
                result.objects / seconds,
            )
    return result


def _report_failures(cleaner: AccountCleaner, give_up_after: float) -> ExitCode:
    """Log what failed; return the exit code."""
    result = cleaner.result
    for failure in result.failures:
        _log.error("%s", failure)
    if result.failed:
        unnamed = result.failed - len(result.failures)
        _log.error(
            "%s failed%s; run it again when the cause is gone%s",
            format_plural(result.failed, "delete"),
            f", {unnamed} more than these" if unnamed else "",
            " (it gave up after so many in a row)" if cleaner.gave_up else "",
        )
    if cleaner.stopped:
        _log.error("Interrupted; run it again to delete the rest")
        return ExitCode.INTERRUPTED
    if cleaner.stood_still:
        _log.error(
            "Nothing succeeded for %g s (--give-up-after); run it again to delete the rest", give_up_after
        )
        return ExitCode.CLUSTER
    return ExitCode.FAILED if result.failed else ExitCode.OK


def _ask_to_confirm(accounts: Sequence[_FoundAccount]) -> bool:
    """Ask the user for confirmation; return True where there is no terminal to ask on."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    some = [each for each in accounts if each.free]
    names = [name for each in some for name in each.free]
    which = names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]}"
    where = some[0].session.storage_url
    if len(some) > 1:
        where += f" ... {some[-1].session.storage_url}"
    sys.stderr.write(f"Delete {format_plural(len(names), 'container')} of {where} ({which})? [y/N] ")
    terminal.drain_output()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
