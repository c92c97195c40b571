"""What showing progress, and telling monitoring systems of it, costs the master's loop.

    python bench/progress.py [--results N] [--block N]

Blocks of results go to each kind of progress, with a tick each tenth of a second of a simulated clock.
"""

from __future__ import annotations

import argparse
import logging
import os
import pty
import threading
import time

from report import as_block, draw, scenario

from ssbench.cli import output_file
from ssbench.monitoring.run_metrics import CountingSink, RunMonitor
from ssbench.monitoring.statsd_sender import StatsdSender
from ssbench.results.block import Sink
from ssbench.results.run_description import RunSummary
from ssbench.run.progress import LiveScreen, ProgressLine, ResultCharacters, WorkerView

SOURCE = RunMonitor(lambda: (2, 2))


def empty(descriptor: int) -> None:
    while os.read(descriptor, 65536):
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=int, default=1_000_000)
    parser.add_argument("--block", type=int, default=1_000, help="results in a tenth of a second")
    arguments = parser.parse_args()
    controller, terminal = pty.openpty()
    os.dup2(terminal, 2)
    threading.Thread(target=empty, args=(controller,), daemon=True).start()
    output_file.set_up_logging()
    logging.getLogger().setLevel(logging.INFO)
    os.environ["TERM"] = "xterm"
    blocks = [
        as_block(rows[first : first + arguments.block], [])
        for rows, _ in draw(arguments.results, trans_ids=False)
        for first in range(0, len(rows), arguments.block)
    ]
    live = LiveScreen(scenario(), lambda: (2, 2), lambda: [WorkerView(1, "host", True, 0.5, 0.001, 8)] * 20)
    sinks: dict[str, Sink] = {
        "line": ProgressLine(scenario(), lambda: (2, 2)),
        "characters": ResultCharacters(scenario()),
        "live": live,
        "Prometheus": CountingSink(scenario(), SOURCE),
        "statsd": StatsdSender(scenario(), SOURCE, "127.0.0.1", 8125),
    }
    for name, sink in sinks.items():
        spent, longest = 0.0, 0.0
        for tick, block in enumerate(blocks):
            began = time.thread_time()
            sink.add(block)
            sink.tick(1000 + tick / 10)
            took = time.thread_time() - began
            spent, longest = spent + took, max(longest, took)
        sink.end(RunSummary(ended=0.0))
        each = spent / arguments.results * 1e9
        share = spent / (len(blocks) / 10)
        print(f"{name}: {each:.0f} ns a result, {share:.2%} of a core, longest tick {longest * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
