"""What the master asks of a store and of authentication services with credentials, by a name each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fault_server import FaultServer

from ssbench.run.run_marks import RunMarks
from ssbench.store.contract import StoreAccess
from ssbench.store.credentials import Credentials, Session
from ssbench.store.s3.access_keys import KeystoneKeys
from ssbench.store.s3.signing import AccessKey
from ssbench.store.s3.store import S3Store
from ssbench.store.swift.auth import authenticate_swift
from ssbench.store.swift.containers import ContainerListing, ensure_containers, find_containers
from ssbench.store.swift.tempurl import TemporaryKey

TIMEOUTS = (5.0, 5.0)
PROJECT: dict[str, Any] = {"project_name": "p", "user_domain_name": "d", "project_domain_name": "d"}


def origin_of(server: FaultServer) -> str:
    return server.url.partition("/v1")[0]


def swift_session(server: FaultServer) -> Session:
    return Session((server.url,), "token")


def s3_session(server: FaultServer) -> Session:
    key = AccessKey(access="a", secret="s", region="r").pack()
    return Session((f"s3+{origin_of(server)}",), key)


def authenticate(server: FaultServer, version: Any) -> Session:
    url = f"{origin_of(server)}/{'auth/v1.0' if version == '1.0' else f'v{version}'}"
    return authenticate_swift(Credentials(version=version, auth_url=url, user="u", key="secret", **PROJECT))


def _find_s3_region(server: FaultServer) -> None:
    urls = s3_session(server).storage_urls
    S3Store().authenticate(Credentials(version="s3", user="a", key="secret", storage_urls=urls, auth_url=""))


def _make_access_key(server: FaultServer) -> None:
    url = f"{origin_of(server)}/v3"
    KeystoneKeys().find(Credentials(version="3", auth_url=url, user="u", key="secret", **PROJECT))


def _read_swift_listing(server: FaultServer) -> None:
    list(ContainerListing(StoreAccess(swift_session(server), TIMEOUTS), "c").objects(lambda count: None))


def _read_s3_listing(server: FaultServer) -> None:
    session = s3_session(server)
    list(S3Store().objects(StoreAccess(session, TIMEOUTS), "bucket", expect=lambda count: None))


def _make_tempurl_key(server: FaultServer) -> None:
    TemporaryKey(StoreAccess(swift_session(server), TIMEOUTS), 2**31)


def _make_s3_bucket(server: FaultServer) -> None:
    S3Store().prepare(
        StoreAccess(s3_session(server), TIMEOUTS),
        ["bucket"],
        None,
        1,
        lambda: None,
        check=lambda: None,
        headers={},
    )


ASKED_BY_MASTER: dict[str, Callable[[FaultServer], object]] = {
    "v1": lambda server: authenticate(server, "1.0"),
    "v2": lambda server: authenticate(server, "2.0"),
    "v3": lambda server: authenticate(server, "3"),
    "access-key": _make_access_key,
    "s3": _find_s3_region,
    "s3-buckets": lambda server: list(
        S3Store().find_containers(StoreAccess(s3_session(server), TIMEOUTS), "ssbench-", None)
    ),
    "s3-listing": _read_s3_listing,
    "s3-make": _make_s3_bucket,
    "containers": lambda server: list(
        find_containers(StoreAccess(swift_session(server), TIMEOUTS), "ssbench", None)
    ),
    "listing": _read_swift_listing,
    "make": lambda server: ensure_containers(StoreAccess(swift_session(server), TIMEOUTS), ["c"]),
    "marks": lambda server: RunMarks(StoreAccess(swift_session(server), TIMEOUTS), "c").others(),
    "tempurl": _make_tempurl_key,
}
