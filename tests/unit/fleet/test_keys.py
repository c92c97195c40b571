"""Key files: made once, for the owner only, and whatever else is found there is one line."""

from __future__ import annotations

import json
import os
import resource
import stat
from pathlib import Path

import pytest
from golden_words import GoldenWords
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ssbench.base.errors import ExitCode, KeyFileError
from ssbench.fleet import keys as fleet_key
from ssbench.fleet.addresses import BindAddress
from ssbench.fleet.sockets import MasterSockets

#: What is said of a file without a key.
NO_KEY_FILE = "is not a key file"


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    fleet_key.write_fleet_key(path)
    return path


def test_what_is_made_can_be_read_by_its_owner_only(key_file: Path) -> None:
    key = fleet_key.read_fleet_key(key_file)
    assert len({key.server_public, key.server_secret, key.client_public, key.client_secret}) == 4
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600


def test_nothing_is_overwritten(key_file: Path) -> None:
    before = key_file.read_bytes()
    with pytest.raises(KeyFileError, match="is there already"):
        fleet_key.write_fleet_key(key_file)
    assert key_file.read_bytes() == before


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="cannot be written: No such file") as caught:
        fleet_key.write_fleet_key(tmp_path / "none" / "key")
    assert caught.value.exit_code == ExitCode.USAGE
    with pytest.raises(KeyFileError, match="cannot be read: No such file"):
        fleet_key.read_fleet_key(tmp_path / "key")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_one_that_others_may_read_is_refused(key_file: Path, mode: int) -> None:
    key_file.chmod(mode)
    with pytest.raises(KeyFileError, match=f"mode {mode:04o}"):
        fleet_key.read_fleet_key(key_file)


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    os.chmod(path, 0o600)  # noqa: PTH101 - beside the bytes


@pytest.mark.parametrize(
    "change",
    [
        {"format": "another"},
        {"server": None},
        {"client": {"public": "x" * 40}},
        {"client": {"public": "x" * 40, "secret": 7}},
        {"client": {"public": "short", "secret": "x" * 40}},
        {"server": {"public": "\u00e9" * 40, "secret": "x" * 40}},
        {"server": {"public": " " * 40, "secret": "x" * 40}},
    ],
)
def test_other_content_is_refused(key_file: Path, change: dict[str, object]) -> None:
    _write(key_file, json.dumps({**json.loads(key_file.read_bytes()), **change}).encode())
    with pytest.raises(KeyFileError, match=NO_KEY_FILE):
        fleet_key.read_fleet_key(key_file)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=300)
    | st.recursive(st.none() | st.integers() | st.text(max_size=20), st.lists, max_leaves=8).map(
        lambda value: json.dumps(value).encode()
    )
)
def test_any_bytes_are_refused(tmp_path: Path, content: bytes) -> None:
    _write(tmp_path / "key", content)
    with pytest.raises(KeyFileError, match=NO_KEY_FILE):
        fleet_key.read_fleet_key(tmp_path / "key")


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", ["pipe", "device", "deep"])
def test_a_file_without_end_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "key"
    if kind == "pipe":
        os.mkfifo(path, 0o600)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        _write(path, b"[" * 4000)
    with pytest.raises(KeyFileError, match=rf"{NO_KEY_FILE} of ssbench|others may read it"):
        fleet_key.read_fleet_key(path)


def test_a_full_disk_leaves_no_key_file(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(KeyFileError, match="key: cannot be written: File too large"):
            fleet_key.write_fleet_key(tmp_path / "key")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())


def test_a_worker_has_a_key_of_its_own_that_can_be_revoked(key_file: Path, golden_words: GoldenWords) -> None:
    fleet = fleet_key.read_fleet_key(key_file)
    assert fleet.allowed() == {fleet.client_public: "shared"}
    one, two = (fleet_key.write_worker_key(key_file, name) for name in ("one", "host-2.b"))
    assert (one.name, stat.S_IMODE(one.stat().st_mode)) == ("one.key", 0o600)
    worker = fleet_key.read_fleet_key(one)
    assert (worker.server_public, worker.server_secret) == (fleet.server_public, b"")
    assert fleet.server_secret not in one.read_bytes()
    names = {fleet.client_public: "local", worker.client_public: "one"}
    assert fleet.allowed() == names | {fleet_key.read_fleet_key(two).client_public: "host-2.b"}
    fleet_key.revoke_worker_key(fleet_key.allowed_list_path(key_file), "host-2.b")
    assert fleet.allowed() == names
    with pytest.raises(KeyFileError, match=r"has no key of host-2\.b"):
        fleet_key.revoke_worker_key(fleet_key.allowed_list_path(key_file), "host-2.b")
    with golden_words.raises(KeyFileError):
        worker.allowed()
    with pytest.raises(KeyFileError, match="is the key of a worker"):
        fleet_key.write_worker_key(one, "three")
    with pytest.raises(KeyFileError, match="is there already"):
        fleet_key.write_worker_key(key_file, "one")
    one.unlink()
    with golden_words.raises(KeyFileError):
        fleet_key.write_worker_key(key_file, "one")
    assert not one.exists()


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("one", ":1: expected a name and a public key"),
        (f"# x\n\none {'x' * 39}\n", ":3: expected"),
        (f"../one {'x' * 40}\n", ":1: expected"),
        ("\u00e9", "is not a list of keys"),
    ],
)
def test_a_wrong_list_of_keys(key_file: Path, text: str, wrong: str) -> None:
    path = fleet_key.allowed_list_path(key_file)
    _write(path, text.encode())
    with pytest.raises(KeyFileError, match=wrong):
        fleet_key.read_fleet_key(key_file).allowed()


def test_a_wrong_list_of_keys_keeps_no_descriptors(key_file: Path) -> None:
    """A master holds thousands for itself; a program that tries again would soon have none."""
    _write(fleet_key.allowed_list_path(key_file), b"one\n")
    key = fleet_key.read_fleet_key(key_file)
    before = len([*Path("/proc/self/fd").iterdir()])
    with pytest.raises(KeyFileError):
        MasterSockets(BindAddress("127.0.0.1", 0, 0), key)
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_a_list_that_others_may_write_is_refused(key_file: Path) -> None:
    fleet_key.write_worker_key(key_file, "one")
    fleet_key.allowed_list_path(key_file).chmod(0o620)
    with pytest.raises(KeyFileError, match="others may write it"):
        fleet_key.read_fleet_key(key_file).allowed()
