"""Which access key is taken where a storage URL is for the S3 API."""

from __future__ import annotations

from pathlib import Path

import pytest
from asked_commands import ask_auth
from golden_words import GoldenWords

from ssbench.base.errors import UsageError
from ssbench.cli.auth_options import make_credentials
from ssbench.store.credentials import Credentials

URL = "s3+http://h:8080"
AWS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "r"}
ST = {"ST_AUTH": "http://h/auth/v1.0", "ST_USER": "test:tester", "ST_KEY": "testing"}
OS = {
    "OS_AUTH_URL": "http://k/v3",
    "OS_USERNAME": "u",
    "OS_PASSWORD": "p",
    "OS_PROJECT_NAME": "j",
    "OS_USER_DOMAIN_NAME": "d",
    "OS_PROJECT_DOMAIN_NAME": "d",
}


@pytest.fixture
def made(tmp_path: Path):
    def make(environ: dict[str, str], *options: str) -> Credentials:
        return make_credentials(ask_auth("-S", URL, *options), {"HOME": str(tmp_path), **environ})

    return make


def test_variables_of_the_api_come_before_those_of_swift(made) -> None:
    found = made(AWS | ST | OS)
    assert (found.version, found.user, found.key, found.region_name) == ("s3", "a", "s", "r")
    assert found.storage_urls == (URL,)
    assert made(AWS | {"AWS_SESSION_TOKEN": "t"}).token == "t"


def test_options_come_before_variables(made) -> None:
    found = made(AWS | OS, "-U", "test:tester", "-K", "testing")
    assert (found.version, found.user, found.key, found.region_name) == ("1.0", "test:tester", "testing", "r")
    assert made(AWS | OS, "--os-username", "other").version == "3"


def test_account_and_user_are_an_access_key(made) -> None:
    found = made({name: ST[name] for name in ("ST_USER", "ST_KEY")})
    assert (found.version, found.user, found.key, found.region_name) == (
        "1.0",
        "test:tester",
        "testing",
        None,
    )


def test_keystone_makes_one_also_with_a_token(made) -> None:
    assert (made(OS).version, made(OS).storage_urls) == ("3", (URL,))
    by_token = {**OS, "OS_AUTH_TOKEN": "tk", "OS_IDENTITY_API_VERSION": "3"}
    assert (made(by_token).version, made(by_token).token) == ("3", "tk")


def test_the_default_profile_comes_last(made, tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = d\naws_secret_access_key = e\n"
        "[other]\naws_access_key_id = o\naws_secret_access_key = p\n"
    )
    assert made({}).user == "d"
    assert made(ST).user == "test:tester"
    assert made(ST | {"AWS_PROFILE": "other"}).user == "o"


def test_certificates_are_trusted_in_the_order_of_botocore(
    made, tmp_path: Path, golden_words: GoldenWords
) -> None:
    option, variable, profile, keystone = (str(tmp_path / f"{name}.pem") for name in "ovpk")
    for each in (option, variable, profile, keystone):
        Path(each).touch()
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(
        f"[default]\naws_access_key_id = d\naws_secret_access_key = e\nca_bundle = {profile}\n"
    )
    bundle, cacert = {"AWS_CA_BUNDLE": variable}, {"OS_CACERT": keystone}
    assert made(bundle | cacert, "--os-cacert", option).ca_file == option
    assert made(bundle | cacert).ca_file == variable
    assert made(cacert).ca_file == profile
    assert made(AWS | cacert).ca_file == keystone  # the profile is not used
    assert made(ST | bundle | cacert).ca_file == variable
    assert made(AWS | {"AWS_CA_BUNDLE": ""}).ca_file is None
    # Where Keystone makes the key, it is asked first.
    assert made(OS | bundle | cacert).ca_file == keystone
    assert made(OS | bundle).ca_file == variable
    missing = str(tmp_path / "missing.pem")
    with pytest.raises(UsageError, match=f"AWS_CA_BUNDLE {missing}: No such file"):
        made(AWS | {"AWS_CA_BUNDLE": missing})
    Path(profile).unlink()
    with golden_words.raises(UsageError):
        made({})


def test_certificates_for_s3_are_none_of_swift(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    environ = {"HOME": str(tmp_path), "AWS_CA_BUNDLE": str(tmp_path / "ca.pem"), **ST}
    assert make_credentials(ask_auth(), environ).ca_file is None


@pytest.mark.parametrize(
    ("environ", "options"),
    [
        ({}, ()),
        (AWS, ("-T", "tk")),
        ({"AWS_ACCESS_KEY_ID": "a"}, ()),
        (AWS | {"AWS_SECRET_ACCESS_KEY": "a\nb"}, ()),
        (AWS, ("-S", "s3+ftp://h")),
    ],
)
def test_what_will_not_do_is_named(
    made, environ: dict[str, str], options: tuple[str, ...], golden_words: GoldenWords
) -> None:
    with golden_words.raises(UsageError):
        made(environ, *options)


def test_an_access_key_for_a_url_without_the_prefix_is_told(
    tmp_path: Path, golden_words: GoldenWords
) -> None:
    for words in ([], ["-S", "http://h:8080"]):
        with golden_words.raises(UsageError):
            make_credentials(ask_auth(*words), {"HOME": str(tmp_path), **AWS})
    assert make_credentials(ask_auth(), {"HOME": str(tmp_path), **AWS, **ST}).version == "1.0"
