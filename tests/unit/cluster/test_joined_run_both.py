"""Two runs as one: what the same servers did in both has one place, what another did has its own."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster.joined_run import NO_INDEX, JoinedRun, TakenResults, concatenate_runs

SMALL = Shape(devices=4, nodes=3, requests=60)


def said(joined: JoinedRun) -> list[tuple[object, ...]]:
    """Return each line with the names of all that it refers to, in order."""
    lines = joined.lines
    return [
        (
            joined.operations.latency[lines.operation[place]],
            joined.devices[lines.device[place]],
            joined.processes[lines.process[place]],
            joined.partitions[lines.partition[place]],
            lines.seconds[place],
            lines.of[place],
        )
        for place in range(len(lines))
    ]


def proxies(joined: JoinedRun) -> list[str | None]:
    return [None if place == NO_INDEX else joined.proxies[place] for place in joined.proxy.tolist()]


def test_every_line_refers_to_what_it_referred_to() -> None:
    before, after = simulate(1, Cause(), SMALL), simulate(2, Cause(), Shape(devices=6, nodes=3, requests=70))
    # Without names in common the places of the second run have to move.
    after.devices.reverse()
    after.proxies[:] = [f"other {name}" for name in after.proxies]
    after.proxy[5] = NO_INDEX
    merged = concatenate_runs(before, after)
    assert said(merged) == said(before) + said(after)
    assert proxies(merged) == proxies(before) + proxies(after)
    assert None in proxies(merged)
    assert len(merged.proxies) == len(before.proxies) + len(after.proxies)
    assert len(set(merged.devices)) == len(merged.devices)
    assert set(merged.devices) == {*before.devices, *after.devices}
    assert merged.taken == TakenResults(130, 130)


def test_what_is_counted_adds_up() -> None:
    merged = concatenate_runs(
        *(
            replace(
                simulate(count, Cause(), SMALL),
                duplicates=count,
                without_id=count,
                errors=Counter({("d1", "timeout"): count}),
                other_errors=Counter({("d2", "refused"): count}),
            )
            for count in (2, 3)
        )
    )
    assert (merged.duplicates, merged.without_id) == (5, 5)
    assert merged.errors == {("d1", "timeout"): 5}
    assert merged.other_errors == {("d2", "refused"): 5}


def test_objects_of_two_runs_are_others_though_their_numbers_are_the_same() -> None:
    run = simulate(1, Cause(), SMALL)
    merged = concatenate_runs(run, run)
    assert len(set(merged.operations.subject.tolist())) == 2 * len(run.operations.code)
    assert merged.devices == run.devices
    assert np.array_equal(merged.lines.device, np.tile(run.lines.device, 2))
    assert merged.lines.operation.max() == len(merged.operations.code) - 1
