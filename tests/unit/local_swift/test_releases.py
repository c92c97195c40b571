"""Which Swift is served, and how one comes into the cache: by programs that do as pip and uv do."""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from golden_words import GoldenWords

from ssbench.base import interruption
from ssbench.base.errors import UsageError
from ssbench.local_swift import releases
from ssbench.local_swift.releases import SwiftInstallation, find_cache_folder, find_installation
from ssbench.run.trial_swift import is_release

#: A Python of which the question is answered as by one that has Swift.
PYTHON = """#!/bin/sh
echo '["2.37.4", "3.11.7", "'$(dirname "$0")'", ["slo", "ratelimit"]]'
"""

#: What makes an environment: ``uv venv ... FOLDER``, then ``uv pip install --python PYTHON ...``.
UV = """#!/bin/sh
echo "$@" >>"$CALLS"
case "$1" in
venv)
    for folder; do :; done
    mkdir -p "$folder/bin" && printf %s "$PYTHON_TEXT" >"$folder/bin/python"
    chmod +x "$folder/bin/python";;
pip)
    {install};;
esac
"""

Uv = Callable[[str], None]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ssbench" / "swift"


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Uv:
    """Put a program called ``uv`` before all others, which installs by a command of the shell."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("PYTHON_TEXT", PYTHON)

    def make(install: str) -> None:
        (folder / "uv").write_text(UV.replace("{install}", install))
        (folder / "uv").chmod(0o755)

    make("true")
    return make


def calls(tmp_path: Path) -> list[list[str]]:
    path = tmp_path / "calls"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def test_what_is_a_release() -> None:
    assert all(map(is_release, ["2.37.4", "2.30", "2.36.0rc1"]))
    assert not any(map(is_release, ["", "2", "gold", "./2.37.4", "2.37.4/", "v2.37", "2.37.4 x", "2.37.4\n"]))


def test_the_installed_one_is_run_by_this_python() -> None:
    found = find_installation("")
    assert found.is_own
    assert {"slo", "encryption"} < found.filters
    assert (found.package / "proxy" / "server.py").is_file()


def test_a_release_is_installed_once(
    uv: Uv, cache: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    found = find_installation("2.37.4")
    folder = cache / f"2.37.4-py3.{sys.version_info[1]}"
    assert found == SwiftInstallation(
        str(folder / "bin" / "python"),
        "2.37.4",
        "3.11.7",
        folder / "bin",
        frozenset({"slo", "ratelimit"}),
    )
    assert not found.is_own
    first, second = calls(tmp_path)
    assert first == ["venv", "--quiet", "--python", sys.executable, str(folder)]
    assert second == ["pip", "install", "--quiet", "--python", found.python, "swift==2.37.4"]
    assert f"Installing Swift 2.37.4 into {folder}, once (some 70 MB" in caplog.text
    assert find_installation("2.37.4") == found
    assert len(calls(tmp_path)) == 2


def test_old_releases_get_what_they_do_not_ask_for(uv: Uv, tmp_path: Path) -> None:
    find_installation("2.34.2")
    find_installation("2.36")
    assert calls(tmp_path)[1][-4:] == ["swift==2.34.2", "setuptools<80", "six", "netifaces"]
    assert calls(tmp_path)[3][-2:] == ["swift==2.36", "setuptools<80"]


def test_a_release_that_this_python_cannot_run_is_not_installed(
    uv: Uv, tmp_path: Path, golden_words: GoldenWords
) -> None:
    with golden_words.raises(UsageError):
        find_installation("2.28.1")
    assert calls(tmp_path) == []


def test_half_an_installation_is_made_anew(uv: Uv, cache: Path, tmp_path: Path) -> None:
    folder = Path(find_installation("2.37.4").python).parents[1]
    for damage in (
        (folder / "ssbench.json").unlink,
        lambda: (folder / "ssbench.json").write_text("[1"),
        (folder / "bin" / "python").unlink,
    ):
        damage()
        (folder / "left").touch()
        assert find_installation("2.37.4").version == "2.37.4"
        assert not (folder / "left").exists()
    assert len(calls(tmp_path)) == 8


#: What pip 24 and uv 0.8 write, cut to the lines that tell.
NO_SUCH = (
    "ERROR: Could not find a version that satisfies the requirement swift==9.9.9"
    " (from versions: 1.0.2, 2.38.2, 2.38.3)\nERROR: No matching distribution found for swift==9.9.9"
)
NO_NETWORK = (
    "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError('<pip._vendor."
    "urllib3.connection.HTTPSConnection object at 0x7f>: Failed to establish a new connection: [Errno -3]"
    " Temporary failure in name resolution')': /simple/swift/\n"
    "ERROR: Could not find a version that satisfies the requirement swift==9.9.9 (from versions: none)\n"
    "ERROR: No matching distribution found for swift==9.9.9"
)
OTHER_PYTHON = (
    "ERROR: Ignored the following versions that require a different python version: 9.9.9"
    " Requires-Python >=3.99; 9.9.8 Requires-Python >=3.98\n"
    "ERROR: Could not find a version that satisfies the requirement swift==9.9.9 (from versions: 2.38.3)\n"
    "ERROR: No matching distribution found for swift==9.9.9"
)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (NO_SUCH, "PyPI has no such release, but 3 others up to 2.38.3"),
        ("x No solution\n Because there is no version of swift==9.9.9 and", "PyPI has no such release"),
        (NO_NETWORK, "PyPI cannot be reached"),
        ("error: Failed to fetch: `https://x`\n  Caused by: dns error", "PyPI cannot be reached"),
        (OTHER_PYTHON, f"it needs another Python than 3.{sys.version_info[1]}"),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "FOLDER: No space left on device",
        ),
        ("ERROR: a\nerror: command 'gcc' failed\n\nhint: b", "error: command 'gcc' failed"),
        ("", "no reason was given"),
    ],
)  # fmt: skip
def test_what_fails_is_one_line_and_leaves_nothing(
    said: str, message: str, uv: Uv, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "said").write_text(said)
    uv(f"cd {cache}/9.9.9* && touch half; cat {tmp_path / 'said'}; exit 1")
    with pytest.raises(UsageError) as error:
        find_installation("9.9.9")
    folder = cache / f"9.9.9-py3.{sys.version_info[1]}"
    expected = message.replace("FOLDER", str(folder))
    assert str(error.value) == f"Swift 9.9.9 cannot be installed: {expected}"
    assert [each.name for each in cache.iterdir()] == ["lock"]


def test_what_installs_but_has_no_swift(
    uv: Uv, cache: Path, monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    monkeypatch.setenv("PYTHON_TEXT", "#!/bin/sh\necho 'No module named eventlet' >&2\nexit 1\n")
    with golden_words.raises(UsageError):
        find_installation("2.37.4")
    assert [each.name for each in cache.iterdir()] == ["lock"]


def test_ctrl_c_ends_what_installs_and_leaves_nothing(uv: Uv, cache: Path, tmp_path: Path) -> None:
    uv(f"echo $$ >{tmp_path / 'pid'}; sleep 600")

    def interrupt() -> None:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    waiting = threading.Thread(target=interrupt, daemon=True)
    with interruption.hold_signals():
        waiting.start()
        with pytest.raises(KeyboardInterrupt):
            find_installation("2.37.4")
    waiting.join(10)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert [each.name for each in cache.iterdir()] == ["lock"]


def test_two_that_install_at_once_do_so_once(uv: Uv, cache: Path, tmp_path: Path) -> None:
    uv(f"while [ ! -e {tmp_path / 'go'} ]; do sleep 0.01; done")
    program = (
        "from ssbench.local_swift.releases import find_installation\n"
        "import logging; logging.basicConfig(level='INFO')\n"
        "print(find_installation('2.37.4').version)"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    try:
        # One of them installs, and the other one says that it waits.
        said: dict[int, list[str]] = {number: [] for number in range(2)}
        readers = [
            threading.Thread(
                target=lambda n=n, p=p: said[n].extend(p.stderr),
                daemon=True,
            )
            for n, p in enumerate(started)
        ]
        for each in readers:
            each.start()
        deadline = time.monotonic() + 60
        while "waiting for it" not in str(said):
            assert time.monotonic() < deadline, said
            time.sleep(0.01)
        (tmp_path / "go").touch()
        for process in started:
            assert process.wait(60) == 0
            assert process.stdout is not None
            assert process.stdout.read() == "2.37.4\n"
        for each in readers:
            each.join(10)
    finally:
        for process in started:
            process.kill()
            process.wait(10)
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
    assert len(calls(tmp_path)) == 2


def test_what_a_killed_program_installs_is_not_removed(uv: Uv, cache: Path, tmp_path: Path) -> None:
    """What installs goes on with the lock."""
    uv(f"touch {tmp_path / 'begun'}; while [ ! -e {tmp_path / 'go'} ]; do sleep 0.01; done")
    program = "from ssbench.local_swift.releases import find_installation\nfind_installation('2.37.4')"
    killed = subprocess.Popen([sys.executable, "-c", program])
    deadline = time.monotonic() + 60
    while not (tmp_path / "begun").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    killed.kill()
    killed.wait(10)
    try:
        descriptor = os.open(cache / "lock", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(descriptor)
        (tmp_path / "go").touch()
    assert find_installation("2.37.4").version == "2.37.4"
    assert len(calls(tmp_path)) == 4


def test_paths_of_a_python_and_of_an_environment(tmp_path: Path, golden_words: GoldenWords) -> None:
    python = tmp_path / "bin" / "python"
    with golden_words.raises(UsageError):
        find_installation(str(tmp_path))
    python.parent.mkdir()
    python.write_text(PYTHON)
    with pytest.raises(UsageError, match="cannot be run: Permission denied"):
        find_installation(str(python))
    python.chmod(0o755)
    for path in (python, tmp_path):
        found = find_installation(str(path))
        assert (found.python, found.version, found.is_own) == (str(python), "2.37.4", False)
    python.write_text("#!/bin/sh\nexit 3\n")
    with golden_words.raises(UsageError):
        find_installation(str(tmp_path))
    with golden_words.raises(UsageError):
        find_installation(str(tmp_path / "none"))


def test_a_checkout_is_installed_so_that_its_changes_count(uv: Uv, cache: Path, tmp_path: Path) -> None:
    (checkout := tmp_path / "checkout" / "swift").mkdir(parents=True)
    (checkout / "__init__.py").touch()
    (checkout.parent / "setup.cfg").touch()
    found = find_installation(str(checkout.parent))
    assert Path(found.python).is_relative_to(cache)
    assert calls(tmp_path)[1][5:] == ["--editable", str(checkout.parent), "setuptools<80"]


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"HOME": "/home/a"}, "/home/a/.cache/ssbench/swift"),
        ({"HOME": "/home/a", "XDG_CACHE_HOME": "/c"}, "/c/ssbench/swift"),
        ({"HOME": "/home/a", "XDG_CACHE_HOME": "relative"}, "/home/a/.cache/ssbench/swift"),
    ],
)
def test_where_the_cache_is(environ: dict[str, str], folder: str) -> None:
    assert find_cache_folder(environ) == Path(folder)


def test_where_no_cache_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    with golden_words.raises(UsageError):
        find_cache_folder({})
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(UsageError, match=r"/file/ssbench.*: cannot install Swift 2\.37\.4: Not a directory"):
        find_installation("2.37.4")


def test_without_uv_it_is_pip_that_installs(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, golden_words: GoldenWords
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    seen: list[list[str]] = []

    def note(command: list[str], _lock: int) -> str:
        seen.append(command)
        return "ERROR: stop" if "install" in command else None

    monkeypatch.setattr(releases, "_run", note)
    with pytest.raises(UsageError, match="ERROR: stop"):
        find_installation("2.37.4")
    folder = str(cache / f"2.37.4-py3.{sys.version_info[1]}")
    assert seen[0] == [sys.executable, "-m", "venv", "--without-pip", folder]
    assert seen[1][:5] == [sys.executable, "-m", "pip", "--python", f"{folder}/bin/python"]
    assert seen[1][-1] == "swift==2.37.4"
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with golden_words.raises(UsageError):
        find_installation("2.37.4")


def test_what_is_kept_of_an_installation_is_read_again(uv: Uv, cache: Path) -> None:
    found = find_installation("2.37.4")
    kept = json.loads((Path(found.python).parents[1] / "ssbench.json").read_text())
    assert kept == [found.version, found.python_version, str(found.package), sorted(found.filters)]
