"""The embedded Swift: what it serves, and that it leaves nothing behind however it ends."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
import swiftclient
from asked_commands import ask
from processes import Fleet
from runs import write_scenario

from ssbench.base.errors import ClusterError, UsageError
from ssbench.local_swift import Layout, LocalSwift, cluster, find_server_processes
from ssbench.local_swift import local_swift as local_swift_command
from ssbench.results.reading import open_results


def wait_until(condition, timeout=60.0):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def running(pid: int) -> bool:
    """Whether the process runs or is stopped; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def connect(swift: LocalSwift) -> swiftclient.Connection:
    return swiftclient.Connection(swift.auth_url, swift.user, swift.key, retries=0)


@pytest.fixture(scope="module")
def own_swift() -> Iterator[LocalSwift]:
    """A Swift whose servers these tests may kill."""
    with LocalSwift(layout=Layout(object_servers=2)) as running:
        yield running


def test_serves_objects_in_two_policies(account, container_base):
    policies = {}
    for policy in (None, "silver"):
        name = f"{container_base}-{policy}"
        account.put_container(name, headers={"X-Storage-Policy": policy} if policy else None)
        account.put_object(name, "o", b"content")
        assert account.get_object(name, "o")[1] == b"content"
        policies[policy] = account.head_container(name)["x-storage-policy"]
    assert policies == {None: "gold", "silver": "silver"}


def test_storage_url_is_the_one_authentication_returns(swift):
    assert swiftclient.get_auth(swift.auth_url, swift.user, swift.key)[0] == swift.storage_url


def test_parent_imports_neither_swift_nor_eventlet(swift):
    code = "import sys, ssbench.local_swift; print({'swift', 'eventlet', 'gevent'} & set(sys.modules))"
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert output.stdout == "set()\n"


def test_a_killed_proxy_refuses_and_a_restart_makes_tokens_invalid(own_swift):
    url, token = connect(own_swift).get_auth()
    assert requests.head(url, headers={"X-Auth-Token": token}, timeout=30).ok
    own_swift.proxy.kill()
    with pytest.raises(requests.ConnectionError):
        requests.head(url, timeout=30)
    own_swift.proxy.start()
    assert requests.head(url, headers={"X-Auth-Token": token}, timeout=30).status_code == 401
    assert connect(own_swift).get_auth()[0] == url


def test_one_object_server_of_two_can_go(own_swift):
    connection = connect(own_swift)
    connection.put_container("halves")
    names = [f"o{number}" for number in range(24)]
    for name in names:
        connection.put_object("halves", name, b"x")

    def statuses() -> set[int]:
        url, token = connection.get_auth()
        return {
            requests.get(f"{url}/halves/{name}", headers={"X-Auth-Token": token}, timeout=30).status_code
            for name in names
        }

    assert statuses() == {200}
    own_swift.object_servers[0].kill()
    assert statuses() == {200, 503}
    own_swift.object_servers[0].restart()
    assert statuses() == {200}


def test_a_stopped_server_answers_when_it_is_resumed(own_swift):
    own_swift.proxy.stop()
    with pytest.raises(requests.ReadTimeout):
        requests.get(f"{own_swift.address}/healthcheck", timeout=0.5)
    own_swift.proxy.resume()
    assert requests.get(f"{own_swift.address}/healthcheck", timeout=30).text == "OK"


def test_a_write_waits_until_its_container_knows_of_it(own_swift):
    connection = connect(own_swift)
    connection.put_container("paused")
    connection.put_object("paused", "before", b"x")  # the proxy knows the container from now on
    resumed = threading.Event()

    def resume() -> None:
        resumed.set()
        own_swift.listings.resume()

    own_swift.listings.stop()
    timer = threading.Timer(2.0, resume)
    timer.start()
    connection.put_object("paused", "o", b"x")
    assert resumed.is_set()
    timer.join()
    assert [row["name"] for row in connection.get_container("paused")[1]] == ["before", "o"]


def test_tokens_expire_and_a_temporary_directory_is_removed():
    with LocalSwift(token_life=1) as short:
        url, token = connect(short).get_auth()
        wait_until(lambda: requests.head(url, headers={"X-Auth-Token": token}, timeout=30).status_code == 401)
        assert connect(short).get_auth()[1] != token
        directory, servers = short.directory, [server.pid for server in short.servers]
        assert directory.is_dir()
        assert directory.stat().st_mode & 0o777 == 0o700
    assert not directory.exists()
    assert not any(map(running, servers))


def test_filters_and_options_reach_the_servers(tmp_path, monkeypatch):
    (tmp_path / "teapot.py").write_text(
        "def filter_factory(conf, body, **_):\n"
        "    def make(app):\n"
        "        class Teapot:\n"
        "            def __call__(self, env, start_response):\n"
        "                if not env['PATH_INFO'].endswith('/tea'):\n"
        "                    return app(env, start_response)\n"
        "                start_response('418 Teapot', [('Content-Length', str(len(body)))])\n"
        "                return [body.encode()]\n"
        "        return Teapot()\n"
        "    return make\n"
    )
    # As for any Python program, also where the servers are forks, as here.
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    filters = {"teapot": {"paste.filter_factory": "teapot:filter_factory", "body": "short"}}
    with LocalSwift(filters=filters, policies=["only"], proxy_options={"account_autocreate": "no"}) as swift:
        answer = requests.get(f"{swift.address}/tea", timeout=30)
        assert (answer.status_code, answer.text) == (418, "short")
        url, token = connect(swift).get_auth()
        assert requests.put(f"{url}/c", headers={"X-Auth-Token": token}, timeout=30).status_code == 404


def test_swift_heeds_its_settings_and_filters(caplog):
    settings = [
        "swift:swift-constraints:max_file_size=1000",
        "proxy-server:app:client_timeuot=3",
        # The whole file has this key for all its sections.
        "proxy-server:DEFAULT:trans_id_suffix=-all",
        "proxy-server:app:trans_id_suffix=-app",
        "proxy-server:filter:catch_errors:trans_id_suffix=-first",
    ]
    with LocalSwift(swift_settings=settings, swift_filters=["encryption", "etag-quoter"]) as swift:
        connection = connect(swift)
        info = requests.get(f"{swift.address}/info", timeout=30).json()
        assert info["swift"]["max_file_size"] == 1000
        assert "etag_quoter" in info
        connection.put_container("c")
        connection.put_object("c", "o", b"in plain text")
        assert connection.get_object("c", "o")[1] == b"in plain text"
        [file] = swift.directory.rglob("*.data")
        assert b"in plain text" not in file.read_bytes()
        with pytest.raises(swiftclient.ClientException, match="413"):
            connection.put_object("c", "large", b"x" * 1001)
        assert requests.get(f"{swift.address}/info", timeout=30).headers["X-Trans-Id"].endswith("-first")
    [record] = [each for each in caplog.records if each.levelname == "WARNING"]
    assert "does not have the key client_timeuot, and ignores it" in record.getMessage()


def test_another_python_serves_with_two_modules_of_ours_alone(tmp_path):
    """As that of another release does, which knows nothing of ssbench."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "$PYTHONPATH" >>{tmp_path}/paths\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    with LocalSwift(release=str(python), layout=Layout(proxies=2)) as swift:
        connection = connect(swift)
        connection.put_container("c")
        connection.put_object("c", "o", b"kept")
        assert connection.get_object("c", "o")[1] == b"kept"
        program = swift.directory / "program" / "ssbench"
        modules = {str(each.relative_to(program)) for each in program.rglob("*") if each.is_file()}
        assert modules == {
            "__init__.py",
            *(f"local_swift/{name}.py" for name in ("__init__", "_serve", "_cache")),
        }
        assert find_server_processes([swift.storage_url]) == {each.pid for each in swift.servers}
        paths = (tmp_path / "paths").read_text().splitlines()
        assert len([each for each in paths if each.startswith(str(program.parent))]) == 4
        assert swift.version


def test_objects_are_kept_in_memory_where_files_take_no_attributes(monkeypatch, tmp_path):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "setxattr", refuse)
    with LocalSwift(tmp_path) as swift:
        connection = connect(swift)
        for policy in swift.policies:
            connection.put_container(policy, headers={"X-Storage-Policy": policy})
            connection.put_object(policy, "o", b"kept")
            assert connection.get_object(policy, "o")[1] == b"kept"
        assert not list(tmp_path.rglob("*.data"))
        with pytest.raises(UsageError, match="objects are kept in memory there"):
            swift.fail("d1")
    with (
        pytest.raises(UsageError, match="objects are kept in memory there"),
        LocalSwift(layout=Layout(replicas=2)),
    ):
        pass


def test_a_directory_is_kept_and_served_again(tmp_path):
    with LocalSwift(tmp_path / "new" / "folder") as swift:
        connect(swift).put_container("c")
        connect(swift).put_object("c", "o", b"still here")
        with (
            pytest.raises(UsageError, match="another local Swift is using this directory"),
            LocalSwift(swift.directory),
        ):
            pass
        first_port = swift.port
    with (
        pytest.raises(UsageError, match="1 replicas and 1 devices of 1 object servers"),
        LocalSwift(swift.directory, layout=Layout(devices=2)),
    ):
        pass
    with LocalSwift(tmp_path / "new" / "folder") as swift:
        assert swift.port != first_port
        assert connect(swift).get_object("c", "o")[1] == b"still here"


PARENT = """
import os, sys
from ssbench.local_swift import LocalSwift
with LocalSwift() as swift:
    print(swift.directory, *[server.pid for server in swift.servers], flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL], ids=lambda ending: ending.name)
def test_nothing_is_left_when_the_parent_is_killed(ending):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with parent:
        try:
            directory, *pids = parent.stdout.readline().split()
            servers = [int(pid) for pid in pids]
            os.kill(servers[-1], signal.SIGSTOP)
            # As Ctrl-C in a terminal does it, to the whole process group.
            os.killpg(parent.pid, ending)
            parent.wait(60)
        finally:
            parent.kill()
        wait_until(lambda: not any(map(running, servers)))
        wait_until(lambda: not Path(directory).exists())


def test_ctrl_c_does_not_end_the_servers(own_swift):
    for server in own_swift.servers:
        os.kill(server.pid, signal.SIGINT)
    assert connect(own_swift).get_auth()
    assert all(server.pid for server in own_swift.servers)


def test_missing_package_is_named(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with (
        pytest.raises(UsageError, match=r"pip install swift eventlet \(or '\.\[swift\]' in a clone"),
        LocalSwift(),
    ):
        pass


def test_a_server_that_does_not_start_is_reported_with_its_log():
    swift = LocalSwift(proxy_options={"read_affinity": "nonsense"})
    with (
        pytest.raises(ClusterError, match=r"(?s)proxy server of the local Swift did not start.*nonsense"),
        swift,
    ):
        pass
    assert not swift.directory.exists()
    assert not any(server.pid for server in swift.servers)


def test_a_server_that_takes_too_long_is_ended(monkeypatch):
    monkeypatch.setattr(cluster, "START_TIMEOUT_SECONDS", 0.0)
    with pytest.raises(ClusterError, match="not ready in 0 s"), LocalSwift():
        pass


def test_ports_taken_meanwhile_are_chosen_again(monkeypatch):
    with contextlib.ExitStack() as stack:
        taken = stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
        choose = LocalSwift._choose_ports
        chosen = []

        def choose_badly_at_first(self):
            chosen.append(choose(self) | ({} if chosen else {"container": taken}))
            return chosen[-1]

        monkeypatch.setattr(LocalSwift, "_choose_ports", choose_badly_at_first)
        swift = stack.enter_context(LocalSwift())
        assert len(chosen) == 2
        connect(swift).put_container("c")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bind_ip": "192.0.2.1"}, "192.0.2.1: Cannot assign requested address"),
        ({"bind_ip": "no address"}, "no address: "),
        ({"directory": "/proc/nowhere"}, "/proc/nowhere: cannot keep a Swift there"),
        ({"policies": ["two words"]}, "storage policy 'two words': expected letters"),
        ({"layout": Layout(replicas=3, devices=2)}, "3 replicas need at least 3 devices, not 2"),
    ],
)
def test_wrong_values(options, message):
    with pytest.raises(UsageError, match=message), LocalSwift(**options):
        pass


def test_other_hosts_reach_the_proxy_alone():
    def listens(ip, port):
        try:
            with socket.create_connection((ip, port), timeout=5):
                return True
        except ConnectionRefusedError:
            return False

    with LocalSwift(bind_ip="0.0.0.0", policies=["gold"]) as swift:
        assert listens("127.0.0.2", swift.port)  # an address that stands for those of other networks
        servers = [urlsplit(url) for url in swift.recon_urls.values()]
        assert len(servers) == 3
        for server in servers:
            assert listens(server.hostname, server.port)
            assert not listens("127.0.0.2", server.port)
        connect(swift).put_container("c")
        connect(swift).put_object("c", "o", b"x")


def test_a_fixed_port_that_is_taken(swift):
    with (
        pytest.raises(UsageError, match=f"port {swift.port}: Address already in use"),
        LocalSwift(port=swift.port),
    ):
        pass


@pytest.fixture
def command():
    """Run the sub-command as a program."""
    program = (
        "import sys, argparse, logging\n"
        "from ssbench.cli.asked import make_asked\n"
        "from ssbench.local_swift import local_swift\n"
        "logging.basicConfig(level=logging.INFO, format='%(levelname)s:%(message)s')\n"
        "parser = argparse.ArgumentParser()\n"
        "local_swift.add_arguments(parser)\n"
        "sys.exit(local_swift.run(make_asked(local_swift.ASKED, vars(parser.parse_args()))))\n"
    )
    started = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", program, *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_by_hand_until_ctrl_c(command, tmp_path):
    process = command("--directory", str(tmp_path), "--policy", "a", "--policy", "b")
    lines = [process.stdout.readline() for _ in range(3)]
    shell = "".join(lines) + 'printf "%s " "$ST_AUTH" "$ST_USER" "$ST_KEY"'
    answer = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True, timeout=30)
    connection = swiftclient.Connection(*answer.stdout.split(), retries=0)
    connection.put_container("c", headers={"X-Storage-Policy": "b"})
    port = urlsplit(connection.url).port
    found = find_server_processes([connection.url])
    parents = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1] for pid in found]
    assert parents == [str(process.pid)] * 3
    others = (
        "http://127.0.0.1:1",
        f"http://192.0.2.1:{port}",
        f"http://a.test:{port}",
        "http://127.0.0.1:no",
    )
    assert find_server_processes(others) == set()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    version = importlib.metadata.version("swift")
    words = f"INFO:Swift {version} with a and b in {tmp_path}, logs in {tmp_path}/log; Ctrl-C ends it\n"
    assert errors == words
    with pytest.raises(requests.ConnectionError):
        connection.get_account()


@pytest.mark.long
def test_one_of_another_terminal_is_part_of_a_run(command, tmp_path):
    """Its CPU is that of the run, not of other programs."""
    file = tmp_path / "swift.env"
    process = command("--env-file", str(file))
    wait_until(lambda: process.poll() is not None or (file.exists() and "SWIFT_RECON" in file.read_text()))
    lines = [line.removeprefix("export ").split("=", 1) for line in file.read_text().splitlines()]
    variables = {name: value for name, value in lines if name.startswith("ST_")}
    scenario = write_scenario(tmp_path, without=["operation_count"], run_seconds=2)
    with Fleet(tmp_path) as fleet:
        run = fleet.run(scenario, "--workers", 1, environment=variables)
        assert run.end() == 0, run.err
    results = open_results(fleet.stats)
    list(results.blocks())  # the summary is behind them
    (host,) = results.summary.hosts
    assert host.swift_cpu is not None
    assert 0 <= host.swift_cpu <= host.own_cpu
    assert re.search(r"of the run's [\d.]+ % the local Swift used [\d.]+ %", run.out)
    samples = results.summary.server_cpu
    assert samples
    assert all(each.cpu.keys() == {"proxy", "listings", "object"} for each in samples)
    assert sum(each.operations for each in samples) > 0
    assert re.search(r"CPU of Swift's servers for an operation: proxy [\d.]+ ms, listings", run.out)


def test_by_hand_with_a_file_to_wait_for(command, tmp_path):
    variables = tmp_path / "swift.env"
    variables.write_text("mine")
    refused = command("--env-file", str(variables))
    assert "exists already" in refused.communicate(timeout=60)[1]
    assert variables.read_text() == "mine"
    process = command("--env-file", str(variables), "--force")

    def is_written() -> bool:
        # The file of before goes first, so that nobody takes it for that of this Swift.
        with contextlib.suppress(FileNotFoundError):
            return variables.read_text() != "mine"
        return False

    wait_until(lambda: process.poll() is not None or is_written())
    names = [line.partition("=")[0] for line in variables.read_text().splitlines()]
    assert names == [
        f"export {name}" for name in ("ST_AUTH", "ST_USER", "ST_KEY", "SWIFT_LOGS", "SWIFT_RECON")
    ]
    process.terminate()
    assert process.communicate(timeout=60)[0] == ""
    assert process.returncode == 0
    assert not list(tmp_path.iterdir())


def test_a_larger_one_by_hand_for_a_time(command, tmp_path):
    process = command(
        *("--replicas", "2", "--object-servers", "2", "--proxies", "2", "--policy", "slim:ec:2+1"),
        *("--slow", "d2:1ms:0.5:commit", "--fail", "d3", "--duration", "0.1", "--directory", str(tmp_path)),
    )
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert errors.endswith("; Ctrl-C or the end of 0.1 s ends it\n")
    shell = output + 'printf "%s\n" "$SWIFT_LOGS" "$SWIFT_RECON" "$SWIFT_PROXIES"'
    answer = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True, timeout=30)
    logs, recon, proxies = answer.stdout.splitlines()
    assert sorted(file.name for file in Path(logs).iterdir()) == [
        *("listings.log", "object-1.log", "object-2.log", "proxy-1.log", "proxy-2.log")
    ]
    assert len(set(recon.split())) == 4
    assert len(set(proxies.split())) == 2
    slow = json.loads((tmp_path / "etc" / "slow.json").read_text())
    assert slow == [{"target": "d2", "delay": 0.001, "share": 0.5, "where": "commit"}]
    mounted = {stub.parent.name for stub in tmp_path.glob("node/object-*/*/.ismount")}
    assert mounted == {"d1", "d2"}


def test_by_hand_says_when_a_server_dies(tmp_path, monkeypatch):
    arguments = ask("local-swift", "--directory", str(tmp_path))
    original = LocalSwift.__enter__

    def enter_and_lose_one(self):
        original(self)
        os.kill(self.listings.pid, signal.SIGKILL)
        return self

    monkeypatch.setattr(LocalSwift, "__enter__", enter_and_lose_one)
    with pytest.raises(ClusterError, match="listings server ended by itself"):
        local_swift_command.run(arguments)
