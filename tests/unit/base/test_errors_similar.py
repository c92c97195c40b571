"""What may have been meant."""

from __future__ import annotations

from ssbench.base import errors


def test_suggestions():
    known = ["very_small", "small", "4kB_read", "4kB_write"]
    assert errors.find_similar("smal", known)[0] == "small"
    assert errors.find_similar("4KB_READ", known)[0] == "4kB_read"
    assert errors.find_similar("4k", known) == ["4kB_read", "4kB_write"]
    assert errors.find_similar("huge", known) == []
    assert errors.did_you_mean("smal", known).startswith("; did you mean small")
    assert errors.did_you_mean("huge", known) == ""
