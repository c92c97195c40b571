"""What is recorded of objects of sides."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from result_rows import slow_result
from sided_scenarios import POLICIES, scenario

from ssbench.reports.key_figures import format_object_path
from ssbench.results.run_description import RunDescription
from ssbench.run.run_records import make_run_description
from ssbench.scenario.operations import READ


def described(run, side):
    return format_object_path(run, slow_result(operation=READ.code, container=3, object=5, group=side))


def test_what_is_reported_of_an_object_is_the_container_of_its_side():
    run = RunDescription(scenario(policy="tin"), sides=("x", "y"), side_policies=("p", "q"))
    assert [described(run, side) for side in (0, 1)] == [
        "ssbench_000003_p/small_000005",
        "ssbench_000003_q/small_000005",
    ]
    now = replace(run, side_policies=(), side_prefixes=("b", "a"))
    assert [described(now, side) for side in (0, 1)] == [
        "ssbench_000003_tin/b-small_000005",
        "ssbench_000003_tin/a-small_000005",
    ]
    fleet = SimpleNamespace(
        parameters=SimpleNamespace(trans_id_extra=None),
        storage_urls=["http://a"],
        roster=SimpleNamespace(living=list),
    )
    made = make_run_description(1, scenario(), 1, fleet, {}, sides=POLICIES)
    assert (made.side_policies, made.side_prefixes) == (("p", "q"), ("b", "a"))
