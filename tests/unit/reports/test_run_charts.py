"""Charts of runs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ssbench.reports import run_charts


@pytest.mark.parametrize(
    ("end", "words"), [(60.05, ""), (60.2, "Shaded light grey: after sending had ended.")]
)
def test_what_is_too_narrow_to_be_seen_is_not_explained(end: float, words: str) -> None:
    """A page of a run that goes on explained a shade that was nowhere."""
    course = SimpleNamespace(window=SimpleNamespace(seconds=60.0), stalls=())
    run = SimpleNamespace(course=course, start=1e9, generator=SimpleNamespace(gaps=()))
    over_time = SimpleNamespace(starts=np.array([0.0]), seconds=np.array([end]))
    shaded, said = run_charts._shaded_spans(run, over_time)
    assert (len(shaded), said) == (bool(words), words)
