"""Versions 3 and application credentials of a real Keystone, in front of a real Swift."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest
import requests
from keystone_server import Keystone

from ssbench.base.errors import AuthenticationError, ClusterError
from ssbench.local_swift import LocalSwift
from ssbench.store.contract import StoreAccess, StoreRequest
from ssbench.store.credentials import Credentials
from ssbench.store.s3.signing import SigningKeys
from ssbench.store.s3.store import S3Store
from ssbench.store.swift.auth import authenticate_swift
from ssbench.store.swift.containers import ensure_containers

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("keystone") is None or importlib.util.find_spec("keystonemiddleware") is None,
    reason="keystone is not installed: tox -e keystone",
)

TOKEN_LIFE = 10


@pytest.fixture(scope="module")
def keystone(tmp_path_factory) -> Iterator[Keystone]:
    with Keystone(tmp_path_factory.mktemp("keystone"), TOKEN_LIFE) as running:
        yield running


@pytest.fixture(scope="module")
def keystone_swift(keystone) -> Iterator[LocalSwift]:
    with LocalSwift(authentication=authentication(keystone)) as running:
        yield running


@pytest.fixture(scope="module")
def cluster(keystone, keystone_swift) -> SimpleNamespace:
    """A Keystone, a Swift that asks it, and what a user has to have for them."""
    domain = {"id": "default"}
    by_password = {"user": {"name": "admin", "password": keystone.password, "domain": domain}}
    identity = {"methods": ["password"], "password": by_password}
    scope = {"project": {"name": "admin", "domain": domain}}
    admin = requests.Session()
    answer = admin.post(
        f"{keystone.url}/v3/auth/tokens", json={"auth": {"identity": identity, "scope": scope}}, timeout=30
    )
    assert answer.status_code == 201, answer.text
    admin.headers["X-Auth-Token"] = answer.headers["X-Subject-Token"]
    user = answer.json()["token"]["user"]["id"]

    def create(place: str, kind: str, **fields: object) -> dict:
        created = admin.post(f"{keystone.url}/v3/{place}", json={kind: fields}, timeout=30)
        assert created.status_code == 201, created.text
        return created.json()[kind]

    service = create("services", "service", type="object-store", name="swift")
    create(
        "endpoints",
        "endpoint",
        service_id=service["id"],
        interface="public",
        region_id="RegionOne",
        url=f"{keystone_swift.address}/v1/AUTH_%(project_id)s",
    )
    application = create(f"users/{user}/application_credentials", "application_credential", name="ssbench")
    admin.close()
    return SimpleNamespace(
        keystone=keystone,
        swift=keystone_swift,
        application=application,
        user=user,
        password=Credentials(
            version="3",
            auth_url=keystone.url,
            user="admin",
            key=keystone.password,
            user_domain_id="default",
            project_name="admin",
            project_domain_name="Default",
        ),
    )


def authentication(keystone: Keystone) -> dict[str, dict[str, str]]:
    """Sections of paste that make a proxy ask this Keystone."""
    return {
        "authtoken": {
            "paste.filter_factory": "keystonemiddleware.auth_token:filter_factory",
            "www_authenticate_uri": keystone.url,
            "auth_url": keystone.url,
            "auth_type": "password",
            "username": "admin",
            "password": keystone.password,
            "project_name": "admin",
            "user_domain_id": "default",
            "project_domain_id": "default",
            "delay_auth_decision": "true",
            "include_service_catalog": "false",
            "cache": "swift.cache",
            "token_cache_time": "-1",
        },
        "keystoneauth": {"use": "egg:swift#keystoneauth", "operator_roles": "admin, member"},
    }


def test_password(cluster):
    session = authenticate_swift(cluster.password)
    assert session.storage_url.startswith(f"{cluster.swift.address}/v1/AUTH_")
    ensure_containers(StoreAccess(session), ["by-password"], "silver")


def test_application_credential(cluster):
    given = Credentials(
        version="3",
        auth_url=f"{cluster.keystone.url}/v3",
        application_credential_id=cluster.application["id"],
        application_credential_secret=cluster.application["secret"],
    )
    session = authenticate_swift(given)
    assert session.storage_url == authenticate_swift(cluster.password).storage_url
    ensure_containers(StoreAccess(session), ["by-application"], None)
    with pytest.raises(AuthenticationError, match="refused: HTTP 401"):
        authenticate_swift(replace(given, application_credential_secret="wrong"))


def test_a_token_instead_of_a_password(cluster):
    token = authenticate_swift(cluster.password).token
    session = authenticate_swift(replace(cluster.password, user=None, key=None, token=token))
    ensure_containers(StoreAccess(session), ["by-token"], None)


def test_refusals(cluster):
    with pytest.raises(AuthenticationError, match="refused: HTTP 401"):
        authenticate_swift(replace(cluster.password, key="wrong"))
    with pytest.raises(AuthenticationError, match="no storage URL"):
        authenticate_swift(replace(cluster.password, region_name="nowhere"))


def test_a_token_expires_and_is_replaced(cluster):
    old = authenticate_swift(cluster.password)
    deadline = time.monotonic() + 60
    while requests.head(old.storage_url, headers={"X-Auth-Token": old.token}, timeout=30).status_code != 401:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    with pytest.raises(ClusterError, match="late: HTTP 401"):
        ensure_containers(StoreAccess(old), ["late"])
    new = authenticate_swift(cluster.password)
    assert new.token != old.token
    ensure_containers(StoreAccess(new), ["late"])


def test_by_the_variables_of_the_environment(cluster):
    session = authenticate_swift(cluster.password)
    ensure_containers(StoreAccess(session), [f"ssbench_{number:06d}" for number in range(5)])
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "ST_"))}
    environ |= {
        "OS_AUTH_URL": cluster.keystone.url,
        "OS_USERNAME": "admin",
        "OS_PASSWORD": cluster.keystone.password,
        "OS_PROJECT_NAME": "admin",
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_PROJECT_DOMAIN_NAME": "Default",
    }
    ended = subprocess.run(
        [sys.executable, "-m", "ssbench.cli.master", "-v", "cleanup-containers"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        env=environ,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "Deleted 5 containers" in ended.stderr
    assert cluster.keystone.password not in ended.stderr


@pytest.fixture(scope="module")
def s3_swift(keystone, cluster) -> Iterator[LocalSwift]:
    """A second Swift that asks the same Keystone, with s3api and s3token where they have to be."""
    sections = authentication(keystone)
    service = {key: sections["authtoken"][key] for key in _SERVICE_KEYS}
    with LocalSwift(
        authentication={
            "authtoken": sections["authtoken"],
            "s3api": {"use": "egg:swift#s3api", "auth_pipeline_check": "false"},
            "s3token": {
                "use": "egg:swift#s3token",
                "auth_uri": f"{keystone.url}/v3",
                "delay_auth_decision": "true",
                **service,
            },
            "keystoneauth": sections["keystoneauth"],
        }
    ) as running:
        yield running


_SERVICE_KEYS = (
    *("auth_url", "auth_type", "username", "password", "project_name"),
    *("user_domain_id", "project_domain_id"),
)


def test_an_access_key_is_made_for_s3_and_removed_at_the_end(cluster, s3_swift):
    keys = f"{cluster.keystone.url}/v3/users/{cluster.user}/credentials/OS-EC2"
    asked = {"X-Auth-Token": authenticate_swift(cluster.password).token}

    def made() -> list[str]:
        found = requests.get(keys, headers=asked, timeout=30).json()["credentials"]
        return [each["access"] for each in found]

    before = made()
    store = S3Store()
    given = replace(cluster.password, storage_urls=(f"s3+{s3_swift.address}",))
    session = store.authenticate(given)
    (access,) = set(made()) - set(before)
    assert SigningKeys.unpack(session.token).access == access
    assert store.authenticate(given) == session  # not one for each renewal
    outcome = store.ask(StoreAccess(session, (10.0, 30.0)), StoreRequest(method="PUT", container="by-ec2"))
    assert outcome.cause is None
    store.end()
    assert made() == before
