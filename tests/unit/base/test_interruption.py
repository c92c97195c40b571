"""Signals that are noted, and where they are heeded."""

from __future__ import annotations

import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ssbench.base import interruption
from ssbench.base.interruption import call_concurrently

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def test_a_signal_raises_at_the_next_check_alone() -> None:
    with interruption.hold_signals():
        signal.raise_signal(signal.SIGINT)
        assert interruption.has_noted_signal()
        with pytest.raises(KeyboardInterrupt):
            interruption.raise_if_interrupted()
        interruption.raise_if_interrupted()


def test_what_nothing_checked_is_delivered_at_the_end() -> None:
    done = []

    def work() -> None:
        with interruption.hold_signals():
            signal.raise_signal(signal.SIGINT)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done
    assert not interruption.has_noted_signal()


def test_the_outermost_context_delivers() -> None:
    done = []

    def work() -> None:
        with interruption.hold_signals():
            with interruption.hold_signals():
                signal.raise_signal(signal.SIGINT)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done


def test_what_is_forgotten_is_not_delivered_and_handlers_are_as_before() -> None:
    before = [signal.getsignal(number) for number in NUMBERS]
    with interruption.hold_signals(signal.SIGTERM):
        signal.raise_signal(signal.SIGTERM)
        interruption.forget_signals()
    assert [signal.getsignal(number) for number in NUMBERS] == before


def test_signals_without_a_handler_are_left_alone_and_so_are_those_of_other_threads() -> None:
    seen = []

    def look() -> None:
        with interruption.hold_signals(*NUMBERS):
            seen.append(signal.getsignal(signal.SIGTERM))
            interruption.raise_if_interrupted()

    with interruption.hold_signals():
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        signal.raise_signal(signal.SIGINT)
        thread = threading.Thread(target=look)
        thread.start()
        thread.join(60)
        interruption.forget_signals()
    assert seen == [signal.SIG_DFL]


def interrupting(_number: int) -> None:
    """Send SIGINT to the main thread, and do not answer."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    threading.Event().wait(60)


def test_what_waits_heeds_them() -> None:
    with interruption.hold_signals():
        with pytest.raises(KeyboardInterrupt):
            call_concurrently(interrupting, [1], 1, "test")
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interruption.sleep_interruptibly(60)
    with pytest.raises(queue.Empty):
        interruption.take_from_queue(queue.SimpleQueue[int](), 0.0)


def ended(tmp_path: Path, program: str) -> tuple[int, str, str]:
    """Carry out a program; return its exit code and what it printed."""
    path = tmp_path / "program.py"
    path.write_text(f"import os, signal, sys, threading\nfrom ssbench.base import interruption\n{program}")
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


INT = "os.kill(os.getpid(), signal.SIGINT)\n"


def test_a_program_ends_on_the_spot_without_leaving_anything(tmp_path: Path) -> None:
    left = tmp_path / "left"
    program = (
        "interruption.handle_interrupts('name')\n"
        "try:\n"
        f"    with interruption.undo_on_interrupt(lambda: os.unlink({str(left)!r})):\n"
        f"        open({str(left)!r}, 'w').close()\n"
        f"        {INT}"
        "finally:\n"
        "    print('not here', flush=True)\n"
    )
    assert ended(tmp_path, program) == (130, "", "name: interrupted\n")
    assert not left.exists()


def test_a_program_that_does_not_heed_a_signal_ends_on_the_spot(tmp_path: Path) -> None:
    program = (
        "interruption.handle_interrupts('name')\n"
        "interruption.FIRST_GRACE_SECONDS = 0.01\n"
        "lock = threading.Lock()\n"
        "lock.acquire()\n"
        "with interruption.hold_signals():\n"
        f"    {INT}"
        "    lock.acquire()\n"
    )
    assert ended(tmp_path, program) == (130, "", "name: interrupted\n")


def test_a_program_that_is_to_ignore_ctrl_c_does(tmp_path: Path) -> None:
    program = "signal.signal(signal.SIGINT, signal.SIG_IGN)\ninterruption.handle_interrupts('name')\n" + INT
    assert ended(tmp_path, program) == (0, "", "")
