"""What a cluster must have for a scenario, as its /info says, and signatures for reads without a token."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fault_server import FaultServer, Reply, Request
from golden_words import GoldenWords

from ssbench import load_scenario
from ssbench.base.errors import ClusterError, UsageError
from ssbench.run.bench_options import RunOptions
from ssbench.run.group_run import make_group_runs
from ssbench.run.setup import (
    MAX_SIGNED_CONTAINERS,
    find_useless_keys,
    is_resumption_useless,
    leaves_old_parts,
    refuse_many_signatures,
    refuse_missing_features,
    refuse_other_host,
    sign_reads,
)
from ssbench.run.tokens import TokenSource
from ssbench.scenario.model import Scenario
from ssbench.store.credentials import Credentials, Session
from ssbench.store.request_options import RequestOptions
from ssbench.store.s3.signing import AccessKey
from ssbench.store.swift import tempurl

LIMITS = {"max_meta_count": 90, "max_meta_value_length": 256, "max_meta_overall_size": 4096}
EVERYTHING = {"swift": LIMITS, "slo": {}, "bulk_upload": {}, "tempurl": {}}


def scenario(profile: dict[str, float] | None = None, **values: Any) -> Scenario:
    """Return a scenario of these operations; a value that is None is left out."""
    data = {
        "name": "s",
        "sizes": [{"name": "small", "size_min": 1, "size_max": 9}],
        "initial_files": {"small": 3},
        "operation_count": 10,
        "user_count": 2,
        "profile": profile or {"read": 1},
        **values,
    }
    return load_scenario({key: value for key, value in data.items() if value is not None})


def tokens(*urls: str) -> TokenSource:
    """Return what has a session for each of these storage URLs."""
    sessions = iter([Session((url,), "t") for url in urls])
    each = Credentials(version="1.0", auth_url="http://h/", user="u", key="k")
    return TokenSource([each] * len(urls), authenticate=lambda _: next(sessions))


class Cluster:
    """A server with this /info (None: it has none), which counts how often it was asked."""

    def __init__(self, server: FaultServer) -> None:
        self.info: dict[str, Any] | None = EVERYTHING
        self.asked = 0
        self.url = server.url
        self.host = server.url.partition("/v1")[0]
        server.rule = self._answer

    def _answer(self, request: Request) -> Reply:
        self.asked += request.target == "/info"
        if self.info is None:
            return Reply(404)
        return Reply(200, body=json.dumps(self.info).encode())

    def check(self, needed: Scenario, *, existing: Any = None, **options: Any) -> None:
        refuse_missing_features(needed, RunOptions(existing=existing), tokens(self.url), **options)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with FaultServer() as server:
        yield Cluster(server)


def test_a_scenario_of_plain_operations_needs_nothing(cluster: Cluster) -> None:
    cluster.info = {"swift": {}}
    cluster.check(scenario({"create": 1, "read": 1, "update": 1, "delete": 1}))
    assert cluster.asked == 0, "nothing is asked that does not matter"


def test_what_operations_need_is_there_or_named(cluster: Cluster, golden_words: GoldenWords) -> None:
    needing = scenario({"slo": 1, "bulk": 1, "read": 1})
    cluster.check(needing)
    assert cluster.asked == 1
    cluster.info = {"swift": {}, "bulk_upload": {}}
    with pytest.raises(UsageError) as caught:
        cluster.check(needing)
    golden_words(str(caught.value))


CASE = Path(__file__).parents[2] / "data" / "cases" / "12-over-5-GB" / "big.json"


def test_objects_beyond_what_a_cluster_takes_are_refused_before_the_uploads(
    cluster: Cluster, golden_words: GoldenWords
) -> None:
    """They were uploaded, and each ended with 413."""
    big = load_scenario(CASE)
    cluster.info = {"swift": {"max_file_size": 5 * 2**30 + 2}}
    with pytest.raises(UsageError) as caught:
        cluster.check(big)
    golden_words(str(caught.value))
    cluster.check(big, uploads_only=False, existing="c")
    in_segments = json.loads(CASE.read_text())
    in_segments["sizes"][0]["segment_size"] = "1GiB"
    cluster.info["slo"] = {}
    cluster.check(load_scenario(in_segments))
    cluster.info["swift"]["max_file_size"] = 2**30 - 1
    with pytest.raises(UsageError, match="up to 1,073,741,824 bytes in one piece"):
        cluster.check(load_scenario(in_segments))
    cluster.info["swift"]["max_file_size"] = 7 * 10**9
    cluster.check(big)
    cluster.info = {"swift": {"max_file_size": "unlimited"}}
    cluster.check(big)


def test_an_operation_of_one_group_of_users_is_needed_too(cluster: Cluster) -> None:
    cluster.info = {"swift": {}}
    groups = [
        {"name": "readers", "users": 2, "profile": {"read": 1}},
        {"name": "segments", "users": 2, "profile": {"slo": 1}},
    ]
    with pytest.raises(UsageError, match="slo needs slo"):
        cluster.check(scenario(groups=groups, run_seconds=5, operation_count=None, user_count=None))


def test_before_uploads_alone_operations_do_not_matter(cluster: Cluster) -> None:
    cluster.info = {"swift": {"max_meta_count": 2}}
    cluster.check(scenario({"slo": 1}), uploads_only=True)
    assert cluster.asked == 0
    with pytest.raises(UsageError, match="metadata"):
        cluster.check(scenario({"slo": 1}, metadata={"number": 5, "size": 8}), uploads_only=True)


def test_a_cluster_that_does_not_say_is_not_refused(
    cluster: Cluster, caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    cluster.info = None
    caplog.set_level(logging.INFO)
    cluster.check(scenario({"slo": 1}, metadata={"number": 900, "size": 8}))
    golden_words(caplog.messages)


@pytest.mark.parametrize(
    ("values", "beyond"),
    [
        ({"metadata": {"number": 89, "size": 8}}, None),
        ({"metadata": {"number": 90, "size": 8}}, r"max_meta_count 91 \(at most 90\)"),
        ({"metadata": {"number": 1, "size": 257}}, r"max_meta_value_length 257 \(at most 256\)"),
        ({"metadata": {"number": 40, "size": 100}}, "max_meta_overall_size 4,4"),
        (
            {"profile": {"post": 1}, "operations": [{"name": "post", "metadata": 40, "metadata_bytes": 100}]},
            "max_meta_overall_size 4,4",
        ),
        ({"profile": {"read": 1}, "metadata": {"number": 2, "size": 8}}, None),
    ],
)
def test_metadata_that_the_cluster_does_not_take(
    cluster: Cluster, values: dict[str, Any], beyond: str | None, golden_words: GoldenWords
) -> None:
    cluster.info = {"swift": LIMITS}
    needing = scenario(**values)
    if beyond is None:
        cluster.check(needing)
        assert cluster.asked == ("metadata" in values)
    else:
        with golden_words.raises(UsageError):
            cluster.check(needing)


def test_each_server_is_asked_once(cluster: Cluster) -> None:
    with FaultServer(rule=lambda _: Reply(200, body=b'{"swift": {}}')) as other:
        urls = [cluster.url, cluster.url.replace("AUTH_test", "AUTH_b"), other.url]
        with pytest.raises(UsageError, match=f"^{other.url}: the cluster lacks"):
            refuse_missing_features(scenario({"slo": 1}), RunOptions(), tokens(*urls))
    assert cluster.asked == 1


def test_an_address_for_a_host_that_is_in_no_storage_url_is_refused() -> None:
    def refuse(resolve: str | None, *urls: str) -> None:
        refuse_other_host(RunOptions(requests=RequestOptions(resolve=resolve)), tokens(*urls))

    refuse(None, "http://h/v1/a")
    refuse("h=10.0.0.1,10.0.0.2", "http://h:8080/v1/a")
    refuse("SWIFT.example=10.0.0.1", "https://other/v1/a", "https://swift.Example/v1/a")
    with pytest.raises(UsageError, match=r"no storage URL has the host h \(but i, swift\)"):
        refuse("h=10.0.0.1", "http://swift/v1/h", "http://i/v1/h")


@pytest.mark.parametrize(
    ("connections", "urls", "vain"),
    [
        ({"tls_resume": True}, ["http://h/v1/a"], True),
        ({"tls_resume": True}, ["https://h/v1/a"], False),
        ({"tls_resume": True}, ["http://h/v1/a", "https://h/v1/a"], False),
        ({"tls_resume": False, "new": 0.5}, ["http://h/v1/a"], False),
        (None, ["http://h/v1/a"], False),
    ],
)
def test_tls_sessions_are_resumed_where_there_is_tls(
    connections: dict[str, Any] | None, urls: list[str], vain: bool
) -> None:
    values = {} if connections is None else {"connections": connections}
    assert is_resumption_useless(scenario(**values), tokens(*urls)) is vain


def test_what_is_said_of_bodies_needs_the_s3_api() -> None:
    swift, s3 = "http://h/v1/a", "s3+http://h"
    for payload, urls, vain in (
        ("unsigned", [swift], False),
        ("chunked", [swift], True),
        ("chunked", [s3], False),
        ("chunked", [swift, s3], False),
    ):
        assert find_useless_keys(scenario(s3_payload=payload), tokens(*urls)) == ["s3_payload"] * vain


def test_signatures_are_for_few_containers_of_one_account(golden_words: GoldenWords) -> None:
    refuse_many_signatures(scenario({"tempurl": 1}, container_count=MAX_SIGNED_CONTAINERS))
    refuse_many_signatures(scenario({"read": 1}, container_count=MAX_SIGNED_CONTAINERS + 1))
    with golden_words.raises(UsageError):
        refuse_many_signatures(scenario({"tempurl": 1}, container_count=MAX_SIGNED_CONTAINERS + 1))
    with golden_words.raises(UsageError):
        refuse_many_signatures(scenario({"tempurl": 1}, container_count=2, accounts=2))


class Account:
    """An account that takes a key for temporary URLs, and every signature, or as many as it ``refuses``."""

    def __init__(self, server: FaultServer) -> None:
        self.key = ""
        self.signed = 0
        self.refuses = False
        self.tokens = tokens(server.url)
        server.rule = self._answer

    def _answer(self, request: Request) -> Reply:
        field = "x-account-meta-temp-url-key"
        if request.target == "/info":
            return Reply(200, body=b'{"swift": {}, "tempurl": {"allowed_digests": ["sha1"]}}')
        if request.method == "POST":
            self.key = request.headers.get(field, self.key)
            return Reply(204)
        if request.method == "HEAD":
            return Reply(204, headers=((field, self.key),))
        self.signed += 1
        return Reply(401 if self.refuses else 404)


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    monkeypatch.setattr(tempurl, "_PAUSE_SECONDS", 0.0)
    with FaultServer() as server:
        yield Account(server)


class ToldWorkers(SimpleNamespace):
    """Keeps what workers are told."""

    def change(self, **values: Any) -> None:
        self.told = values


def test_workers_get_a_signature_for_each_container(account: Account) -> None:
    parts = make_group_runs(scenario({"tempurl": 1}, container_count=3), 7, None)
    parts[0].workers = workers = ToldWorkers()
    signed = sign_reads(parts, RunOptions(), account.tokens, lambda: False)
    assert signed is not None
    assert account.key
    queries = workers.told["signed"]
    assert len({*queries}) == len(queries) == len(parts[0].places[0].containers) == 3
    assert account.key not in "".join(queries), "the key stays with the master"
    signed.end()
    assert not account.key


def test_a_run_without_such_reads_makes_no_key(account: Account) -> None:
    assert (
        sign_reads(make_group_runs(scenario(), 7, None), RunOptions(), account.tokens, lambda: False) is None
    )
    assert not account.key


def test_the_key_is_removed_where_no_signature_is_good(
    account: Account, monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    account.refuses = True
    monkeypatch.setattr(tempurl, "_PROPAGATION_SECONDS", -1.0)
    parts = make_group_runs(scenario({"tempurl": 1}), 7, None)
    parts[0].workers = ToldWorkers()
    with golden_words.raises(ClusterError):
        sign_reads(parts, RunOptions(), account.tokens, lambda: False)
    assert account.signed
    assert not account.key


@pytest.mark.parametrize(
    ("keys", "fields", "expected"),
    [
        ({}, {"X-Trans-Id": "tx1"}, True),
        ({}, {}, False),  # the store is no Swift
        ({"profile": {"read": 1}}, {"X-Trans-Id": "tx1"}, None),
        ({"sizes": [{"name": "big", "size": "6M"}]}, {"X-Trans-Id": "tx1"}, None),
    ],
)
def test_updates_of_parts_leave_the_old_ones_in_a_swift(
    keys: dict[str, Any], fields: dict[str, str], expected: bool | None
) -> None:
    """None: the store need not be asked."""
    body = b"<ListAllMyBucketsResult></ListAllMyBucketsResult>"
    with FaultServer(rule=lambda _: Reply(200, body, headers=tuple(fields.items()))) as server:
        key = AccessKey(access="a", secret="b").pack()
        session = Session((f"s3+{server.url.rpartition('/v1')[0]}",), key)
        source = TokenSource([Credentials(version="s3", user="a", key="b")], authenticate=lambda _: session)
        updated = scenario(
            **{
                "sizes": [{"name": "big", "size": "6M", "segment_size": "5M"}],
                "initial_files": {"big": 1},
                "profile": {"update": 1},
                **keys,
            }
        )
        assert leaves_old_parts(updated, RunOptions(), source) is bool(expected)
        assert bool(server.requests) is (expected is not None)
    over_swift = tokens("http://127.0.0.1:1/v1/AUTH_a")
    assert not leaves_old_parts(updated, RunOptions(), over_swift)
