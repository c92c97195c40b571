"""What ``local-swift`` does before it starts a Swift: a file that was left, and who may reach it."""

from __future__ import annotations

import logging
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ssbench.cli import local_swift
from ssbench.local_swift import LocalSwift


@pytest.fixture
def port() -> Iterator[int]:
    """Return a port that is taken and at which nothing listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def variables(port: int, **more: str) -> str:
    values = {"ST_AUTH": f"http://127.0.0.1:{port}/auth/v1.0", "ST_USER": "test:tester", "ST_KEY": "testing"}
    values |= {"SWIFT_LOGS": "/tmp/a b", "SWIFT_RECON": "http://127.0.0.1:1", **more}
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())


def test_a_file_that_a_killed_swift_left_is_known(port: int, tmp_path: Path) -> None:
    file = tmp_path / "swift.env"
    file.write_text(variables(port))
    assert local_swift._was_left(file)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        file.write_text(variables(server.getsockname()[1]))
        assert not local_swift._was_left(file)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "mine",
        "export ST_AUTH=http://127.0.0.1:{port}/auth/v1.0\n",
        "{whole}rm -r /\n",
        "{whole}export PATH\n",
        "{whole}# a comment\n",
        "{whole}x=1\n",
        "export ST_AUTH='\n",
        "\0",
    ],
)
def test_a_file_of_the_users_own_is_not(content: str, port: int, tmp_path: Path) -> None:
    file = tmp_path / "swift.env"
    file.write_text(content.format(port=port, whole=variables(port)))
    assert not local_swift._was_left(file)
    assert not local_swift._was_left(tmp_path / "none")
    assert not local_swift._was_left(tmp_path)


@pytest.mark.parametrize(
    ("address", "is_local"),
    [
        ("127.0.0.1", True),
        ("127.0.0.2", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.4", False),
    ],
)
def test_a_swift_that_others_reach_is_warned_of(
    address: str, is_local: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        local_swift._warn_of_others(LocalSwift(bind_ip=address))
    words = [f"Other hosts may reach {address}: ", "(test:tester)", "(testing)", "no secret"]
    assert [[word in message for word in words] for message in caplog.messages] == [[True] * 4] * (
        not is_local
    )
