"""Which Swift is served: the one that is installed here, a release of PyPI, an environment or a checkout.

A release is installed once, into an environment of its own in the user's cache, by the uv or pip of this
Python. A file is written there last, so that what was interrupted is made anew.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ssbench.base import interruption
from ssbench.base.errors import UsageError
from ssbench.base.text_values import format_duration
from ssbench.base.version import check_swift_installed
from ssbench.run.trial_swift import is_release

_log = logging.getLogger(__name__)

#: What releases need besides what they say: the newest release that does, and its requirements.
_FURTHER_REQUIREMENTS: Sequence[tuple[tuple[int, ...], tuple[str, ...]]] = (
    ((2, 36), ("setuptools<80",)),  # pkg_resources
    ((2, 34), ("six", "netifaces")),
)

#: The first release whose modules a Python from 3.10 on can import.
_FIRST_OF_PYTHON_3_10 = (2, 29)

#: Seconds that an installation and a question to another Python may take.
_MOST_INSTALL_SECONDS = 900.0
_MOST_PROBE_SECONDS = 60.0
_TICK_SECONDS = 0.1

#: In the environment of a release, once it is whole.
_COMPLETE_NAME = "ssbench.json"
_LOCK_NAME = "lock"

#: Variables by which pip would install elsewhere.
_PIP_PLACES = ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER")

_FILTER_GROUP = "paste.filter_factory"

#: Says what a Python has. It may be an old one.
_PROBE = f"""
import importlib.metadata as metadata, importlib.util as util, json, platform
swift = metadata.distribution("swift")
metadata.version("eventlet")
names = [each.name for each in swift.entry_points if each.group == "{_FILTER_GROUP}"]
package = util.find_spec("swift").submodule_search_locations[0]
print(json.dumps([swift.version, platform.python_version(), package, sorted(set(names))]))
"""


@dataclass(frozen=True, slots=True)
class SwiftInstallation:
    """A Swift that can be served."""

    python: str  # the program that runs it
    version: str  # of Swift
    python_version: str
    package: Path  # the folder of its modules
    filters: frozenset[str]  # names of its filters

    @property
    def is_own(self) -> bool:
        """Whether this very Python runs it."""
        return self.python == sys.executable


def find_installation(release: str) -> SwiftInstallation:
    """Return a Swift: a version of PyPI, the path of a Python or a checkout, or the installed one ("").

    A version and a checkout are installed into the cache where they are not there yet.
    Raises UsageError, and KeyboardInterrupt after what was begun is removed.
    """
    if not release:
        return _find_own()
    if is_release(release):
        if _read_number(release) < _FIRST_OF_PYTHON_3_10:
            raise UsageError(
                f"Swift {release} does not run on Python 3.10 and later: name a Python 3.9 that has it"
            )
        wanted = f"swift=={release}"
        return _find_cached(release, [wanted, *_list_further_requirements(release)], f"Swift {release}")
    path = Path(release).expanduser().absolute()
    if (path / "swift" / "__init__.py").is_file() and (path / "setup.cfg").is_file():
        key = f"checkout-{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
        requirements = ["--editable", str(path), "setuptools<80"]
        return _find_cached(key, requirements, f"Swift of {path}")
    python = path / "bin" / "python" if path.is_dir() else path
    if not python.exists():
        raise UsageError(
            f"local Swift {release!r}: expected a version as 2.37.4, a Python that has Swift, or a checkout"
        )
    return _probe(str(python), release)


def _find_own() -> SwiftInstallation:
    check_swift_installed("a local Swift", "; --local-swift=VERSION installs one apart")
    own = importlib.metadata.distribution("swift")
    found = importlib.util.find_spec("swift")
    places = (found.submodule_search_locations if found else None) or [""]
    names = frozenset(each.name for each in own.entry_points.select(group=_FILTER_GROUP))
    python_version = ".".join(map(str, sys.version_info[:3]))
    return SwiftInstallation(sys.executable, own.version, python_version, Path(next(iter(places))), names)


def _probe(python: str, name: str) -> SwiftInstallation:
    """Return the Swift that a Python has; raises UsageError."""
    try:
        made = subprocess.run(  # noqa: S603 - the user names it
            [python, "-c", _PROBE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_MOST_PROBE_SECONDS,
            check=False,
            cwd="/",
            env=_make_environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or f"no answer in {_MOST_PROBE_SECONDS:g} s"
        raise UsageError(f"local Swift {name}: cannot be run: {reason}") from None
    with suppress(ValueError, TypeError):
        version, python_version, package, names = json.loads(made.stdout)
        return SwiftInstallation(
            python, str(version), str(python_version), Path(package), frozenset(map(str, names))
        )
    said = made.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {made.returncode}"]
    raise UsageError(f"local Swift {name}: expected a Python that has swift and eventlet: {said[-1]}")


# -- The cache -------------------------------------------------------------------------------------


def find_cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder in which releases are; raises UsageError where the user has none."""
    cache = Path(environ.get("XDG_CACHE_HOME", ""))
    if not cache.is_absolute():
        home = Path(environ.get("HOME", ""))
        if not home.is_absolute():
            raise UsageError("local Swift: no folder to install it into: set XDG_CACHE_HOME or HOME")
        cache = home / ".cache"
    return cache / "ssbench" / "swift"


def _find_cached(key: str, requirements: Sequence[str], name: str) -> SwiftInstallation:
    """Return what is in the cache, after it is installed where it is not; raises UsageError."""
    cache = find_cache_folder(os.environ)
    folder = cache / f"{key}-py{sys.version_info[0]}.{sys.version_info[1]}"
    if found := _read_complete(folder):
        return found
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _lock(cache / _LOCK_NAME, name) as lock:
            if found := _read_complete(folder):  # another run has installed it meanwhile
                return found
            return _install(folder, requirements, name, lock)
    except OSError as error:
        raise UsageError(f"{error.filename or cache}: cannot install {name}: {error.strerror}") from None


def _read_complete(folder: Path) -> SwiftInstallation | None:
    """Return what is installed in a folder; None where it is not whole, or its Python is gone."""
    python = folder / "bin" / "python"
    try:
        version, python_version, package, names = json.loads((folder / _COMPLETE_NAME).read_text())
    except (OSError, ValueError, TypeError):
        return None
    if not os.access(python, os.X_OK) or not Path(package).is_dir():
        return None
    return SwiftInstallation(str(python), version, python_version, Path(package), frozenset(names))


@contextmanager
def _lock(path: Path, name: str) -> Iterator[int]:
    """Hold the lock of the cache, and yield its descriptor; raises KeyboardInterrupt while waiting."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        said = False
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not said:
                    _log.info("%s: another program is installing a Swift; waiting for it", name)
                said = True
                interruption.sleep_interruptibly(_TICK_SECONDS)
        yield descriptor
    finally:
        os.close(descriptor)


def _install(folder: Path, requirements: Sequence[str], name: str, lock: int) -> SwiftInstallation:
    """Install into a folder that is made anew; raises UsageError, OSError and KeyboardInterrupt."""
    shutil.rmtree(folder, ignore_errors=True)  # what another one did not finish
    _log.info("Installing %s into %s, once (some 70 MB)", name, folder)
    began = time.monotonic()
    python = str(folder / "bin" / "python")
    done = False
    try:
        for command in _make_commands(folder, python, requirements):
            output = _run(command, lock)
            if output is not None:
                raise UsageError(_explain_failure(output, requirements[0], name, folder))
        found = _probe(python, name)
        new = folder / f"{_COMPLETE_NAME}.new"
        new.write_text(
            json.dumps([found.version, found.python_version, str(found.package), sorted(found.filters)])
        )
        new.replace(folder / _COMPLETE_NAME)
        done = True
    finally:
        if not done:
            shutil.rmtree(folder, ignore_errors=True)
    size = sum(each.lstat().st_size for each in folder.rglob("*"))
    _log.info("%s: %.0f MB after %s", name, size / 1e6, format_duration(time.monotonic() - began))
    return found


def _make_commands(folder: Path, python: str, requirements: Sequence[str]) -> list[list[str]]:
    """Return the commands that make an environment with some packages; raises UsageError."""
    if uv := shutil.which("uv"):
        return [
            [uv, "venv", "--quiet", "--python", sys.executable, str(folder)],
            [uv, "pip", "install", "--quiet", "--python", python, *requirements],
        ]
    if importlib.util.find_spec("pip") is None:
        raise UsageError(
            "local Swift: a release is installed by uv or by the pip of this Python: neither is here"
        )
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "--no-input"]
    return [
        [sys.executable, "-m", "venv", "--without-pip", str(folder)],
        [*pip, "install", "--quiet", "--retries", "2", "--timeout", "15", *requirements],
    ]


def _run(command: Sequence[str], lock: int) -> str | None:
    """Run a command to its end; return what it said where it failed. Raises KeyboardInterrupt.

    It holds the lock too: where this program is killed, what it has begun is not taken for left behind.
    """
    process = subprocess.Popen(  # noqa: S603 - its own program and arguments
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
        env=_make_environment(),
        start_new_session=True,
        pass_fds=[lock],
    )
    deadline = time.monotonic() + _MOST_INSTALL_SECONDS
    ended = False
    try:
        while True:
            try:
                output, _ = process.communicate(timeout=_TICK_SECONDS)
            except subprocess.TimeoutExpired:
                interruption.raise_if_interrupted()
                if time.monotonic() > deadline:
                    return f"error: not ready after {format_duration(_MOST_INSTALL_SECONDS)}"
                continue
            ended = True
            return output.decode(errors="replace") if process.returncode else None
    finally:
        if not ended:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def _make_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _PIP_PLACES}


def _read_number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", release)[:2])


def _list_further_requirements(release: str) -> list[str]:
    """Return what a release needs besides what it says."""
    number = _read_number(release)
    return [each for newest, found in _FURTHER_REQUIREMENTS if number <= newest for each in found]


#: What pip and uv say where nothing answers.
_NO_NETWORK_PATTERN = re.compile(
    r"from versions: none\)|NewConnectionError|NameResolutionError|name resolution|Network is unreachable"
    r"|dns error|error sending request|[Ff]ailed to fetch|ConnectTimeout|Connection refused"
)


def _explain_failure(output: str, wanted: str, name: str, folder: Path) -> str:
    """Return why an installation failed, in one line."""
    start = f"{name} cannot be installed"
    if "No space left on device" in output:
        return f"{start}: {folder}: No space left on device"
    if f"require a different python version: {wanted.partition('==')[2]} " in output.replace("; ", ": "):
        return f"{start}: it needs another Python than {sys.version_info[0]}.{sys.version_info[1]}"
    found = re.search(r"swift==\S+ \(from versions: ([^)]*\d)\)", output)
    if found and "for swift==" in output:
        versions = found[1].split(", ")
        return f"{start}: PyPI has no such release, but {len(versions)} others up to {versions[-1]}"
    if re.search(r"no version of swift==", output):
        return f"{start}: PyPI has no such release"
    if _NO_NETWORK_PATTERN.search(output):
        return f"{start}: PyPI cannot be reached"
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["no reason was given"]
    errors = [line for line in lines if re.match(r"(ERROR|error)\b", line)] or lines
    return f"{start}: {errors[-1][:300]}"
