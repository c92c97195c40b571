"""The sub-command attribute: which options go together."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from ssbench.base.errors import UsageError
from ssbench.cluster import attribute


def test_the_settings_of_a_run_do_not_make_attribute_write_to_a_url() -> None:
    arguments = argparse.Namespace(
        transaction=None, trace=None, json=None, html=None, otlp=Path("http://collector:4318"), compare=None
    )
    with pytest.raises(UsageError, match="it is run-scenario that sends metrics to a URL"):
        attribute.check_request_options(arguments)
    arguments.set_elsewhere = {"otlp": (None, "SSBENCH_OTLP")}
    attribute.check_request_options(arguments)
    assert arguments.otlp is None
