"""Runs ssbench-worker inside a network namespace: ``python -m netns_worker NAMESPACE ARGUMENT...``."""

import os
import sys

os.execvp(
    "ip", ["ip", "netns", "exec", sys.argv[1], sys.executable, "-m", "ssbench.cli.worker", *sys.argv[2:]]
)
