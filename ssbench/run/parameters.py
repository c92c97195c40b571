"""The parameters of a run, as its workers get them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ssbench.fleet.wire import AccountAccess, RunParameters
from ssbench.run.options import RunOptions
from ssbench.scenario.model import Scenario
from ssbench.scenario.operation import OperationSettings
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.scenario.owner import make_owner

if TYPE_CHECKING:
    from ssbench.store.stores import Session


def make_run_parameters(
    run_id: int,
    mark: str | None,
    scenario: Scenario,
    options: RunOptions,
    sessions: Sequence[Session],
    group: int = 0,
    seed: int = 0,
    names: Sequence[str] | None = None,
) -> RunParameters:
    """Return the parameters of a run, or of one ``group`` of users in it.

    ``seed`` is what the group draws by. ``names`` are what the names of objects begin with, where those are
    not the names of size classes.

    ``sessions`` are those of its accounts; there are none in a no-op run.
    """
    session = sessions[0] if sessions else None
    return RunParameters(
        run_id=run_id,
        token=session.token if session else None,
        storage_urls=list(session.storage_urls) if session else [],
        requests=options.requests,
        trans_id_extra=mark,
        noop=options.noop,
        container_base=scenario.container_base,
        policy=scenario.policy,
        size_classes=list(names or [each.name for each in scenario.size_classes]),
        size_ranges=[(each.size_min, each.size_max) for each in scenario.size_classes],
        delete_after=scenario.delete_after,
        delete_after_most=scenario.delete_after_most,
        insecure=session.insecure if session else False,
        ca_certificates=session.ca_certificates if session else None,
        owners=[make_owner(scenario, each) for each in scenario.size_classes],
        verify_seed=run_id if options.verify and session and not options.existing else None,
        zeros=0.0 if scenario.body is None else scenario.body.zeros,
        files=None if scenario.body is None else scenario.body.files,
        metadata=(0, 0) if scenario.metadata is None else (scenario.metadata.number, scenario.metadata.size),
        new_connections=scenario.connections.new if scenario.connections else 0.0,
        seed=seed % 2**63,
        tls_resume=scenario.connections is not None and scenario.connections.tls_resume,
        every_etag=options.verify and options.existing is not None,
        group=group,
        operations=list(scenario.operations),
        object_names=scenario.object_names,
        most_requests=_max_requests(scenario),
        accounts=accounts_of_sessions(sessions),
    )


def accounts_of_sessions(sessions: Sequence[Session]) -> list[AccountAccess]:
    """Return what workers get of accounts, where there are several; the token once where it is the same."""
    if len(sessions) < 2:
        return []
    same = len({session.token for session in sessions}) == 1
    return [(list(session.storage_urls), None if same else session.token) for session in sessions]


def _max_requests(scenario: Scenario) -> int:
    """Return how many requests an operation of a scenario is at most; an initial upload may be two."""
    settings = {each.name: each for each in scenario.operations}
    names = {name for each in scenario.size_classes for name, weight in each.weights.items() if weight}
    rows = [OPERATIONS.named(name) for name in names]
    return max([2, *(row.most_requests(settings.get(row.name, OperationSettings(row.name))) for row in rows)])
