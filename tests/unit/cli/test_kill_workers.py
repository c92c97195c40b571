"""``kill-workers``, with the real sockets."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
import zmq
from asked_commands import ask
from golden_words import GoldenWords
from processes import free_ports

from ssbench.base.errors import ExitCode, UsageError
from ssbench.cli import kill_workers
from ssbench.fleet import shutdown


def arguments(*words: object) -> kill_workers.KillWorkersAsked:
    return ask("kill-workers", *map(str, words))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for workers for a moment only: there are none."""
    monkeypatch.setattr(shutdown, "_SILENCE_SECONDS", 0.05)


@pytest.mark.usefixtures("at_once")
def test_without_any_worker_it_says_so(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level(logging.INFO)
    work, results = free_ports(2)
    found = tmp_path / "found.json"
    given = arguments(
        "--zmq-bind-ip=127.0.0.1", "--zmq-work-port", work, "--zmq-results-port", results, "--json", found
    )
    assert kill_workers.run(given) == ExitCode.OK
    assert caplog.messages[0] == "No worker connected"
    assert isinstance(json.loads(found.read_text()), dict)


@pytest.mark.usefixtures("at_once")
def test_a_port_that_is_taken_is_named() -> None:
    work, results = free_ports(2)
    with zmq.Context() as context, context.socket(zmq.PULL) as taken:
        taken.bind(f"tcp://127.0.0.1:{results}")
        given = arguments("--zmq-bind-ip=127.0.0.1", "--zmq-work-port", work, "--zmq-results-port", results)
        with pytest.raises(UsageError, match=str(results)):
            kill_workers.run(given)


def test_what_did_not_exit_is_counted_and_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    caplog.set_level(logging.INFO)

    def run(self: shutdown.Shutdown) -> None:
        self.remaining.update({number: f"host-{number}" for number in range(shutdown.MAX_NAMED_WORKERS + 3)})
        self.told.update(self.remaining.keys() - {1})

    monkeypatch.setattr(shutdown.Shutdown, "run", run)
    work, results = free_ports(2)
    given = arguments("--zmq-bind-ip=127.0.0.1", "--zmq-work-port", work, "--zmq-results-port", results)
    assert kill_workers.run(given) != ExitCode.OK
    assert caplog.messages[0] == "host-0 did not exit"
    golden_words(caplog.messages[1])
    assert len(caplog.messages) == shutdown.MAX_NAMED_WORKERS + 1
    assert caplog.messages[-1] == "3 more workers did not exit"
