"""The whole program under faults at random, for some seconds; ``tests/long`` has more.

The seed is that of the faults: ``python bench/soak.py --planted --seed 1 --seconds 14`` has them again.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from soaked import soak


@pytest.mark.long
@pytest.mark.timeout(400)
def test_what_a_store_did_under_faults_is_what_the_run_says_of_it(tmp_path: Path) -> None:
    """Workers are killed, stopped and cut off, links in one direction too, and the store fails at times."""
    found = soak(tmp_path, "--planted", "--seconds=14", "--seed=1")
    assert found["workers killed and started"] > 0
    assert found["workers stopped and continued"] > 0
    assert found["links cut in one direction"] > 0
    assert found["requests in the log of the store"] > 100
