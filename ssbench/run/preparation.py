"""What there has to be in the cluster before a benchmark begins: containers, and the initial objects."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from ssbench.base.errors import ClusterError
from ssbench.fleet.crew import GroupWorkers
from ssbench.fleet.pace import Pace
from ssbench.run.bars import ProgressBar, TransferAmount
from ssbench.run.loop import MasterLoop
from ssbench.run.options import RunOptions
from ssbench.run.parameters import accounts_of_sessions
from ssbench.run.part import GroupRun
from ssbench.run.phases import InitialUploads
from ssbench.run.places import ContainerSet, merge_container_sets
from ssbench.run.prepared import FoundObjects
from ssbench.run.tokens import TokenSource
from ssbench.scenario.draws import Workload
from ssbench.scenario.forecast import BYTES_PER_SECOND, SECONDS_PER_REQUEST, forecast_scenario
from ssbench.scenario.model import Scenario
from ssbench.scenario.names import versioned_container
from ssbench.scenario.operation_table import OPERATIONS, UPLOAD_IF_MISSING
from ssbench.scenario.owner import explain_replacement
from ssbench.scenario.population import Population
from ssbench.store.stores import STORE

_log = logging.getLogger(__name__)

#: With this containers keep the versions of their objects.
_VERSIONS_HEADER = {"X-Versions-Enabled": "true"}

#: What containers in accounts of one token need.
_ADMIN_ADVICE = (
    " (the one token for all accounts has to be a reseller admin's, and the cluster has to make accounts by"
    " itself, account_autocreate; else give a list of credentials, --credentials)"
)


class _InterruptedError(Exception):
    """Ends the making of containers."""


def make_run_containers(
    parts: Sequence[GroupRun], options: RunOptions, tokens: TokenSource, loop: MasterLoop, mark: str | None
) -> None:
    """Make the containers of a run, until it is interrupted; workers get a token that was renewed meanwhile.

    ``mark`` is what the requests carry in their transaction ids. Raises ClusterError.
    """
    try:
        alike: dict[ContainerSet, list[ContainerSet]] = {}
        for place in merge_container_sets(place for part in parts for place in part.places):
            alike.setdefault(replace(place, account=0), []).append(place)
        for places in alike.values():
            using = [part.scenario for part in parts if part.places[0] in places[0]]
            names = {name for scenario in using for name in scenario.operation_names}
            versioned = any(OPERATIONS.named(name).beside for name in names)
            _make_container_sets(places, parts[0].scenario, options, tokens, loop, mark, versioned=versioned)
    except _InterruptedError:
        return
    for part in parts:
        sessions = [place.session(tokens.sessions) for place in part.places]
        token, accounts = sessions[0].token, accounts_of_sessions(sessions)
        if (part.crew.parameters.token, part.crew.parameters.accounts) != (token, accounts):
            part.crew.change(token=token, accounts=accounts)


def _make_container_sets(
    places: Sequence[ContainerSet],
    scenario: Scenario,
    options: RunOptions,
    tokens: TokenSource,
    loop: MasterLoop,
    mark: str | None,
    *,
    versioned: bool,
) -> None:
    """Make the containers of places that differ in their accounts.

    ``versioned``: beside each is one more, that keeps versions.
    """
    place = places[0]

    def check() -> None:
        loop.fleet.look_after_descriptors(time.monotonic())
        if loop.interrupted.is_set():
            raise _InterruptedError

    _log.info(
        "Making sure that %d containers (%s_*%s) exist%s, %d at once%s",
        place.container_count,
        place.container_base,
        f"_{place.policy}" if place.policy else "",
        f" in each of {len(places)} accounts" if len(places) > 1 else "",
        scenario.container_concurrency,
        "" if place.storage_url is None else f", at {place.storage_url}",
    )
    own = dict(scenario.container_put_headers)
    kinds = [(str, own)] + [(versioned_container, own | _VERSIONS_HEADER)] * versioned
    with ProgressBar("Containers", len(places) * len(kinds) * place.container_count) as bar:
        for each, (name_of, headers) in product(places, kinds):
            try:
                STORE.prepare(
                    each.session(tokens.sessions),
                    [*map(name_of, each.containers)],
                    each.policy,
                    scenario.container_concurrency,
                    bar.advance,
                    timeouts=(options.requests.connect_timeout, options.requests.network_timeout),
                    check=check,
                    renew=each.renewing(tokens),
                    trans_id_extra=mark,
                    headers=headers,
                )
            except ClusterError as error:
                raise ClusterError(f"{error}{_ADMIN_ADVICE if tokens.shared else ''}") from None


def upload_initial_objects(
    scenario: Scenario,
    options: RunOptions,
    workload: Workload,
    state: Population,
    loop: MasterLoop,
    *,
    pace: Pace | None = None,
    crew: GroupWorkers | None = None,
    found: FoundObjects | None = None,
) -> InitialUploads:
    """Upload the initial objects that are not there yet, until interrupted; return what came of it.

    ``pace`` and ``crew`` are as in :meth:`~ssbench.run.loop.MasterLoop.run`. ``found`` is what is there; without
    it each object is looked for. Warns of those that could not be
    uploaded. Raises ClusterError if not one could be, and what :meth:`~ssbench.run.loop.MasterLoop.run` raises.
    """
    total = sum(each.initial_files for each in scenario.size_classes)
    _log.info("Uploading initial objects where they are not there yet (%d)", total)
    looked_for = ((UPLOAD_IF_MISSING.code, *each) for each in workload.initial_objects())
    tasks = looked_for if found is None else found.tasks()
    upload_bytes = forecast_scenario(scenario).upload_bytes
    # A request counts as so many bytes in the guess at the time that is left.
    request = SECONDS_PER_REQUEST * BYTES_PER_SECOND / scenario.user_count
    with ProgressBar("Initial objects", total, TransferAmount(upload_bytes, request)) as bar:
        uploads = InitialUploads(tasks, state, bar, loop.interrupted.is_set)
        loop.run(uploads, pace=pace, crew=crew)
    if found is not None:
        uploads.replaced += min(found.replaced, uploads.uploaded)
        uploads.uploaded -= min(found.replaced, uploads.uploaded)
    if not options.noop:
        others = uploads.owners.total()
        why = explain_replacement(uploads.replaced, others, verified=options.verify, exact=found is not None)
        _log.info(
            "Initial objects: %d uploaded, %d replaced%s, %d reused",
            uploads.uploaded,
            uploads.replaced,
            f" ({why})" if why else "",
            uploads.reused,
        )
        for name, count in uploads.owners.items():
            _log.info(
                "%d objects of the scenario %r had the names of initial objects of this one", count, name
            )
    if uploads.failed and not loop.interrupted.is_set():
        if not uploads.succeeded:
            raise ClusterError(
                f"not one of the {total} initial objects could be uploaded: {uploads.failure_text()}"
            )
        loop.news.warn(
            f"{uploads.failed} of {total} initial objects could not be uploaded: {uploads.failure_text()}"
        )
    return uploads
