"""Labels of runs."""

from __future__ import annotations

import argparse

import pytest

from ssbench.cli.options import parse_label


def test_labels():
    assert parse_label("before upgrade") == "before upgrade"
    for wrong in ("", "@x", " x", "a\nb", "x" * 101):
        with pytest.raises(argparse.ArgumentTypeError, match="is not a label"):
            parse_label(wrong)
