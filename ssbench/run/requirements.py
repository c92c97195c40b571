"""Whether a cluster has what a scenario needs, which is looked at before a run begins.

Reads without a token need signatures, which the master makes: workers get no key.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlsplit

from ssbench.base.errors import UsageError
from ssbench.run.options import RunOptions
from ssbench.run.part import GroupRun
from ssbench.run.tokens import TokenSource
from ssbench.scenario.model import Scenario
from ssbench.scenario.operation import OperationKind
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.scenario.owner import make_owner
from ssbench.store.contract import ReadSignatures
from ssbench.store.http.metadata import (
    MetadataShape,
    find_exceeded_limits,
    find_posting_settings,
    posted_shape,
)
from ssbench.store.request_options import parse_addresses
from ssbench.store.stores import STORE

_log = logging.getLogger(__name__)

#: Each message to a worker holds the signatures of all containers.
MAX_SIGNED_CONTAINERS = 1000

#: A run may take longer than it should; its signatures are of no use once it has ended.
_SIGNATURE_GRACE_SECONDS = 7 * 86400


def refuse_missing_features(
    scenario: Scenario, options: RunOptions, tokens: TokenSource, *, uploads_only: bool = False
) -> None:
    """Raise UsageError where the store says that it lacks what an operation of the scenario needs.

    So it is where the scenario has more metadata than the store takes. A store that does not say what it has
    is not refused. ``uploads_only``: no operations follow the initial uploads.
    """
    names: set[str] = set()
    if not uploads_only:
        names = {name for part in scenario.parts for name in part.operation_names}
        refuse_many_signatures(scenario)
    needed = {name: row.needs for row in OPERATIONS.drawn if (name := row.name) in names and row.needs}
    metadata = [*_metadata_shapes(scenario)]
    if not needed and not metadata:
        return
    timeouts = options.requests.connect_timeout, options.requests.network_timeout
    # What one server has is the same for all accounts.
    for session in {urlsplit(each.storage_url).netloc: each for each in tokens.sessions}.values():
        found = STORE.capabilities(session, timeouts)
        lacking = [f"{name} needs {feature}" for name, feature in needed.items() if found.lacks(feature)]
        if lacking:
            raise UsageError(
                f"{session.storage_urls[0]}: the cluster lacks what operations of the scenario need:"
                f" {'; '.join(lacking)} (it has {', '.join(sorted(found.features))})"
            )
        limits = found.features.get("swift", {})
        beyond = dict.fromkeys(
            each for shape, owner in metadata for each in find_exceeded_limits(limits, shape, owner)
        )
        if beyond:
            raise UsageError(
                f"{session.storage_urls[0]}: the metadata of the scenario are more than the cluster takes:"
                f" {', '.join(beyond)}"
            )
        if not found.known:
            lacking = [*needed.values(), *["room for the metadata of the scenario"] * bool(metadata)]
            _log.info("The cluster does not say whether it has %s", ", ".join(lacking))


def refuse_other_host(options: RunOptions, tokens: TokenSource) -> None:
    """Raise UsageError where ``--resolve`` names a host that is in no storage URL."""
    if options.requests.resolve is None:
        return
    hosts = {urlsplit(url).hostname or "" for session in tokens.sessions for url in session.storage_urls}
    for host in parse_addresses(options.requests.resolve):
        if host not in hosts:
            raise UsageError(
                f"--resolve: no storage URL has the host {host} (but {', '.join(sorted(hosts))})"
            )


def is_resumption_useless(scenario: Scenario, tokens: TokenSource) -> bool:
    """Return whether TLS sessions are to be resumed where there is no TLS."""
    asked = any(part.connections is not None and part.connections.tls_resume for part in scenario.parts)
    urls = (url for session in tokens.sessions for url in session.storage_urls)
    return asked and not any(url.startswith("https:") for url in urls)


def _metadata_shapes(scenario: Scenario) -> Iterator[tuple[MetadataShape, str]]:
    """Yield how much metadata objects get from a scenario, with what they say of whose they are."""
    for part in scenario.parts:
        written = (0, 0) if part.metadata is None else (part.metadata.number, part.metadata.size)
        own = find_posting_settings(part.operations)
        posts = {each.name for each in OPERATIONS if each.posts} & part.operation_names
        for size_class in part.size_classes:
            owner = make_owner(part, size_class)
            if written[0]:
                yield written, owner
            if posts and (own.values or written[0]):
                yield posted_shape(own, written), owner


def refuse_many_signatures(scenario: Scenario) -> None:
    """Raise UsageError where a scenario needs signatures for too many containers, or of several accounts."""
    for part in scenario.parts:
        signed = _signed_operations(part)
        if signed and part.accounts > 1:
            raise UsageError(f"{signed[0].name}: not possible with several accounts: each would need a key")
        if signed and part.container_count > MAX_SIGNED_CONTAINERS:
            raise UsageError(
                f"{signed[0].name}: possible with {MAX_SIGNED_CONTAINERS:,} containers at most,"
                f" not with {part.container_count:,}"
            )


def _signed_operations(scenario: Scenario) -> list[OperationKind]:
    return [row for row in OPERATIONS if row.signed and row.name in scenario.operation_names]


def sign_reads(
    parts: Sequence[GroupRun], options: RunOptions, tokens: TokenSource, stop: Callable[[], bool]
) -> ReadSignatures | None:
    """Give the workers of each part that needs them signatures for its containers.

    Returns what ends them; None where no part needs any. ``stop`` says whether to wait no longer until the
    cluster takes them. Raises UsageError and ClusterError. See :func:`refuse_many_signatures`.
    """
    needing = [part for part in parts if _signed_operations(part.scenario)]
    if not needing:
        return None
    session = needing[0].places[0].session(tokens.sessions)
    timeouts = options.requests.connect_timeout, options.requests.network_timeout
    features = STORE.capabilities(session, timeouts).features.get(
        _signed_operations(needing[0].scenario)[0].needs, {}
    )
    longest = max(part.scenario.run_seconds or 0.0 for part in needing)
    signed = STORE.sign(
        session, tokens.renewing(0), int(time.time() + longest) + _SIGNATURE_GRACE_SECONDS, timeouts
    )
    try:
        for part in needing:
            part.crew.change(signed=signed.queries(part.places[0].containers, features, stop))
    except BaseException:
        signed.end()
        raise
    return signed
