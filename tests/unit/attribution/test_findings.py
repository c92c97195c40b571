"""What several findings together say."""

from __future__ import annotations

from genuine_runs import genuine

from ssbench.attribution.findings import attribute


def test_a_process_is_named_where_all_its_devices_are_slow() -> None:
    found = attribute(genuine("block1")).findings
    slow = [each.name for each in found if each.kind == "slow"]
    (together,) = (each for each in found if each.kind == "together")
    assert (together.level, together.name) == ("process", "object server 1 on o1")
    assert together.members == sorted(slow) == ["d1 on o1", "d4 on o1"]
    assert [each for each in attribute(genuine("fsync3")).findings if each.kind == "together"] == []
