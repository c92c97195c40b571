"""Asking servers how they are: real answers, refusals, and what is no answer of Swift's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from fault_server import Certificates, FaultServer, Reply, Request
from runs import wait_until
from said import NO_RECON

from ssbench.cluster import recon as module
from ssbench.cluster.recon import Sampler, ask_info, make_pool
from ssbench.results.cluster_observation import Server

PATIENCE = 60.0
LOAD = Reply(200, body=b'{"1m": 0.5}', headers=(("Server", "object-server/2.35.0"),))


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer(rule=only("load", LOAD)) as running:
        yield running


def only(path: str, reply: Reply) -> Callable[[Request], Reply]:
    """Answer one path of recon, and OPTIONS, like this, and refuse the others."""

    def rule(request: Request) -> Reply:
        return reply if request.method == "OPTIONS" or request.target == f"/recon/{path}" else Reply(404)

    return rule


def root(server: FaultServer) -> str:
    return server.url.partition("/v1")[0]


def before(*urls: str, patience: float = PATIENCE) -> tuple[Server, ...]:
    made = Sampler(urls, PATIENCE, time.monotonic())
    made.before(patience)
    return made.servers()


def test_paths_that_a_server_does_not_have_are_left_out(server: FaultServer) -> None:
    (found,) = before(root(server))
    assert (found.kind, found.asked, found.unanswered, found.failure) == ("object", 1, 0, None)
    assert found.before is not None
    assert (found.before.load, found.before.disks) == (0.5, None)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("container-server/2.1", "container"),
        ("account-server/", "account"),
        ("proxy-server/2.1", ""),
        ("nginx", ""),
        ("object", ""),
        ("", ""),
    ],
)
def test_what_kind_a_server_is_says_its_name(name: str, kind: str) -> None:
    reply = Reply(200, body=b'{"1m": 1}', headers=(("Server", name),))
    with FaultServer(rule=only("load", reply)) as server:
        assert before(root(server))[0].kind == kind


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (Reply(404), f"answered 404: {NO_RECON} pipeline?"),
        (Reply(301, headers=(("Location", "http://127.0.0.1:1/"),)), f"answered 301: {NO_RECON} pipe"),
        (Reply(raw=b"SSH-2.0-OpenSSH\r\n", closes=True), ""),
        (Reply(body=b"x" * 100, claim=200, drops=True), ""),
        (Reply(body=b"x" * 2000), "an answer of more than 1,000 bytes"),
        (Reply(stall=True), "no answer in 0.2 s"),
        (Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n", drops=True), ""),
        (
            Reply(raw=b"x", lead=b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n", endless=True, pause=0.05),
            "no whole answer in 0.3 s",
        ),
    ],
    ids=["404", "301", "ssh", "short", "large", "silent", "no body", "drips"],
)
def test_what_is_no_answer(reply: Reply, failure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_ANSWER", 1000)
    # Only what never answers is waited for: one that is slow here answers in more than a moment.
    monkeypatch.setattr(module, "_READ_SECONDS", 0.2 if reply.stall else 30)
    monkeypatch.setattr(module, "_ROUND_SECONDS", 0.3)
    with FaultServer(default=reply) as server:
        (found,) = before(root(server))
        proxy = ask_info(make_pool(), root(server))
    assert (found.asked, found.unanswered, found.before) == (1, 1, None)
    assert found.failure
    assert found.failure.startswith(failure)
    assert proxy.failure
    assert proxy.failure.startswith(failure.partition(":")[0])


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_info_through_tls(certificates: Certificates) -> None:
    """The text of the authority was taken for the name of a file, so that no proxy was ever asked."""
    info = Reply(200, body=b'{"swift": {"version": "2.35.0"}}')
    with FaultServer(default=info, tls=certificates.server()) as server:
        for pool in (make_pool(ca_certificates=certificates.pem), make_pool(insecure=True)):
            assert ask_info(pool, root(server)).version == "2.35.0"
        for pool in (make_pool(ca_certificates=Certificates().pem), make_pool()):
            assert "certificate verify failed" in (ask_info(pool, root(server)).failure or "")


def test_who_cannot_be_reached() -> None:
    assert before("http://no-such-host.invalid:6200")[0].failure == "unknown host"
    with FaultServer() as gone:
        url = root(gone)
    assert before(url)[0].failure == "Connection refused"


def test_what_comes_after_the_beginning_is_no_state_before_the_run(server: FaultServer) -> None:
    """A server that took longer than there was time for is sampled from then on."""
    slow = Reply(200, body=b'{"1m": 2}', delay=0.3)
    server.rule = only("load", slow)
    made = Sampler([root(server)], PATIENCE, time.monotonic())
    made.before(0.05)
    wait_until(lambda: made.servers()[0].during, "the late answer")
    (found,) = made.servers()
    assert (found.before, found.failure, found.unanswered) == (None, "no whole answer in 0.05 s", 1)
    assert found.during[0].load == 2


def test_samples_go_on_until_the_end(server: FaultServer) -> None:
    made = Sampler([root(server)], 0.01, time.monotonic())
    made.before(PATIENCE)
    wait_until(lambda: len(made.servers()[0].during) >= 3, "three samples")
    made.after(PATIENCE)
    (found,) = made.servers()
    assert found.after is not None
    # One that was under way when the end came is not kept.
    assert found.asked - len(found.during) in {2, 3}
    moments = [found.before.at if found.before else 0.0, *(each.at for each in found.during), found.after.at]
    assert moments == sorted(moments)


def test_a_long_run_is_sampled_less_often(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SAMPLED_DEVICES", 4)
    made = Sampler([root(server)], 0.001, time.monotonic())
    made.before(PATIENCE)
    wait_until(lambda: made.interval >= 0.008, "three times half of the samples")
    made.after(PATIENCE)
    (found,) = made.servers()
    assert len(found.during) <= 4
    assert found.asked > len(found.during) + 2
