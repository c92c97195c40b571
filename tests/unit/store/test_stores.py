"""The table of the kinds of stores: a further row and its package are all that a further kind needs."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from asked_commands import ask, ask_auth
from fault_server import FaultServer, Reply
from golden_words import GoldenWords

from ssbench import load_scenario
from ssbench.base.errors import UsageError
from ssbench.cli import auth_options, master, sides
from ssbench.reports import run_facts
from ssbench.results.run_description import RunDescription
from ssbench.run.bench_options import RunOptions
from ssbench.run.setup import find_useless_keys, refuse_missing_features
from ssbench.run.tokens import TokenSource
from ssbench.scenario.store_kinds import STORE_KINDS, StoreKind, strip_store_prefix
from ssbench.scenario.suite_file import read_suite
from ssbench.store import conformance_checks
from ssbench.store.credentials import Credentials, Session
from ssbench.store.stores import STORE, open_dialect
from ssbench.store.swift.dialect import SwiftDialect
from ssbench.store.swift.store import SwiftStore

URL = "blob+http://h/account"

BLOB = StoreKind(name="blob", api="the Blob API", prefix="blob+", lacks={"slo": "blobs are whole"})


class BlobDialect(SwiftDialect):
    def __init__(self, storage_url: str, *more: Any) -> None:
        super().__init__(strip_store_prefix(storage_url), *more)


class BlobStore(SwiftStore):
    def authenticate(self, credentials: Credentials, timeout: float = 10.0) -> Session:
        return Session(credentials.storage_urls, credentials.key)

    def prepare(self, *_: Any, **__: Any) -> None:
        pass


def find_blob_key(*found: Any) -> Credentials:
    return replace(found[-1], version="1.0", user="account", key=found[-2]["BLOB_KEY"])


@pytest.fixture(autouse=True)
def _blob(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STORE_KINDS, BLOB.name, BLOB)
    for name, content in (("store", {"STORE_CLASS": BlobStore}), ("dialect", {"DIALECT_CLASS": BlobDialect})):
        monkeypatch.setitem(sys.modules, f"ssbench.store.blob.{name}", SimpleNamespace(**content))
    monkeypatch.setitem(auth_options._KEY_FINDERS, "blob", find_blob_key)
    monkeypatch.setenv("BLOB_KEY", "secret")


def credentials(*urls: str) -> Credentials:
    asked = ask_auth(*(word for url in urls for word in ("-S", url)))
    return auth_options.make_credentials(asked, {"BLOB_KEY": "secret", "OS_AUTH_TOKEN": "of Swift"})


def test_its_package_is_found_by_its_storage_url() -> None:
    session = STORE.authenticate(credentials(URL))
    assert session.token == "secret"
    assert type(STORE.of(session)) is BlobStore
    dialect = open_dialect(URL)
    assert type(dialect) is BlobDialect
    assert dialect.path == "/account"
    assert credentials("http://h/v1/AUTH_a").token == "of Swift"


def test_messages_name_it(golden_words: GoldenWords) -> None:
    with pytest.raises(
        UsageError, match=r", or s3\+http://HOST.* the S3 API.*, or blob\+http:.* the Blob API"
    ):
        credentials("blob+ftp://h")
    with golden_words.raises(UsageError):
        STORE.authenticate(credentials(URL, "http://h/v1/AUTH_a"))
    source = TokenSource([credentials(URL)])
    scenario = load_scenario(
        {
            "name": "s",
            "sizes": [{"name": "small", "size": 9}],
            "initial_files": {"small": 3},
            "operation_count": 10,
            "user_count": 2,
            "profile": {"slo": 1},
            "s3_payload": "signed",
        }
    )
    with pytest.raises(UsageError, match=r"h/account: not possible over the Blob API: slo: blobs are whole"):
        refuse_missing_features(scenario, RunOptions(), source)
    assert find_useless_keys(scenario, source) == ["s3_payload"]
    noted = [
        [each.text for each in run_facts._requests(RunDescription(scenario, storage_urls=[url]))]
        for url in ("s3+http://h", URL)
    ]
    assert noted[0] == ["Payload over S3: signed", *noted[1]]


def test_sides_and_suites_have_it_by_its_url_for_it_is_no_api_of_a_swift() -> None:
    both = ask("run-scenario", "--ab", "a=http://h/v1/AUTH_a", f"b={URL}")
    assert [side.api for side in sides.parse_sides(both)] == ["swift", "blob"]
    assert sides.parse_stores([f"blob={URL}"], local_swift=False) == {"blob": URL}
    with pytest.raises(UsageError, match="--store: 'blob' is not swift, s3, NAME=URL"):
        sides.parse_stores(["blob"], local_swift=False)
    assert {each.store for each in read_suite("quick", stores={"blob": URL}).variants} == {"blob"}


def test_a_command_asks_it(
    fault_server: FaultServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fault_server.rule = lambda request: Reply(201 if request.method == "PUT" else 404)
    few = [each for each in conformance_checks.CHECKS if each.name in {"create", "public", "payload signed"}]
    monkeypatch.setattr(conformance_checks, "CHECKS", few)
    master.main(["conformance", "-S", f"blob+{fault_server.url}"])
    shown = capsys.readouterr().out
    assert shown.count("not in the Blob API") == 2
    assert {each.headers.get("x-auth-token") for each in fault_server.requests} == {"secret"}
