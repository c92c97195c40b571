"""``ssbench-master conformance``: which requests a store carries out, refuses or ignores."""

from __future__ import annotations

import argparse
import logging
import os
import secrets
from contextlib import closing
from dataclasses import dataclass

from ssbench.base import interruption
from ssbench.base.errors import ExitCode
from ssbench.cli import auth_options, options
from ssbench.cli.auth_options import AuthAsked
from ssbench.cli.options import SECONDS, Argument, PrintedAsked, add_options, make_format_option
from ssbench.reports.products import Product
from ssbench.scenario.names import DEFAULT_CONTAINER_BASE, container_name
from ssbench.scenario.store_kinds import find_store_kind

EXAMPLE = "ssbench-master conformance -S http://swift:8080/v1/AUTH_test --json store.json"

DESCRIPTION = (
    "Try each operation and condition that scenarios can have once, and check the effect: done,"
    " refused (by its status), or ignored (a success without the effect). The command makes its own"
    " containers with a few small objects, and removes them. The exit code is 1 if something is"
    " ignored, or if objects cannot be created, read, updated and deleted."
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ConformanceAsked(AuthAsked, PrintedAsked):
    """What the command is asked."""

    connect_timeout: float
    network_timeout: float


ASKED = ConformanceAsked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    add_options(
        parser,
        Argument("--connect-timeout", SECONDS, "seconds to wait for a connection", 10.0),
        Argument("--network-timeout", SECONDS, "seconds to wait for progress of a request", 20.0),
        make_format_option(Product.CONFORMANCE),
        *options.JSON_OPTIONS,
    )
    auth_options.add_auth_arguments(parser)


def run(asked: ConformanceAsked) -> ExitCode:
    """Print the table; raises SsbenchError where the store cannot be reached or takes no container."""
    from ssbench.reports.conformance_report import make_conformance_report
    from ssbench.run.tokens import TokenSource
    from ssbench.store.conformance_checks import CHECKS, Finding, StoreGround, StoreTrial, StoreVerdict
    from ssbench.store.contract import StoreAccess
    from ssbench.store.http.client import ClientSettings
    from ssbench.store.stores import STORE, make_store_client

    options.check_json_output(asked)
    tokens = TokenSource([auth_options.make_credentials(asked, os.environ)])
    session = tokens.sessions[0]
    url = session.storage_url
    kind = find_store_kind(url)
    settings = ClientSettings(
        connect_timeout=asked.connect_timeout,
        network_timeout=asked.network_timeout,
        retries=3,
        insecure=session.insecure,
        ca_certificates=session.ca_certificates,
    )
    access = StoreAccess(session, settings.timeouts, tokens.renewing(0))
    ground = StoreGround(STORE, access)
    # As those of runs, so that a clean-up takes what is left where this process is killed.
    name = container_name(f"{DEFAULT_CONTAINER_BASE}-conformance-", secrets.randbelow(10**8), None)
    found = []
    with interruption.hold_signals(), closing(make_store_client(settings)) as client:
        try:
            ground.make_container(name, {})
            for check in CHECKS:
                interruption.raise_if_interrupted()
                _log.debug("%s: %s", check.name, check.what)
                trial = StoreTrial(client, url, session.token, name, ground)
                if check.only_over in {"", kind.name}:
                    found.append((check, check.run(trial)))
                else:
                    found.append((check, Finding(StoreVerdict.REFUSED, f"not in {kind.api}")))
        finally:
            ground.end(client)
            tokens.end()
    interruption.raise_if_interrupted()
    report = make_conformance_report(url, found)
    options.write_product(asked, Product.CONFORMANCE, report)
    return report.exit_code
