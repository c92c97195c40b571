"""The embedded Swift with replicas, several servers, access logs, and faults that are asked for."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
import yaml
from processes import Fleet

from ssbench.base.errors import UsageError
from ssbench.local_swift import Layout, LocalSwift
from ssbench.local_swift.cluster import ServerProcess

DELAY = 0.3  # less than the 0.5 s for which a proxy waits beyond the quorum
LAYOUT = Layout(replicas=3, devices=4, object_servers=3, proxies=2, access_logs=True)
OWNERS = {"d1": "object-1", "d2": "object-2", "d3": "object-3", "d4": "object-1"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalSwift]:
    with LocalSwift(policies=["gold", "slim:ec:2+1"], layout=LAYOUT) as running:
        yield running


class Client:
    """Requests to both proxies, with the token that the first one gave."""

    def __init__(self, swift: LocalSwift, container: str) -> None:
        self.swift = swift
        self.container = container
        answer = requests.get(
            swift.auth_url, headers={"X-Auth-User": swift.user, "X-Auth-Key": swift.key}, timeout=30
        )
        self.token = answer.headers["X-Auth-Token"]

    def ask(self, method: str, path: str, *, proxy: int = 0, **options) -> requests.Response:
        headers = {"X-Auth-Token": self.token, **options.pop("headers", {})}
        url = f"{self.swift.storage_urls[proxy]}/{path}"
        return requests.request(method, url, headers=headers, timeout=30, **options)

    def devices_of(self, path: str) -> set[str]:
        """Write the object, and return the devices that it was written to, by the object servers' logs."""
        answer = self.ask("PUT", path, data=b"x" * 4096)
        assert answer.status_code == 201
        return {line.device for line in object_lines(self.swift, answer, 3)}

    def object_on(self, device: str, container: str) -> str:
        """Write objects until one has a replica there, and return its path."""
        paths = (f"{container}/o{number}" for number in range(50))
        return next(path for path in paths if device in self.devices_of(path))


class Line:
    """An access line of an object server."""

    shape = re.compile(
        r'"([A-Z]+) /(d\d+)/\d+/(\S+)" (\d{3}) .* "proxy-server \d+" (\d+\.\d{4}) "-" (\d+) \d+$'
    )

    def __init__(self, server: str, text: str) -> None:
        match = self.shape.search(text)
        assert match, text
        self.server = server
        self.method, self.device, self.path = match[1], match[2], match[3]
        self.status, self.seconds, self.pid = int(match[4]), float(match[5]), int(match[6])


def log_lines(path: Path, needle: str) -> list[str]:
    return [line for line in path.read_text().splitlines() if needle in line]


def wait_for(look: Callable[[], list], count: int) -> list:
    """Return what ``look`` finds when it is as much as ``count``: a line may follow the client's answer."""
    deadline = time.monotonic() + 60
    while len(found := look()) < count:
        assert time.monotonic() < deadline, found
        time.sleep(0.02)
    assert len(found) == count
    return found


def object_lines(swift: LocalSwift, answer: requests.Response, count: int) -> list[Line]:
    """Return the object servers' lines of a request."""
    needle = f'"{answer.headers["X-Trans-Id"]}"'
    return wait_for(
        lambda: [
            Line(server.name, line)
            for server in swift.object_servers
            for line in log_lines(server.log, needle)
        ],
        count,
    )


def proxy_fields(proxy: ServerProcess, answer: requests.Response) -> list[str]:
    """Return the fields of the proxy's line of a request, not of those that middleware made for it."""

    def look() -> list[list[str]]:
        lines = log_lines(proxy.log, f" {answer.headers['X-Trans-Id']} ")
        return [fields for line in lines if (fields := line.split(" ")[3:])[16] == "-"]

    return wait_for(look, 1)[0]


@pytest.fixture
def client(cluster: LocalSwift, container_base: str) -> Client:
    client = Client(cluster, container_base)
    # The second proxy has noted that there is none; that must not outlast the next request.
    assert client.ask("GET", container_base, proxy=1).status_code == 404
    assert client.ask("PUT", container_base).status_code == 201
    assert client.ask("PUT", f"{container_base}/first", proxy=1, data=b"").status_code == 201
    return client


def test_three_replicas_are_written_and_logged(cluster: LocalSwift, client: Client):
    path = f"{client.container}/o"
    answer = client.ask("PUT", path, data=b"x" * 4096, headers={"X-Trans-Id-Extra": "ssb-42"})
    assert answer.headers["X-Trans-Id"].endswith("-ssb-42")
    lines = object_lines(cluster, answer, 3)
    assert {line.method for line in lines} == {"PUT"}
    assert {line.status for line in lines} == {201}
    assert {line.path for line in lines} == {f"AUTH_test/{path}"}
    devices = {line.device for line in lines}
    assert len(devices) == 3
    assert {line.device: line.server for line in lines}.items() <= OWNERS.items()
    pids = {server.name: server.pid for server in cluster.object_servers}
    assert all(line.pid == pids[line.server] for line in lines)
    files = {
        file.relative_to(cluster.directory).parts[1:3]
        for file in cluster.directory.glob("node/*/*/objects/**/*.data")
        if file.stat().st_size == 4096
    }
    assert {(OWNERS[device], device) for device in devices} <= files

    transaction = answer.headers["X-Trans-Id"]
    fields = proxy_fields(cluster.proxies[0], answer)
    assert fields[3:7] == ["PUT", f"/v1/AUTH_test/{path}", "HTTP/1.0", "201"]
    assert (fields[13], len(fields)) == (transaction, 22)
    assert not log_lines(cluster.proxies[1].log, transaction)
    updates = wait_for(
        lambda: [line for line in log_lines(cluster.listings.log, transaction) if '"PUT /d' in line], 3
    )
    assert all(" INFO container-server: " in line for line in updates)


@pytest.mark.parametrize("where", ["request", "open", "block", "commit"])
def test_a_slow_device_is_slow(cluster: LocalSwift, client: Client, where: str):
    path = client.object_on("d3", client.container)
    cluster.slow("d3", DELAY, where=where)
    try:
        answer = client.ask("PUT", path, data=b"x")
        assert answer.status_code == 201
        assert answer.elapsed.total_seconds() >= DELAY
        (line,) = (line for line in object_lines(cluster, answer, 3) if line.device == "d3")
        if where != "request":  # its own clock has not started then
            assert line.seconds >= DELAY
    finally:
        cluster.repair("d3")
    wait_for(lambda: [1] * (client.ask("PUT", path, data=b"x").elapsed.total_seconds() < DELAY), 1)


def test_a_share_of_the_requests_to_a_proxy_is_slow(cluster: LocalSwift, client: Client):
    cluster.slow("proxy-2", DELAY, share=0.5)
    slow: set[bool] = set()
    try:
        for _ in range(40):
            answer = client.ask("HEAD", f"{client.container}/first", proxy=1)
            slow.add(float(proxy_fields(cluster.proxies[1], answer)[15]) >= DELAY)
            if len(slow) == 2:
                break
    finally:
        cluster.repair("proxy-2")
    assert slow == {True, False}


def test_a_failed_device_answers_507_and_writes_succeed(cluster: LocalSwift, client: Client):
    path = client.object_on("d2", client.container)
    unmounted = f"{cluster.recon_urls['object-2']}/recon/unmounted"
    cluster.fail("d2")
    try:
        assert requests.get(unmounted, timeout=30).json() == [{"device": "d2", "mounted": False}]
        answer = client.ask("PUT", path, data=b"x")
        assert answer.status_code == 201
        # Two others, and the fourth device as a handoff.
        statuses = {line.device: line.status for line in object_lines(cluster, answer, 4)}
        assert statuses == {"d1": 201, "d2": 507, "d3": 201, "d4": 201}
        (error,) = log_lines(
            cluster.proxies[0].log, f"Insufficient Storage (txn: {answer.headers['X-Trans-Id']}"
        )
        assert "/d2, error: " in error
        assert client.ask("GET", path).status_code == 200
    finally:
        cluster.repair("d2")
    assert requests.get(unmounted, timeout=30).json() == []


def test_erasure_coding(cluster: LocalSwift, client: Client):
    container = f"{client.container}-ec"
    assert client.ask("PUT", container, headers={"X-Storage-Policy": "slim"}).status_code == 201
    body = bytes(range(256)) * 6000
    answer = client.ask("PUT", f"{container}/o", data=body)
    assert answer.status_code == 201
    lines = object_lines(cluster, answer, 3)
    assert len({line.device for line in lines}) == 3
    fragments = list(cluster.directory.glob("node/*/*/objects-1/**/*.data"))
    assert len(fragments) == 3
    assert all(len(body) / 2 <= file.stat().st_size < len(body) * 0.55 for file in fragments)
    cluster.fail(lines[0].device)
    try:
        assert client.ask("GET", f"{container}/o", proxy=1).content == body
    finally:
        cluster.repair(lines[0].device)


def test_recon_answers_on_every_backend(cluster: LocalSwift):
    assert list(cluster.recon_urls) == ["account", "container", "object-1", "object-2", "object-3"]
    for name, url in cluster.recon_urls.items():
        for what in ("version", "async", "diskusage", "unmounted", "replication/object", "sockstat", "load"):
            answer = requests.get(f"{url}/recon/{what}", timeout=30)
            assert answer.status_code == 200, (name, what)
            answer.json()
    disks = requests.get(f"{cluster.recon_urls['object-1']}/recon/diskusage", timeout=30).json()
    assert {disk["device"]: disk["mounted"] for disk in disks} == {"d1": True, "d4": True}
    assert all(disk["size"] > 0 for disk in disks)
    assert not [line for log in cluster.log_directory.iterdir() for line in log_lines(log, "recon cache")]


def test_a_run_by_way_of_both_proxies(cluster: LocalSwift, container_base: str, tmp_path: Path):
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        yaml.safe_dump(
            {
                "name": "both",
                "operation_count": 30,
                "user_count": 2,
                "container_base": container_base,
                "container_count": 2,
                "crud_profile": [1, 1, 0, 0],
                "sizes": [{"name": "tiny", "size_min": 100, "size_max": 5000}],
                "initial_files": {"tiny": 4},
            }
        )
    )
    urls = [option for url in cluster.storage_urls for option in ("-S", url)]
    environment = {"ST_AUTH": cluster.auth_url, "ST_USER": cluster.user, "ST_KEY": cluster.key}
    with Fleet(tmp_path) as fleet:
        run = fleet.run(scenario, "--workers", 1, *urls, environment=environment)
        assert run.end() == 0, run.err
    for proxy in cluster.proxies:
        assert log_lines(proxy.log, f"/v1/AUTH_test/{container_base}_000000/tiny_")


def test_where_a_delay_can_be(cluster: LocalSwift):
    with pytest.raises(
        UsageError, match=r"slow d5: no such thing, there are d1, d2, d3, d4, object-1, .*, proxy-1, proxy-2"
    ):
        cluster.slow("d5", 1)
    with pytest.raises(UsageError, match="slow proxy-1 at 'commit': can be at request"):
        cluster.slow("proxy-1", 1, where="commit")
    with pytest.raises(UsageError, match="fail object-1: the devices are d1, d2, d3, d4"):
        cluster.fail("object-1")
