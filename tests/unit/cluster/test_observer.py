"""The master's end of watching: whatever becomes of the process that watches, there is an observation."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from collections.abc import Callable

import msgspec
import pytest
from golden_words import GoldenWords

from ssbench.base import own_processes
from ssbench.base.errors import UsageError
from ssbench.cluster import observer as module
from ssbench.cluster.observer import Observer, parse_recon_url
from ssbench.results.cluster_observation import Observation, Proxy

Program = Callable[[str], None]

SEEN = Observation(began=1.7e9, interval=5.0, proxies=(Proxy("http://h", version="2.35.0"),))


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    """Let the process that watches be another program, of this text."""

    def be(text: str) -> None:
        command = [sys.executable, "-S", "-c", f"import sys, time, os\nline = sys.stdin.readline()\n{text}"]
        monkeypatch.setattr(own_processes, "make_python_command", lambda _module: command)

    return be


def says(*observations: Observation) -> str:
    lines = [msgspec.json.encode(each).decode() for each in observations]
    return "sys.stdin.readline()\n".join(f"print({line!r}, flush=True)\n" for line in lines)


def test_what_it_says_before_and_at_the_end(program: Program) -> None:
    program(says(Observation(began=5.0), SEEN))
    with Observer() as made:
        made.begin(["http://h/v1/a"])
        assert made.end() == SEEN
        assert made.end() == SEEN, "there is no more to see"


def test_a_process_that_ends_before_the_run_says_why(
    program: Program, caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    program("sys.exit('first line\\nno memory')")
    with Observer() as made:
        made.begin()
        assert made.end() == Observation(failure="its process has ended: no memory")
    golden_words(caplog.messages)


def test_a_process_that_ends_during_the_run_leaves_what_was_seen_before(program: Program) -> None:
    program(says(SEEN))
    with Observer() as made:
        made.begin()
        assert made._process is not None
        made._process.wait(60)
        assert made.end() == msgspec.structs.replace(SEEN, failure="its process has ended")


def test_what_is_no_observation(program: Program, golden_words: GoldenWords) -> None:
    program("print('{\"began\": []}', flush=True); sys.stdin.read()")
    with Observer() as made:
        made.begin()
        golden_words(made.end().failure)


def test_a_process_that_says_nothing_is_not_waited_for(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SLACK_SECONDS", -3.9)
    program("sys.stdin.read()")
    with Observer() as made:
        made.begin()
        assert made._process is None
        failure = made.end().failure
    assert failure is not None
    assert failure.startswith("no result within 0.1")


def test_no_process_can_be_made(monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords) -> None:
    monkeypatch.setattr(own_processes, "make_python_command", lambda _module: ["/no/such/program"])
    with Observer() as made:
        made.begin()
        golden_words(made.end().failure)


def test_an_end_that_was_not_asked_for_leaves_no_process(program: Program) -> None:
    program(says(SEEN) + "sys.stdin.read()")
    with Observer() as made:
        made.begin()
        assert made._process is not None
        process = made._process
    assert process.returncode == -signal.SIGKILL


def test_it_is_told_what_to_watch_and_no_secret(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses of proxies are those of the storage URLs, each once."""
    monkeypatch.setenv("ST_KEY", "secret")
    program(
        "import json\n"
        "task = json.loads(line)\n"
        "os.fstat(task['statsd'])\n"  # it has the socket
        "urls = [*task['recon'], *task['proxies'], os.environ.get('ST_KEY', 'none')]\n"
        "print(json.dumps({'proxies': [{'url': each} for each in urls]}), flush=True)\n"
        "sys.stdin.read()"
    )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    with Observer(["http://h:6200/recon", "http://h:6200", "http://i:6200/"], statsd_port=port) as made:
        made.begin(["http://p:8080/v1/a", "http://p:8080/v1/b", "http://q/swift/v1/a"])
        made.stop()
        found = [each.url for each in made.end().proxies]
    assert found == ["http://h:6200", "http://i:6200", "http://p:8080", "http://q/swift", "none"]


def test_a_port_that_is_taken() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("", 0))
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"--observe statsd:{port}: Address already in use"):
            Observer(statsd_port=port).__enter__()


def test_a_warning_is_said_once(program: Program, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    program(says(*[Observation(proxies=(Proxy("http://h", failure="no answer"),))] * 2))
    with Observer() as made:
        made.begin(["http://h/v1/a"])
        assert made.end().proxies
    assert len(caplog.messages) == len({*caplog.messages}) == 1


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://10.0.0.4:6200", "http://10.0.0.4:6200"),
        ("http://10.0.0.4:6200/recon/", "http://10.0.0.4:6200"),
        ("http://[::1]:6200/", "http://[::1]:6200"),
    ],
)
def test_recon_urls(text: str, url: str):
    assert parse_recon_url(text) == url


@pytest.mark.parametrize(
    "text", ["http://10.0.0.4", "10.0.0.4:6200", "http://h:6200/v1", "http://u:p@h:6200"]
)
def test_wrong_recon_urls(text: str):
    with pytest.raises(UsageError, match="--observe"):
        parse_recon_url(text)
