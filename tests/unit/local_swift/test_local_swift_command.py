"""What ``local-swift`` does before it starts a Swift: a file that was left, and who may reach it."""

from __future__ import annotations

import logging
import os
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asked_commands import ask

from ssbench.base.errors import UsageError
from ssbench.local_swift import LocalSwift, local_swift


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
    assert local_swift._is_left_behind(file)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        file.write_text(variables(server.getsockname()[1]))
        assert not local_swift._is_left_behind(file)


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
    assert not local_swift._is_left_behind(file)
    assert not local_swift._is_left_behind(tmp_path / "none")
    assert not local_swift._is_left_behind(tmp_path)


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
    users = ["(test:tester)", "(testing)", "(admin:admin, admin)"]
    words = [f"Other hosts may reach {address}: ", *users, "no secret"]
    assert [[word in message for word in words] for message in caplog.messages] == [[True] * 5] * (
        not is_local
    )


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """Return a named pipe, and the descriptor of its reader."""
    path = tmp_path / "variables"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield path, reading
    os.close(reading)


def refuse(_asked: local_swift.LocalSwiftAsked) -> LocalSwift:
    raise UsageError("refused")


@pytest.mark.parametrize("name", ["variables", "-"])
def test_what_is_no_file_of_ours_is_not_removed(
    name: str, pipe: tuple[Path, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--env-file >(...)``, or /dev/stdout: root would have removed it from the system."""
    monkeypatch.chdir(tmp_path)
    Path("-").write_text("mine")
    monkeypatch.setattr(local_swift, "_make_local_swift", refuse)
    with pytest.raises(UsageError, match="refused"):
        local_swift._serve(ask("local-swift", env_file=Path(name)))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["-", "variables"]


def test_a_pipe_has_the_variables_and_stays(pipe: tuple[Path, int]) -> None:
    path, reading = pipe
    swift: Any = SimpleNamespace(
        auth_url="u", user="a:b", key="k", log_directory="l", recon_urls={}, proxies=["proxy-1"]
    )
    with local_swift._publish_variables(swift, path):
        assert os.read(reading, 65536).startswith(b"export ST_AUTH=u\n")
    assert path.is_fifo()


def test_a_file_that_cannot_be_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unlink(_path: Path, *, missing_ok: bool) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", unlink)
    file = tmp_path / "swift.env"
    file.write_text("mine")
    with pytest.raises(UsageError, match=r"swift.env: cannot be removed: Permission denied"):
        local_swift._serve(ask("local-swift", env_file=file, force=True))
