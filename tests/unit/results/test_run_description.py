"""What a stat file says of its run: the sides by the names that were given."""

from __future__ import annotations

from dataclasses import replace

from counted import SCENARIO

from ssbench.results.run_description import RunDescription


def test_the_sides_of_a_run_are_named() -> None:
    sides = {"sides": ["old=account", "new=account"]}
    urls = ("http://proxy/v1/AUTH_a", "http://proxy/v1/AUTH_b")
    run = RunDescription(SCENARIO, "1.0", storage_urls=urls, sides=("old", "new"), options=sides)
    assert run.sides_as_given == (f"old={urls[0]}", f"new={urls[1]}")
    policies = replace(run, storage_urls=urls[:1], options={"sides": ["old=gold", "new=<tin>"]})
    assert policies.sides_as_given == ("old=gold", "new=<tin>")
    assert replace(policies, options={"sides": 3}).sides_as_given == ("old", "new")
