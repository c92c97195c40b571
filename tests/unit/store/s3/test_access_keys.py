"""Where access keys are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssbench.base.errors import UsageError
from ssbench.store.s3.access_keys import FoundKey, find_profile_key, find_variables_key


def test_variables_have_a_key_and_a_region() -> None:
    environ = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_DEFAULT_REGION": "r"}
    assert find_variables_key(environ) == FoundKey("a", "s", "", "r")
    assert find_variables_key(environ | {"AWS_SESSION_TOKEN": "t", "AWS_REGION": "q"}) == FoundKey(
        "a", "s", "t", "q"
    )
    assert find_variables_key({"AWS_REGION": "r"}) is None


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ("AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY_ID without AWS_SECRET_ACCESS_KEY"),
        ("AWS_SECRET_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY without AWS_ACCESS_KEY_ID"),
    ],
)
def test_half_a_key_is_refused(there: str, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        find_variables_key({there: "x"})


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = d\naws_secret_access_key = s%t\n\n"
        "[other]\naws_access_key_id = o\naws_secret_access_key = p\naws_session_token = q\n[half]\nx = y\n"
    )
    (tmp_path / ".aws" / "config").write_text(
        "[default]\nregion = r\n[profile other]\nregion = far\n[profile role]\nrole_arn = x\n"
    )
    return {"HOME": str(tmp_path)}


def test_the_shared_files_have_profiles(environ: dict[str, str]) -> None:
    assert find_profile_key(environ) == FoundKey("d", "s%t", "", "r")
    assert find_profile_key(environ | {"AWS_PROFILE": "other"}) == FoundKey("o", "p", "q", "far")
    with (Path(environ["HOME"]) / ".aws" / "config").open("a") as file:
        file.write("[profile trusting]\nca_bundle = /ca.pem\naws_access_key_id=t\naws_secret_access_key=u\n")
    trusting = FoundKey("t", "u", ca_bundle="/ca.pem")
    assert find_profile_key(environ | {"AWS_PROFILE": "trusting"}) == trusting
    assert find_profile_key(environ | {"AWS_PROFILE": "other", "AWS_REGION": "x"}) == FoundKey(
        "o", "p", "q", "x"
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [("none", "no profile 'none'"), ("half", "no aws_access"), ("role", "no aws_access")],
)
def test_a_profile_that_is_named_has_to_have_a_key(environ: dict[str, str], name: str, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        find_profile_key(environ | {"AWS_PROFILE": name})


def test_without_files_there_is_no_profile(tmp_path: Path) -> None:
    assert find_profile_key({"HOME": str(tmp_path)}) is None


@pytest.mark.parametrize("content", [b"aws_secret_access_key = hidden\n", b"\xff\xfe"])
def test_a_file_that_is_none_is_named_but_not_quoted(
    environ: dict[str, str], tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "keys"
    file.write_bytes(content)
    with pytest.raises(UsageError, match="keys: expected sections") as raised:
        find_profile_key(environ | {"AWS_SHARED_CREDENTIALS_FILE": str(file)})
    assert "hidden" not in str(raised.value)


def test_a_file_that_cannot_be_read_is_named(environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="directory"):
        find_profile_key(environ | {"AWS_CONFIG_FILE": str(tmp_path)})
