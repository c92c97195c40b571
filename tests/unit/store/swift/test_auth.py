"""What an authentication service may answer that is none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fault_server import FaultServer, Reply

from ssbench.base.errors import AuthenticationError
from ssbench.store.credentials import Credentials
from ssbench.store.swift.auth import authenticate_swift

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
