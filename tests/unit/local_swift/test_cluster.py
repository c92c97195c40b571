"""The embedded Swift as a whole, with servers in its place that only say that they are ready."""

from __future__ import annotations

import errno
import importlib.metadata
import logging
import os
import socket
import threading
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest
from golden_words import GoldenWords
from runs import wait_until

from ssbench.base.errors import ClusterError, UsageError
from ssbench.local_swift import Layout, LocalSwift, cluster
from ssbench.local_swift.cluster import PortTakenError, start_swifts
from ssbench.local_swift.configuration import SwiftConfiguration


class Server:
    """A process that starts at once, or finds its port taken so many times."""

    taken = 0
    broken = False

    def __init__(self, directory: Path, name: str, apps: list[str], python: str | None, swift: str) -> None:
        self.name, self.apps, self.swift, self.runs = name, apps, swift, False

    def launch(self) -> None:
        self.runs = True

    def wait_ready(self, timeout: float) -> None:
        if Server.broken and self.name == "listings":
            raise ClusterError(f"it did not start: {self.swift}")
        if Server.taken and self.name == "object-1":
            Server.taken -= 1
            raise PortTakenError

    def kill(self) -> None:
        self.runs = False

    @property
    def pid(self) -> int | None:
        return 1 if self.runs else None

    def restart(self) -> None:
        self.launch()
        self.wait_ready(0.0)


@pytest.fixture(autouse=True)
def servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ServerProcess", Server)
    monkeypatch.setattr(Server, "taken", 0)
    monkeypatch.setattr(Server, "broken", False)
    # Wherever these tests keep their files.
    monkeypatch.setattr(cluster, "has_extended_attributes", lambda _: True)


def test_a_server_for_each_process_and_an_address_for_each_proxy(tmp_path: Path) -> None:
    with LocalSwift(tmp_path, layout=Layout(proxies=2, object_servers=2, devices=3)) as swift:
        assert [server.name for server in swift.servers] == [
            *("proxy-1", "proxy-2", "listings", "object-1", "object-2")
        ]
        assert swift.proxy is swift.proxies[0]
        assert [server.name for server in swift.proxies] == ["proxy-1", "proxy-2"]
        assert swift.listings.name == "listings"
        assert swift.listings.apps == ["account", "container"]  # type: ignore[attr-defined]
        assert [server.name for server in swift.object_servers] == ["object-1", "object-2"]
        assert swift.auth_url == f"http://127.0.0.1:{swift.port}/auth/v1.0"
        assert swift.storage_url == f"http://127.0.0.1:{swift.port}/v1/AUTH_test"
        assert swift.storage_url == swift.storage_urls[0] != swift.storage_urls[1]
        assert [*swift.recon_urls] == ["account", "container", "object-1", "object-2"]
        assert len({*swift.storage_urls, *swift.recon_urls.values()}) == 6
        assert swift.log_directory == tmp_path / "log"
    assert not any(server.runs for server in swift.servers)  # type: ignore[attr-defined]


def test_other_hosts_reach_the_proxy_alone(tmp_path: Path) -> None:
    with LocalSwift(tmp_path, bind_ip="0.0.0.0") as swift:
        assert swift.address.startswith("http://0.0.0.0:")
        assert all(url.startswith("http://127.0.0.1:") for url in swift.recon_urls.values())


def test_ports_that_are_taken_meanwhile_are_chosen_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Server, "taken", 4)
    with LocalSwift(tmp_path) as swift:
        assert all(server.runs for server in swift.servers)  # type: ignore[attr-defined]
    monkeypatch.setattr(Server, "taken", 5)
    swift = LocalSwift(tmp_path)
    with pytest.raises(ClusterError, match="ports taken 5 times"):
        swift.__enter__()
    assert not any(server.runs for server in swift.servers)  # type: ignore[attr-defined]


def test_a_server_that_ended_and_whose_port_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalSwift(tmp_path) as swift:
        (server,) = swift.object_servers
        server.kill()
        swift.restart_ended()
        assert server.pid is not None
        server.kill()
        monkeypatch.setattr(Server, "taken", 1)
        with pytest.raises(
            ClusterError, match="object-1 server of the local Swift has ended, and its port is taken by now"
        ):
            swift.restart_ended()
        assert server.pid is None


def test_a_port_that_is_fixed_and_taken(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        with pytest.raises(UsageError, match=f"127.0.0.1 port {port}: Address already in use"):
            LocalSwift(tmp_path, port=port).__enter__()
    with LocalSwift(tmp_path, port=port) as swift:
        assert swift.port == port
        assert str(port) not in "".join(swift.recon_urls.values())


def test_an_address_of_another_host(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"192\.0\.2\.1: "):
        LocalSwift(tmp_path, bind_ip="192.0.2.1").__enter__()


def test_a_server_that_does_not_start_ends_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Server, "broken", True)
    swift = LocalSwift(tmp_path)
    with pytest.raises(ClusterError, match="it did not start"):
        swift.__enter__()
    assert swift.servers
    assert not any(server.runs for server in swift.servers)  # type: ignore[attr-defined]
    monkeypatch.setattr(Server, "broken", False)
    with LocalSwift(tmp_path):  # the directory is free again
        pass


def test_servers_of_several_start_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[str] = []
    monkeypatch.setattr(Server, "launch", lambda server: launched.append(server.name))
    swifts = LocalSwift(), LocalSwift(layout=Layout(object_servers=2, devices=2))
    with ExitStack() as stack:
        start_swifts(swifts)
        for each in swifts:
            stack.push(each)
        assert launched == ["proxy", "proxy", "listings", "listings", "object-1", "object-1", "object-2"]


def test_of_several_the_one_whose_port_is_taken_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "taken", 1)
    swifts = LocalSwift(), LocalSwift()
    with ExitStack() as stack:
        start_swifts(swifts)
        for each in swifts:
            stack.push(each)
        assert all(server.runs for each in swifts for server in each.servers)  # type: ignore[attr-defined]


def test_of_several_none_is_left_where_one_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for wrong in (LocalSwift(bind_ip="192.0.2.1"), LocalSwift(tmp_path / "file" / "below")):
        swifts = LocalSwift(), wrong, LocalSwift()
        with pytest.raises(UsageError):
            start_swifts(swifts)
        assert not any(server.runs for each in swifts for server in each.servers)  # type: ignore[attr-defined]
        assert swifts[0].directory != Path()
        assert not swifts[0].directory.exists()


def test_of_several_the_one_that_does_not_start_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    swifts = LocalSwift(), LocalSwift(title="the local Swift 2.38.3")
    monkeypatch.setattr(Server, "broken", True)
    with pytest.raises(ClusterError, match=r"it did not start: the local Swift$"):
        start_swifts(swifts)
    with pytest.raises(ClusterError, match=r"it did not start: the local Swift 2\.38\.3$"):
        start_swifts(swifts[::-1])


def test_a_full_disk_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: SwiftConfiguration) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(SwiftConfiguration, "write", fail)
    swifts = LocalSwift(), LocalSwift()
    with pytest.raises(UsageError, match=r"\A/.*: cannot keep a Swift there: No space left on device\Z"):
        start_swifts(swifts)
    for each in swifts:
        assert each.directory != Path()
        assert not each.directory.exists()


def test_a_directory_is_for_one(tmp_path: Path, golden_words: GoldenWords) -> None:
    with (
        LocalSwift(tmp_path),
        golden_words.raises(UsageError),
    ):
        LocalSwift(tmp_path).__enter__()
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot keep a Swift there: "):
        LocalSwift(tmp_path / "file" / "below").__enter__()


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory" / "lock").symlink_to(target)
    with pytest.raises(UsageError, match="cannot keep a Swift there: its file lock is a link"):
        LocalSwift(tmp_path / "directory").__enter__()
    assert target.read_text() == "mine"


def test_a_temporary_directory_goes_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with LocalSwift() as swift:
        assert swift.directory.parent == tmp_path
        assert (swift.directory / "etc").is_dir()
    assert not swift.directory.exists()
    swift.stop()
    # Also where nobody says a word: the pipe ends with the process that has it.
    swift = LocalSwift()
    swift.__enter__()
    assert swift._remover is not None
    assert swift._remover.stdin is not None
    swift._remover.stdin.close()
    wait_until(lambda: not swift.directory.exists(), "the folder's removal")
    swift._remover.wait(60)
    swift._remover = None


def test_a_removal_that_takes_long_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    go_on = tmp_path / "go-on"
    os.mkfifo(go_on)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(cluster, "_QUIET_REMOVAL_SECONDS", 0.05)
    monkeypatch.setattr(cluster, "_REMOVE_SCRIPT", f'read -r word; read -r word < "{go_on}"; rm -rf -- "$1"')
    caplog.set_level(logging.INFO)
    said: list[bool] = []

    def go_on_when_said() -> None:
        with suppress(AssertionError):
            wait_until(lambda: any(record.funcName == "stop" for record in caplog.records), "the word")
            said.append(True)
        go_on.write_text("now\n")

    with LocalSwift() as swift:
        waits = threading.Thread(target=go_on_when_said)
        waits.start()
    waits.join(60)
    assert said
    assert not swift.directory.exists()


def test_the_package_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, golden_words: GoldenWords
) -> None:
    def version(name: str) -> str:
        if name == "eventlet":
            raise importlib.metadata.PackageNotFoundError
        return "1"

    monkeypatch.setattr(importlib.metadata, "version", version)
    with golden_words.raises(UsageError):
        LocalSwift(tmp_path).__enter__()


def slow_file(swift: LocalSwift) -> str:
    return (swift.directory / "etc" / "slow.json").read_text()


def test_faults_begin_and_end(tmp_path: Path) -> None:
    swift = LocalSwift(tmp_path, layout=Layout(devices=2))
    swift.slow("d1", 0.5, 0.25)  # before there is a server
    with swift:
        assert '"d1"' in slow_file(swift)
        swift.slow("proxy", 1.0)
        swift.fail("d2")
        assert '"request"' in slow_file(swift)
        assert '"open"' in slow_file(swift)
        stub = tmp_path / "node" / "object-1" / "d2" / ".ismount"
        assert not stub.exists()
        swift.repair("d1")
        swift.repair("d2")
        swift.repair("proxy")
        assert slow_file(swift) == "[]"
        assert stub.exists()


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("slow", ("d9", 1.0)),
        ("slow", ("proxy", 1.0, 1.0, "open")),
        ("slow", ("d1", 1.0, 1.0, "end")),
        ("fail", ("proxy",)),
    ],
)
def test_faults_that_cannot_be(method: str, given: tuple[Any, ...], golden_words: GoldenWords) -> None:
    with pytest.raises(UsageError) as caught:
        getattr(LocalSwift(), method)(*given)
    golden_words(str(caught.value))


def test_where_objects_are_kept_in_memory_there_is_one_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    monkeypatch.setattr(cluster, "has_extended_attributes", lambda _: False)
    for options in ({"layout": Layout(replicas=2)}, {"policies": ["slim:ec:2+1"]}):
        with golden_words.raises(UsageError):
            LocalSwift(tmp_path, **options).__enter__()
    with LocalSwift(tmp_path) as swift:
        swift.slow("object-1", 1.0, where="request")
        with golden_words.raises(UsageError):
            swift.fail("d1")


def test_whether_files_take_attributes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()

    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "setxattr", refuse)
    assert not cluster.has_extended_attributes(tmp_path)
    monkeypatch.setattr(os, "setxattr", lambda *_: None)
    assert cluster.has_extended_attributes(tmp_path)
    assert not [*tmp_path.iterdir()]
