"""What an authentication service may answer that is none."""

from __future__ import annotations

import contextlib
import json
import shlex
import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fault_server import Certificates, FaultServer, Reply
from golden_words import GoldenWords

from ssbench.base.errors import AuthenticationBusyError, AuthenticationError, ClusterError
from ssbench.store.contract import StoreAccess
from ssbench.store.credentials import Credentials, Session
from ssbench.store.swift.auth import authenticate_swift
from ssbench.store.swift.containers import find_containers

#: When the tokens of these answers end.
LATER = "2099-01-01T00:00:00.000000Z"


def token(catalog: Any) -> dict[str, Any]:
    own = {"id": "u", "name": "n", "domain": {"id": "d", "name": "d"}}
    return {"token": {"methods": ["password"], "expires_at": LATER, "catalog": catalog, "user": own}}


def endpoint(url: Any) -> list[Any]:
    endpoints = [{"id": "e", "interface": "public", "region": "r", "region_id": "r", "url": url}]
    return [{"type": "object-store", "id": "1", "name": "swift", "endpoints": endpoints}]


def access(identity: Any, url: Any) -> dict[str, Any]:
    catalog = [{"type": "object-store", "endpoints": [{"publicURL": url}]}]
    own = {"id": "u", "name": "n", "roles": []}
    return {
        "access": {"token": {"id": identity, "expires": LATER}, "serviceCatalog": catalog, "user": own},
    }


def ask(version: Any, reply: Reply) -> tuple[str, ...]:
    names = {"project_name": "p", "user_domain_name": "d", "project_domain_name": "d"}
    with FaultServer(rule=lambda _: reply) as server:
        url = server.url.partition("/v1")[0] + f"/v{version}"
        return authenticate_swift(
            Credentials(version=version, auth_url=url, user="u", key="k", **names)
        ).storage_urls


def as_keystone(answer: Any) -> Reply:
    fields = (("X-Subject-Token", "t"), ("Content-Type", "application/json"))
    return Reply(201, body=json.dumps(answer).encode(), headers=fields)


def test_what_is_one() -> None:
    assert ask("3", as_keystone(token(endpoint("http://x/v1/a")))) == ("http://x/v1/a",)
    assert ask("2.0", as_keystone(access("t", "http://x/v1/a"))) == ("http://x/v1/a",)


@pytest.mark.parametrize(
    ("version", "answer"),
    [
        ("3", {"token": []}),
        ("3", token(5)),
        ("3", token([{"type": 5}])),
        ("3", token([{"type": "object-store", "endpoints": [5]}])),
        ("3", token(endpoint(5))),
        ("3", token(endpoint({}))),
        ("2.0", {"access": []}),
        ("2.0", access(5, "http://x/v1/a")),
        ("2.0", access("t", 5)),
    ],
)
def test_json_of_other_kinds_is_one_line_for_the_user(version: str, answer: Any) -> None:
    """It was a traceback, and that of the whole run where a token was renewed."""
    with pytest.raises(AuthenticationError):
        ask(version, as_keystone(answer))


@pytest.mark.parametrize("url", ["http://x/v1/a?b", "http://x/v1/a#b", "http://\xe9/v1/a", "http://x/v1/a b"])
def test_a_storage_url_that_no_worker_takes_is_refused_at_once(url: str) -> None:
    fields = (("X-Storage-Url", url), ("X-Auth-Token", "t"))
    with pytest.raises(AuthenticationError, match="for a storage URL"):
        ask("1.0", Reply(200, headers=fields))


# What the refusals and failures of a person's set-up say

CASES = Path(__file__).parents[3] / "data" / "cases"


def catalog(*endpoints: tuple[str, str], kind: str = "object-store") -> list[Any]:
    rows = [
        {"id": "e", "interface": interface, "region": region, "region_id": region, "url": "http://x/v1/a"}
        for region, interface in endpoints
    ]
    return [
        {"type": kind, "id": "1", "name": "swift", "endpoints": rows},
        {"type": "identity", "id": "2", "name": "keystone", "endpoints": rows},
    ]


def in_keystone(answer: Reply, **more: Any) -> Credentials:
    names = {"project_name": "p", "user_domain_name": "d", "project_domain_name": "d"}
    with FaultServer(rule=lambda _: answer) as server:
        url = server.url.partition("/v1")[0] + "/v3"
        given = Credentials(version="3", auth_url=url, user="u", key="secret", **names)
        authenticate_swift(replace(given, **more))
    return given


def variables(case: str) -> dict[str, str]:
    words = shlex.split((CASES / case / "openrc.sh").read_text().replace("export", ""))
    return dict(word.split("=", 1) for word in words)


def test_a_region_that_the_catalogue_does_not_have_names_those_that_it_has() -> None:
    region = variables("31-wrong-region")["OS_REGION_NAME"]
    answer = as_keystone(token(catalog(("SBG", "public"), ("GRA", "public"), ("GRA", "admin"))))
    with pytest.raises(AuthenticationError) as caught:
        in_keystone(answer, region_name=region)
    said = "authentication gave no storage URL (object-store, public, region BHS)"
    assert str(caught.value).endswith(f"{said}; the catalogue has object-store in GRA and SBG")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"endpoint_type": "internal"},
            "; the catalogue has object-store for the interface admin and public",
        ),
        (
            {"endpoint_type": "admin", "region_name": "SBG"},
            "; the catalogue has object-store for the interface public",
        ),
        ({"service_type": "swift-old"}, "; the catalogue has identity and object-store"),
    ],
)
def test_an_interface_or_a_service_likewise(more: dict[str, str], said: str) -> None:
    answer = as_keystone(token(catalog(("SBG", "public"), ("GRA", "public"), ("GRA", "admin"))))
    with pytest.raises(AuthenticationError) as caught:
        in_keystone(answer, **more)
    assert str(caught.value).endswith(said)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"token": "gAAAAA-yesterday"},
        {"application_credential_id": "abc", "application_credential_secret": "x"},
        {"user": None, "user_id": "4711"},
        {"version": "1.0"},
    ],
)
def test_a_refusal_says_what_was_sent(more: dict[str, Any], golden_words: GoldenWords) -> None:
    with pytest.raises(AuthenticationError) as caught:
        in_keystone(Reply(401), **more)
    golden_words(str(caught.value))
    assert "yesterday" not in str(caught.value)


@pytest.mark.parametrize("version", ["1.0", "2.0", "3"])
@pytest.mark.parametrize(
    ("reply", "seconds"),
    [
        (Reply(429), None),
        (Reply(429, retry_after="7"), 7.0),
        (Reply(429, retry_after="soon"), 0.0),
        (Reply(503, retry_after="7"), 7.0),
    ],
)
def test_a_busy_service_says_when_to_ask_again(
    version: Any, reply: Reply, seconds: float | None, golden_words: GoldenWords
) -> None:
    with pytest.raises(AuthenticationBusyError) as caught:
        in_keystone(reply, version=version, name="side old")
    assert caught.value.seconds == seconds
    assert str(caught.value).startswith("side old: http")
    golden_words(str(caught.value))


def test_a_503_without_more_is_no_reason_to_wait() -> None:
    with pytest.raises(AuthenticationError) as caught:
        in_keystone(Reply(503))
    assert not isinstance(caught.value, AuthenticationBusyError)


@pytest.mark.parametrize("version", ["1.0", "3"])
@pytest.mark.parametrize(
    "names",
    [
        (),
        ("other.example",),
    ],
)
def test_a_certificate_that_is_not_trusted_says_what_to_do(
    version: Any, names: tuple[str, ...], tmp_path: Path, golden_words: GoldenWords
) -> None:
    authority = Certificates()
    trusted = tmp_path / "ca.pem"
    trusted.write_text(authority.pem)
    with FaultServer(tls=authority.server(*names)) as server:
        url = server.url.partition("/v1")[0] + "/v3"
        more = {"project_name": "p", "user_domain_name": "d", "project_domain_name": "d"}
        given = Credentials(version=version, auth_url=url, user="u", key="k", **more)
        with pytest.raises(ClusterError) as caught:
            authenticate_swift(replace(given, ca_file=str(trusted)) if names else given)
    golden_words(str(caught.value))


def test_a_certificate_of_the_storage_url_says_it_too(golden_words: GoldenWords) -> None:
    with FaultServer(tls=Certificates().server()) as server, pytest.raises(ClusterError) as caught:
        list(find_containers(StoreAccess(Session((server.url,), "token")), "ssbench", None))
    golden_words(str(caught.value))


def test_tls_where_the_server_has_none_says_so(golden_words: GoldenWords) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with listener.accept()[0] as connection:
                connection.recv(10)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                with contextlib.suppress(ConnectionResetError):
                    while connection.recv(1000):  # else the rest of the hello resets it
                        pass

        answering = threading.Thread(target=answer, daemon=True)
        answering.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/auth"
        with pytest.raises(ClusterError) as caught:
            authenticate_swift(Credentials(version="1.0", auth_url=url, user="u", key="k"))
        answering.join(60)
    golden_words(str(caught.value))
