"""Where the containers of a run are made: once, or once for each of its two sides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from ssbench.operations import Operation
from ssbench.run.options import RunOptions
from ssbench.run.tokens import TokenSource
from ssbench.scenario.model import Scenario
from ssbench.swift.credentials import Session


@dataclass(frozen=True, slots=True)
class Place:
    """The storage URLs and the token of a session, how to get a new one, and the policy there."""

    session: Session
    renew: Callable[[], Session] | None
    policy: str | None


def places_of(scenario: Scenario) -> list[Scenario]:
    """Return a scenario for each set of containers that the groups of a scenario use; itself without groups.

    Groups that share containers may differ in their number: all are made.
    """
    found: dict[tuple[str, str | None], Scenario] = {}
    for part in scenario.parts:
        key = part.container_base, part.policy
        count = max(part.container_count, found[key].container_count if key in found else 0)
        found[key] = replace(
            scenario, container_base=part.container_base, policy=part.policy, container_count=count
        )
    return [*found.values()]


def places_with(scenario: Scenario, operation: Operation) -> set[tuple[str, str | None]]:
    """Return the base name and the policy of containers in which an operation takes place."""
    return {
        (part.container_base, part.policy)
        for part in scenario.parts
        if operation.name in part.operation_names
    }


def container_places(scenario: Scenario, options: RunOptions, tokens: TokenSource) -> list[Place]:
    """Return the places, of which each has all containers."""
    if not options.sides:
        return [Place(tokens.sessions[0], tokens.renewing(0), scenario.policy)]
    places = []
    for number, side in enumerate(options.sides):
        account = min(number, len(tokens.sessions) - 1)
        at_side = partial(_with_url, side.storage_url)
        renewing = tokens.renewing(account)
        renew = None if renewing is None else partial(_renewed, renewing, at_side)
        places.append(Place(at_side(tokens.sessions[account]), renew, side.policy or scenario.policy))
    return places


def _with_url(url: str | None, session: Session) -> Session:
    return session if url is None else replace(session, storage_urls=(url,))


def _renewed(renew: Callable[[], Session], at_side: Callable[[Session], Session]) -> Session:
    return at_side(renew())
