"""Rows of suites whose runs are simulated, and as good as they can be."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from zlib import crc32

import numpy as np
from simulated_runs import reads

from ssbench.base.errors import ExitCode
from ssbench.comparison.suite_rows import KeptRun, SuiteRow, make_kept_run


@cache
def make_run(seed: int, slow: float = 1.0, number: int = 1) -> KeptRun:
    return replace(
        make_kept_run(reads(np.random.default_rng(seed), 20, slow), f"{seed}.stat.gz", number),
        code=ExitCode.OK,
        reasons=(),
        warnings=(),
    )


def row(name: str, count: int = 3, slow: float = 1.0) -> SuiteRow:
    """Return a row whose runs follow from its name: of random ones some show a change where there is none."""
    seed = crc32(name.encode()) % 1000
    return SuiteRow(name, tuple(make_run(seed + each, slow, each + 1) for each in range(count)))
