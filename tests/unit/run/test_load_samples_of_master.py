"""What the master itself did while a phase went on."""

from __future__ import annotations

import math

from golden_words import GoldenWords

from ssbench.run import worker_messages
from ssbench.run.load_samples import MASTER_GAP_SECONDS, MasterLoad


def test_turns_that_begin_late_are_kept_where_they_are_gaps() -> None:
    own = MasterLoad()
    own.begin(10.0, 2.0)
    own.turn(11.0, 11.0 + MASTER_GAP_SECONDS / 2)
    own.turn(12.0, 13.5)
    own.turn(14.0, 14.25)
    own.turn(15.0, 14.5)
    own.turn(math.inf, 16.0)
    assert own.longest == 1.5
    assert own.gaps == [(12.0, 13.5), (14.0, 14.25)]
    used = own.used(20.0, 5.5)
    assert used.unread == 3.5
    assert used.cpu_share is not None
    assert 0 <= used.cpu_share < math.inf
    own.begin(20.0, 5.5)
    assert (own.longest, own.gaps, own.used(20.0, 5.5).cpu_share) == (0.0, [], None)


def test_stalls_that_are_not_kept_are_counted(golden_words: GoldenWords) -> None:
    own = MasterLoad()
    for turn in range(1003):
        own.turn(turn, turn + 2 * MASTER_GAP_SECONDS)
    assert (len(own.gaps), own.gaps_dropped) == (1000, 3)
    golden_words(worker_messages.describe_strange_results([], 0, own.gaps_dropped))
    own.begin(2000.0, 0.0)
    assert own.gaps_dropped == 0
