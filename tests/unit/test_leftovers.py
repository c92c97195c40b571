"""What is said of the objects that a run leaves."""

from __future__ import annotations

from dataclasses import replace

from ssbench.run.leftovers import what_deletes
from ssbench.run.options import Side
from ssbench.scenario.model import Scenario


def test_what_deletes_them() -> None:
    scenario = Scenario("s", (), 1, operation_count=1, container_base="my base", policy="gold")
    command = "ssbench-master cleanup-containers --container-base 'my base' -p gold"
    assert what_deletes(scenario, (), local_swift=False).endswith(f": {command}")
    assert what_deletes(replace(scenario, policy=None), (), local_swift=False).endswith(
        " --container-base 'my base'"
    )
    # Nothing can be deleted in a Swift that is gone when the user reads this.
    assert "cleanup-containers" not in what_deletes(scenario, (), local_swift=True)


def test_what_deletes_both_sides() -> None:
    scenario = Scenario("s", (), 1, operation_count=1, container_base="base")
    command = "ssbench-master cleanup-containers --container-base base"
    policies = Side("x", policy="gold"), Side("y", policy="ec")
    assert what_deletes(scenario, policies, local_swift=False).endswith(f": {command}")
    urls = Side("x", "http://one/v1/a"), Side("y", "http://two/v1/a")
    both = f"{command} -S http://one/v1/a and {command} -S http://two/v1/a"
    assert what_deletes(scenario, urls, local_swift=False).endswith(f": {both}")
    accounts = Side("old"), Side("new")
    assert what_deletes(scenario, accounts, local_swift=False).endswith(
        f": {command}, with the variables of each of the accounts old and new"
    )
