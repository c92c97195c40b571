"""The sub-command keygen: names of keys, made and revoked."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssbench.cli import master
from ssbench.fleet import keys as fleet_key


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    fleet_key.write_fleet_key(path)
    return path


@pytest.mark.parametrize("name", ["", "local", "a/b", "-x", "a b", "x" * 65, "\u00e9"])
def test_names_of_keys(name: str, key_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        master.main(["keygen", str(key_file), f"--worker={name}"])
    assert "expected 1 to 64 letters" in capsys.readouterr().err


def test_keygen_makes_and_revokes(key_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert master.main(["keygen", str(key_file), "--worker", "one"]) == 0
    assert (key_file.parent / "one.key").exists()
    assert master.main(["keygen", str(key_file), "--revoke", "one"]) == 0
    assert master.main(["keygen", str(key_file), "--revoke", "one"]) == 2
    assert "has no key of one" in capsys.readouterr().err
