"""The whole program under faults at random, its Swift too; ``bench/soak.py`` goes on for longer.

The seed is that of the faults: ``python bench/soak.py --seed 5 --seconds 30`` has them again.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from soaked import soak


@pytest.mark.timeout(400)
def test_half_a_minute_of_faults_loses_nothing_and_leaks_nothing(tmp_path: Path) -> None:
    found = soak(tmp_path, "--seconds=30", "--seed=5")
    assert found["workers killed and started"] > 0
    assert found["workers stopped and continued"] > 0
    assert found["proxy restarted"] > 0
    assert found["work ports blocked"] > 0
    assert found["links dropped for 2 s"] > 0
    assert found["results after the reader left"] > 0
    assert "gave up without Swift after" in found
    # How many there are depends on how busy the machine is: it is seconds under faults.
    assert found["results"] > 0
