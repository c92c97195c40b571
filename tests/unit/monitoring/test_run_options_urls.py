"""Options of metrics: the URLs that they take."""

from __future__ import annotations

import pytest

from ssbench.cli.parser import Parser
from ssbench.monitoring import run_options


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("collector:4318", "is not a URL"),
        ("ftp://h", "is not a URL"),
        ("http://", "is not a URL"),
        ("http://h:x", "is not a URL"),
        ("http://h?x=1", "is not a URL"),
        ("http://me:secret@h", "a user name or a password is logged"),
    ],
)
@pytest.mark.parametrize("option", ["--otlp", "--metrics-push"])
def test_wrong_addresses(option: str, url: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser()
    run_options.add_metrics_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args([option, url])
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "example"), [("--otlp", "http://10.0.0.4:4318"), ("--metrics-push", "http://10.0.0.4:9091")]
)
def test_a_wrong_address_is_answered_with_one_of_that_server(
    option: str, example: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = Parser()
    run_options.add_metrics_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args([option, "collector"])
    assert f"argument {option}: 'collector' is not a URL such as {example} " in capsys.readouterr().err
