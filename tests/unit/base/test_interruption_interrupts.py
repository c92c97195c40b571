"""What signals do, sent to this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest
from golden_words import GoldenWords

from ssbench.base import interruption
from ssbench.base.errors import ExitCode
from ssbench.base.interruption import Interrupts


def send(number: signal.Signals = signal.SIGINT) -> None:
    # Python runs the handler before the call returns.
    signal.raise_signal(number)


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
    ],
)
def test_the_first_one_stops_and_says_what_happens_now(
    number: signal.Signals, caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    with Interrupts() as interrupts, interrupts.armed(lambda: "ending"):
        send(number)
    golden_words(caplog.messages)


def test_the_second_one_raises_at_the_next_check_and_nowhere_else() -> None:
    with Interrupts() as interrupts, interrupts.armed(lambda: "ending"):
        send()
        interruption.raise_if_interrupted()
        send()
        with pytest.raises(KeyboardInterrupt):
            interruption.raise_if_interrupted()


def test_the_second_one_raises_at_the_end_where_nothing_checks() -> None:
    done = []

    def work() -> None:
        with Interrupts() as interrupts, interrupts.armed(lambda: "ending"):
            send()
            send()
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done


def test_the_second_one_is_left_to_those_who_raise_it_themselves() -> None:
    asked: list[None] = []

    def stop_at_once() -> bool:
        asked.append(None)
        return True

    with Interrupts() as interrupts, interrupts.armed(lambda: "ending", stop_at_once):
        send()
        assert not asked
        send()
    assert len(asked) == 1


def test_between_runs_that_of_the_host_program_is_called_and_does_not_count_later() -> None:
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            send()
        with interrupts.armed(lambda: "ending"):
            send()
            interruption.raise_if_interrupted()


def test_before_a_run_the_first_one_raises_at_the_next_check() -> None:
    with Interrupts() as interrupts, interrupts.busy():
        send(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt), interrupts.armed(lambda: "ending"):
            pass


def test_handlers_are_as_before_in_the_end() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    with Interrupts():
        assert all(signal.getsignal(number) not in before for number in numbers)
    assert [signal.getsignal(number) for number in numbers] == before


def test_a_run_that_ignores_the_end_of_its_terminal_goes_on_doing_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts():
            send(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_another_thread_leaves_signals_alone() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def enter() -> None:
        with Interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join(60)
    assert seen == [before]


def test_the_third_one_ends_the_process() -> None:
    program = (
        "import signal\n"
        "from ssbench.base.interruption import Interrupts\n"
        "with Interrupts() as interrupts, interrupts.armed(lambda: 'ending', lambda: True):\n"
        "    for _ in range(3): signal.raise_signal(signal.SIGINT)\n"
        "print('not here')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ,
    )
    assert (done.returncode, done.stdout) == (ExitCode.INTERRUPTED, "")
