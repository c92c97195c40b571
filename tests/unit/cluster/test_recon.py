"""Answers of recon: what is read of genuine and of strange ones."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
import pytest
from golden_words import GoldenWords
from hypothesis import given
from hypothesis import strategies as st
from recon_answers import genuine_answers, server

from ssbench.cluster import recon
from ssbench.cluster.judgments import describe_judgments, judge_cluster
from ssbench.cluster.recon import Sampler
from ssbench.results.cluster_observation import Disk, Observation, Proxy, State


def test_genuine_answers():
    state = recon.parse_recon_state(genuine_answers("o1"), 1.5)
    assert state == State(
        at=1.5,
        load=1.28,
        tcp_in_use=40,
        time_wait=344,
        orphans=0,
        tcp_memory=782336,
        disks=(Disk("d1", mounted=False), Disk("d4", mounted=False)),
        version="2.38.3",
        root="/srv/swift/node/o1",
        quarantined=0,
    )
    later = recon.parse_recon_state({**genuine_answers("o3"), "time": b"1795301178.5"}, 2.0)
    assert later.disks == (Disk("d3", mounted=False), Disk("d9", size=4194304))
    assert later.quarantined == 1
    assert later.replication_age == {"object": pytest.approx(1795301178.5 - 1795301078.759399)}
    assert later.replication_seconds == {"object": pytest.approx(0.0358001192410787 * 60)}
    counted = recon.parse_recon_state(genuine_answers("o2"), 0.0)
    assert (counted.async_pending, counted.async_counted) == (2, 1795301203.877286)


def test_an_error_in_place_of_mounted_is_not_mounted():
    disk = {
        "device": "d1",
        "mounted": "[Errno 5] Input/output error: 'd1'",
        "size": "",
        "used": "",
        "avail": "",
    }
    assert recon.parse_recon_state({"diskusage": json.dumps([disk]).encode()}, 0.0).disks == (
        Disk("d1", mounted=False),
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["1m", "swift"]), inner),
    max_leaves=6,
)


@given(
    st.dictionaries(
        st.sampled_from([*recon.EACH_ROUND_PATHS, *recon.BOTH_ENDS_PATHS]),
        st.binary() | JSON.map(lambda value: json.dumps(value).encode()),
    )
)
def test_no_answer_raises_anything(answers: dict[str, bytes]):
    state = recon.parse_recon_state(answers, 0.0)
    assert msgspec.json.decode(msgspec.json.encode(state), type=State) == state
    for answer in answers.values():
        recon.parse_proxy_info("http://p", answer)


def test_info_of_a_proxy():
    info = {
        "swift": {
            "version": "2.38.3",
            "strict_cors_mode": True,
            "max_file_size": 5368709122,
            "policies": [{"name": "silver", "aliases": "silver"}, {"name": "gold", "default": True}],
        },
        "slo": {"max_manifest_segments": 1000},
    }
    assert recon.parse_proxy_info("http://p:8080", json.dumps(info).encode()) == Proxy(
        "http://p:8080", "2.38.3", ("gold", "silver"), {"max_file_size": 5368709122}, ("slo",)
    )
    assert recon.parse_proxy_info("http://p", b'{"swift": 3}').failure == "its /info is not that of a Swift"


def test_a_server_that_says_nothing_holds_nobody_up(monkeypatch: pytest.MonkeyPatch):
    """Not even the others in its thread for long; and what it was asked before the run is no answer to it."""
    with socket.create_server(("127.0.0.1", 0)) as silent, closed_port() as refusing:
        urls = [f"http://127.0.0.1:{silent.getsockname()[1]}", f"http://127.0.0.1:{refusing}"]
        # It would have a minute for its answer.
        monkeypatch.setattr(recon, "_READ_SECONDS", 60.0)
        sampler = Sampler(urls, 60.0, time.monotonic())
        wait_for = sampler._changed.wait_for

        def wait_for_the_other_too(answered: Callable[[], bool], patience: float) -> bool:
            assert wait_for(lambda: not sampler._servers[1].busy, 60.0)
            return wait_for(answered, patience)

        begun = time.monotonic()
        with monkeypatch.context() as patch:
            patch.setattr(sampler._changed, "wait_for", wait_for_the_other_too)
            sampler.before(0.3)
        assert time.monotonic() - begun < 30
        said = sampler.servers()
        assert [server.failure for server in said] == ["no whole answer in 0.3 s", "Connection refused"]
        assert [(server.asked, server.unanswered) for server in said] == [(1, 1), (1, 1)]
        sampler.after(0.1)
        assert all(server.before is None and server.after is None for server in sampler.servers())


@contextmanager
def closed_port() -> Iterator[int]:
    """A port that is bound, so that nobody else gets it, and refuses connections."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("load", {"1m": -1e308}),
        ("async", {"async_pending": -1}),
        ("async", {"async_pending_last": 1e308}),
        ("sockstat", {"tcp_in_use": 2**60}),
        ("sockstat", {"tcp_mem_allocated_bytes": -(2**62)}),
        ("time", -1e308),
        ("quarantined", {"objects": -1}),
        ("replication/object", {"replication_time": 1e308}),
        ("replication/account", {"replication_last": -1e308}),
        ("reconstruction/object", {"object_reconstruction_time": 1e12}),
        ("diskusage", [{"device": "d1", "size": -1}]),
    ],
)
def test_a_number_that_no_server_can_have_is_left_out(path: str, answer: object, golden_words: GoldenWords):
    state = recon.parse_recon_state({**genuine_answers("o3"), path: json.dumps(answer).encode()}, 0.0)
    assert msgspec.json.decode(msgspec.json.encode(state), type=State) == state
    whole = recon.parse_recon_state(genuine_answers("o3"), 0.0)
    assert state.unsound == (path,)
    assert state.version == whole.version
    seen = Observation(servers=(server(4, state), server(5, whole)))
    golden_words(describe_judgments(judge_cluster(seen), warnings=True)[0])
