"""Where the containers of a run are made: once for all users that share them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ssbench.run.tokens import TokenRenewal, TokenSource
from ssbench.scenario.model import Scenario
from ssbench.scenario.names import container_name
from ssbench.store.stores import Session


@dataclass(frozen=True, slots=True)
class ContainerSet:
    """Containers in an account: what their names begin with, their policy and their number.

    ``account`` is the number of the account among those of the bench. ``storage_url`` is the one by which it
    is reached, None: any that it has.
    """

    container_base: str
    policy: str | None
    container_count: int
    account: int = 0
    storage_url: str | None = None

    def __contains__(self, other: ContainerSet) -> bool:
        """Whether the containers of another place are among its own."""
        return replace(other, container_count=self.container_count) == self

    @property
    def containers(self) -> list[str]:
        """Their names."""
        return [
            container_name(self.container_base, number, self.policy) for number in range(self.container_count)
        ]

    def session(self, sessions: Sequence[Session]) -> Session:
        """Return the session of its account, with its storage URL."""
        found = sessions[self.account]
        return found if self.storage_url is None else replace(found, storage_urls=(self.storage_url,))

    def renewing(self, tokens: TokenSource) -> Callable[[], Session] | None:
        """Return what renews the token of its account; None where there is no other."""
        renew = tokens.renewing(self.account)
        if renew is None:
            return None

        def renewed() -> Session:
            renew()
            return self.session(tokens.sessions)

        return renewed


def container_set_of(scenario: Scenario, account: int = 0, storage_url: str | None = None) -> ContainerSet:
    """Return the place of the containers of a scenario without groups, in one of its accounts."""
    return ContainerSet(
        scenario.container_base, scenario.policy, scenario.container_count, account, storage_url
    )


def container_sets_of(scenario: Scenario) -> list[ContainerSet]:
    """Return the places of the containers of a scenario without groups, one in each account."""
    return [container_set_of(scenario, account) for account in range(scenario.accounts)]


def merge_container_sets(places: Iterable[ContainerSet]) -> list[ContainerSet]:
    """Return the places that differ; of those that differ in their number of containers, the largest."""
    found: dict[ContainerSet, ContainerSet] = {}
    for place in places:
        key = replace(place, container_count=0)
        count = max(place.container_count, found[key].container_count if key in found else 0)
        found[key] = replace(place, container_count=count)
    return [*found.values()]


def renewals_of_container_sets(
    places: Iterable[ContainerSet], renewals: Sequence[TokenRenewal]
) -> list[TokenRenewal]:
    """Return what renews the tokens of the accounts of some places: one for each, or one for all of them."""
    if not renewals:
        return [TokenRenewal(None)]
    return [*dict.fromkeys(renewals[place.account % len(renewals)] for place in places)]
