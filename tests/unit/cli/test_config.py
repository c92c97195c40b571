"""``ssbench-master config``: what it prints can be put into a file, and means the same there."""

from __future__ import annotations

import math
import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ssbench.cli.config import ConfiguredOption, _format_options, _make_plain_value

SCALARS = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)


@given(SCALARS | st.lists(SCALARS, max_size=4))
def test_a_value_is_spelt_as_toml_has_it(value: Any) -> None:
    (heading, line, _) = _format_options(
        [ConfiguredOption("run-scenario", "user-count", value, "ssbench.toml", "SSBENCH_X")]
    )
    assert heading == "[run-scenario]"
    assert tomllib.loads(f"{heading}\n{line}") == {"run-scenario": {"user-count": value}}


def test_options_are_in_columns_with_where_they_are_from() -> None:
    options = [
        ConfiguredOption("run-scenario", "retries", 5, "ssbench.toml", "SSBENCH_RUN_SCENARIO_RETRIES"),
        ConfiguredOption("run-scenario", "u", None, None, "SSBENCH_RUN_SCENARIO_U"),
        ConfiguredOption("worker", "label", 'a "b"', "SSBENCH_WORKER_LABEL", "SSBENCH_WORKER_LABEL"),
    ]
    assert _format_options(options) == [
        "[run-scenario]",
        "retries = 5  # ssbench.toml",
        "u            # default; SSBENCH_RUN_SCENARIO_U",
        "",
        "[worker]",
        'label = "a \\"b\\""  # SSBENCH_WORKER_LABEL',
        "",
    ]


def test_what_toml_does_not_have_is_a_text() -> None:
    assert _make_plain_value((1, None, {"a"}, [math.inf, True])) == [1, None, "{'a'}", [math.inf, True]]
