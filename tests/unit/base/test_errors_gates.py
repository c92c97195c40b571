"""The exit code of conditions that pass, fail or are undecided."""

from __future__ import annotations

import pytest

from ssbench.base.errors import ExitCode, GateResult, Undecided, choose_exit_code

P, F, U = GateResult.PASSED, GateResult.FAILED, GateResult.UNDECIDED


@pytest.mark.parametrize(
    ("results", "report", "fail", "passing"),
    [
        ((), 0, 0, 0),
        ((P, P), 0, 0, 0),
        ((P, U), 6, 5, 0),
        ((U, F, P), 5, 5, 5),
    ],
)
def test_the_worst_gate_decides(results, report, fail, passing):
    codes = [choose_exit_code(results, undecided) for undecided in Undecided]
    assert codes == [ExitCode(report), ExitCode(fail), ExitCode(passing)]
