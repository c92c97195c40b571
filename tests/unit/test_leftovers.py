"""What is said of the objects that a run leaves."""

from __future__ import annotations

from dataclasses import replace

from ssbench.run.leftovers import what_deletes
from ssbench.run.options import Side
from ssbench.run.part import parts_of
from ssbench.run.places import Place
from ssbench.scenario.model import Scenario, SizeClass


def test_what_deletes_them() -> None:
    place = Place("my base", "gold", 3)
    command = "ssbench-master cleanup-containers --container-base 'my base' -p gold"
    assert what_deletes([place], (), local_swift=False).endswith(f": {command}")
    assert what_deletes([replace(place, policy=None)], (), local_swift=False).endswith(
        " --container-base 'my base'"
    )
    accounts = what_deletes([place], (), local_swift=False, options=["--accounts=2"])
    assert "cleanup-containers --accounts=2 --container-base" in accounts
    # Nothing can be deleted in a Swift that is gone when the user reads this.
    assert "cleanup-containers" not in what_deletes([place], (), local_swift=True)


def what_deletes_of(*sides: Side) -> str:
    scenario = Scenario(
        "s", (SizeClass("c", 1, 1, 1, (1, 1, 1, 1)),), 2, operation_count=1, container_base="b"
    )
    places = (part.places[0] for part in parts_of(scenario, 1, None, sides))
    return what_deletes(places, sides, local_swift=False)


def test_what_deletes_both_sides() -> None:
    command = "ssbench-master cleanup-containers --container-base b"
    both = what_deletes_of(Side("x", policy="gold"), Side("y", policy="ec"))
    assert both.endswith(f": {command} -p gold and {command} -p ec")
    both = what_deletes_of(Side("x", "http://one/v1/a"), Side("y", "http://two/v1/a"))
    assert both.endswith(f": {command} -S http://one/v1/a and {command} -S http://two/v1/a")
    both = what_deletes_of(Side("old"), Side("new"))
    assert both.endswith(f": {command}, with the variables of each of the accounts old and new")
