"""How many errors a run may have."""

from __future__ import annotations

import pytest

from ssbench.run.bench_options import ErrorLimit, parse_error_limit


def test_how_many_errors_a_run_may_have():
    assert parse_error_limit("0") == ErrorLimit(count=0)
    assert parse_error_limit("0").exceeded(1, 1)
    assert not parse_error_limit("10").exceeded(10, 10)
    share = parse_error_limit("1 %")
    assert share == ErrorLimit(share=0.01)
    assert str(share) == "1%"
    assert not share.exceeded(99, 99)
    assert not share.exceeded(1, 100)
    assert share.exceeded(2, 100)
    for wrong in ("", "-1", "1.5", "101%", "%", "x", "1e3", "٣"):
        with pytest.raises(ValueError, match=r"such as 100 or 0\.5%"):
            parse_error_limit(wrong)
