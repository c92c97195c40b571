"""A cloud of a clouds.yaml as credentials, without asking any server; system tests authenticate with one."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from golden_words import GoldenWords

from ssbench.base.errors import UsageError
from ssbench.store.credentials import Credentials
from ssbench.store.swift.auth import read_cloud_credentials

NONE = Credentials(version="cloud", auth_url="", endpoint_type="")
AUTH = {
    "auth_url": "http://k.example/v3",
    "username": "u",
    "password": "hidden",
    "project_name": "project",
    "user_domain_name": "Default",
    "project_domain_name": "Default",
}
CLOUDS = {
    "mine": {"auth": AUTH, "regions": ["other", "one"], "interface": "internal", "verify": False},
    "tls": {"auth": AUTH, "region_name": "r", "cacert": "CACERT", "cert": "CERT", "key": "KEY"},
    "broken": {"auth": {"password": "hidden"}},
    "told": {"auth": AUTH | {"auth_url": "http://u:hidden@k/v3"}},
}


@pytest.fixture(autouse=True)
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clouds.yaml, and no variables of OpenStack's."""
    path = tmp_path / "clouds.yaml"
    text = json.dumps({"clouds": CLOUDS})
    for name in ("CACERT", "CERT", "KEY"):
        (tmp_path / name).write_text("")
        text = text.replace(f'"{name}"', json.dumps(str(tmp_path / name)))
    path.write_text(text)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
    return path


def test_what_a_cloud_says() -> None:
    found = read_cloud_credentials("mine", NONE)
    assert (found.version, found.auth_url) == ("cloud", "http://k.example/v3")
    assert (found.region_name, found.endpoint_type) == ("other", "internal")
    assert found.service_type == "object-store"
    assert (found.insecure, found.ca_file, found.certificate) == (True, None, None)
    assert found.plugin is not None
    assert "hidden" not in repr(found)


def test_options_come_first() -> None:
    given = Credentials(
        version="cloud",
        auth_url="",
        region_name="one",
        endpoint_type="public",
        service_type="swift",
        ca_file="/own.pem",
    )
    found = read_cloud_credentials("mine", given)
    assert (found.region_name, found.endpoint_type, found.service_type) == ("one", "public", "swift")
    assert found.ca_file == "/own.pem"


def test_files_of_tls(tmp_path: Path) -> None:
    found = read_cloud_credentials("tls", NONE)
    files = (found.ca_file, found.certificate, found.certificate_key)
    assert files == tuple(str(tmp_path / name) for name in ("CACERT", "CERT", "KEY"))
    assert (found.insecure, found.endpoint_type) == (False, "public")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", "cloud 'absent': .*not found"),
        ("broken", "cloud 'broken': "),
        ("told", r"cloud 'told': authentication URL 'http://\*\*\*@k/v3': .* is refused"),
    ],
)
def test_a_cloud_that_cannot_be_used(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        read_cloud_credentials(name, NONE)
    assert "hidden" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_does_not_show_what_is_in_it(clouds: Path) -> None:
    clouds.write_text("clouds: {mine: {auth: {password: 'hidden\n")
    with pytest.raises(UsageError, match=r"^cloud 'mine': ") as caught:
        read_cloud_credentials("mine", NONE)
    assert "hidden" not in str(caught.value)


def test_without_openstacksdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openstack", None)
    with pytest.raises(UsageError, match=r"cloud 'mine' .* needs openstacksdk: pip install openstacksdk"):
        read_cloud_credentials("mine", NONE)


CASE = Path(__file__).parents[3] / "data" / "cases" / "35-endpoint-override" / "clouds.yaml"


def test_a_cloud_may_have_an_endpoint_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was ignored, and the load went to the cluster of the catalogue."""
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(CASE))
    assert read_cloud_credentials("lab", NONE).storage_urls == ("http://127.0.0.1:9/v1/AUTH_lab",)
    own = replace(NONE, storage_urls=("http://127.0.0.1:8/v1/AUTH_own",))
    assert read_cloud_credentials("lab", own).storage_urls == own.storage_urls


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1/v1",
        "http://h/v1/AUTH_%(project_id)s",
        "http://u:hidden@h/v1/a",
    ],
)
def test_an_endpoint_that_is_no_storage_url_is_refused(
    clouds: Path, url: str, golden_words: GoldenWords
) -> None:
    clouds.write_text(json.dumps({"clouds": {"lab": {"auth": AUTH, "object_store_endpoint_override": url}}}))
    with pytest.raises(UsageError, match="object_store_endpoint_override") as caught:
        read_cloud_credentials("lab", NONE)
    golden_words(str(caught.value))
    assert "hidden" not in str(caught.value)
