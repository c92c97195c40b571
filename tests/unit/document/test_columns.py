"""Text in columns: where it is wrapped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ssbench.document import columns


@given(st.lists(st.text(max_size=100), max_size=20))
def test_wrapping_loses_nothing(words: list[str]) -> None:
    text = "".join(char for word in words for char in word if not char.isspace())
    lines = list(columns.wrap_words(words))
    assert "".join(char for line in lines for char in line if not char.isspace()) == text
