"""Fixtures shared by all tests.

``swift`` is one real Swift for the whole session: tests must not stop its servers or empty its
accounts; one that does starts its own :class:`~ssbench.local_swift.LocalSwift`. ``container_base``
is a name no other test uses, and ``account`` a python-swiftclient connection to look from outside.
"""

from __future__ import annotations

from privileges import KEEP_VARIABLE, drop_privileges, is_privileged

#: What the run of the tests is, for its head. First of all: some of what follows starts threads.
PRIVILEGES = drop_privileges()

import compileall
import fcntl
import functools
import gc
import itertools
import logging
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import swiftclient
from fault_server import Certificates, FaultServer
from fork_server import start_process
from golden_words import GoldenWords
from hypothesis import HealthCheck, settings
from processes import Fleet

from ssbench.local_swift import LocalSwift, cluster
from ssbench.run import terminal
from ssbench.store.http import bodies

# A shell that starts something in the background has it ignore SIGINT, nohup has it ignore SIGHUP, and so all
# its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Speed is nothing that tests judge. The same examples each time, so that a run of the tests says something of
# what was changed; pytest --hypothesis-profile=explore looks for others.
_any_speed: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ssbench", max_examples=20, derandomize=True, **_any_speed)
settings.register_profile("explore", max_examples=1000, **_any_speed)
settings.load_profile("ssbench")

_numbers = itertools.count(1)


# pytest keeps the compiled tests, which takes each process that collects them seconds to make.
sys.dont_write_bytecode = False

_PACKAGE = Path(__file__).parents[1] / "ssbench"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--renew-words", action="store_true", help="write what golden_words compares, without -n"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Compile the package once, before its tests start several hundred processes of it.

    Each would do so again for itself where PYTHONDONTWRITEBYTECODE is set, and that is half of its start.
    """
    if config.getoption("--renew-words") and config.getoption("numprocesses", None):
        raise pytest.UsageError("--renew-words with -n would lose words: each process writes all of a folder")
    if not hasattr(config, "workerinput"):  # processes of pytest-xdist leave it to the one that started them
        compileall.compile_dir(_PACKAGE, quiet=2)


def pytest_report_header() -> str:
    return f"privileges: {PRIVILEGES}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs privileges where there are none."""
    marker = item.get_closest_marker("privileged")
    if marker is not None and not is_privileged():
        pytest.skip(f"{marker.args[0]}: as root, with {KEEP_VARIABLE}=keep (tox -e privileged)")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Have the garbage collector leave alone what is collected: no part of it is garbage before the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        # Tests make much that lives as long as they do, and little garbage in cycles.
        gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Let one process of pytest-xdist compile a module of tests, and the others use what it wrote."""
    if not isinstance(collector, pytest.Module) or not hasattr(collector.config, "workerinput"):
        return (yield)
    with collector.path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is in tests/long, let the longest test begin first, and mix what waits with what computes.

    The processes of pytest-xdist begin with equal parts of the list. Whole programs mostly wait, and tests of
    modules compute: each process has as many of both at any time, file by file, or the processors would be
    idle at the end.
    """
    files: dict[bool, Counter[Path]] = {True: Counter(), False: Counter()}
    for item in items:
        if item.path.parent.name == "long":
            item.add_marker(pytest.mark.long)
        files[item.path.parent.name == "system"][item.path] += 1
    places = {}
    for counts in files.values():
        before = itertools.accumulate(counts.values(), initial=0)
        places |= {path: first / counts.total() for path, first in zip(counts, before, strict=False)}
    if config.getoption("--renew-words"):
        items[:] = [each for each in items if "golden_words" in getattr(each, "fixturenames", ())]
    items.sort(key=lambda item: (item.path.stem != "test_soak", places[item.path], item.path))


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Remove what a sub-command that the test called has set up: it would print the logs of later tests."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(autouse=True)
def terminal_as_before() -> Iterator[None]:
    """Forget lines that the test has drawn: what a later one prints would begin with what erases them."""
    state = ("_drawn_lines", "_in_row", "_passing_shown")
    before = {name: getattr(terminal, name) for name in state}
    yield
    for name, value in before.items():
        setattr(terminal, name, value)


@pytest.fixture(scope="session", autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep programs away from what the user has in the home folder: results of runs, and settings."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name)))
        yield


@pytest.fixture(scope="session", autouse=True)
def random_bytes_once() -> Iterator[None]:
    """Make the random bytes of bodies once for each seed: a client makes 4 MB, which takes it 10 ms."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_make_random_block", "_with_zeros"):
            patch.setattr(bodies, name, functools.lru_cache(4)(getattr(bodies, name)))
        yield


@pytest.fixture(scope="session", autouse=True)
def servers_as_forks() -> Iterator[None]:
    """Have the servers of the tests' own Swifts begin as forks; half of their start is what they import."""
    with pytest.MonkeyPatch.context() as patch:
        if "COVERAGE_PROCESS_CONFIG" not in os.environ:  # it measures from the start of Python on
            forking = SimpleNamespace(**vars(subprocess) | {"Popen": start_process})
            patch.setattr(cluster, "subprocess", forking)
        yield


@pytest.fixture(scope="session")
def swift(servers_as_forks: None) -> Iterator[LocalSwift]:
    with LocalSwift() as running:
        yield running


@pytest.fixture
def golden_words(request: pytest.FixtureRequest) -> Iterator[GoldenWords]:
    """Compare what the test says with what it said when its words were written."""
    folders = {str(request.getfixturevalue("tmp_path")): "TMP"} if "tmp_path" in request.fixturenames else {}
    renewed = request.config.getoption("--renew-words")
    words = GoldenWords(request.path, request.node.name, folders, renewed=renewed)
    yield words
    words.finish()


@pytest.fixture
def container_base() -> str:
    return f"base{os.getpid()}x{next(_numbers)}"


@pytest.fixture
def account(swift: LocalSwift) -> Iterator[swiftclient.Connection]:
    connection = swiftclient.Connection(swift.auth_url, swift.user, swift.key, retries=1)
    yield connection
    connection.close()


@pytest.fixture
def swift_environment(swift: LocalSwift, monkeypatch: pytest.MonkeyPatch) -> LocalSwift:
    """Set ST_AUTH, ST_USER and ST_KEY, and no other variable of authentication, for child processes too."""
    for name in list(os.environ):
        if name.startswith(("OS_", "ST_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("ST_AUTH", swift.auth_url)
    monkeypatch.setenv("ST_USER", swift.user)
    monkeypatch.setenv("ST_KEY", swift.key)
    return swift


@pytest.fixture
def fault_server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture(scope="session")
def certificates() -> Certificates:
    return Certificates()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Ports for a master and its workers, which are ended with the test."""
    with Fleet(tmp_path) as made:
        yield made


@pytest.fixture
def fleet_v6(tmp_path: Path) -> Iterator[Fleet]:
    """The same over IPv6; skips where there is none."""
    try:
        made = Fleet(tmp_path, "::1")
    except (OSError, RuntimeError) as error:
        pytest.skip(f"no IPv6 here: {error}")
    with made:
        yield made
