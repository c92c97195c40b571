"""Processes that read logs, when the process that started them has ended on the spot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from runs import alive, wait_until

PROGRAM = """
import multiprocessing, os, time
from threading import Thread
from ssbench.cluster import join

def work():
    Thread(target=join._end_with_parent, daemon=True).start()
    time.sleep(60)

if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=work)
    child.start()
    print(child.pid, flush=True)
    os._exit(130)
"""


def test_they_end_with_it(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    parent = subprocess.run([sys.executable, program], stdout=subprocess.PIPE, timeout=60, check=False)
    assert parent.returncode == 130
    wait_until(lambda: not alive(int(parent.stdout)), "the end of the reading process")
