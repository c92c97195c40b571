"""What ``ssbench-master`` prints when it is called without a sub-command."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

_LINES = """\
ssbench {version}, a benchmark for OpenStack Swift
Try it:     ssbench-master run-scenario -f very_small --local-swift --workers 2
Your Swift: ssbench-master run-scenario -f small --workers 2   (see help auth)
Look again: ssbench-master report-scenario last
Clean up:   ssbench-master cleanup-containers
Help:       ssbench-master COMMAND --help, ssbench-master help auth
"""


def text(version: str, commands: Iterable[str]) -> str:
    """Return some eight lines of 80 columns at most."""
    wrapped = textwrap.wrap(
        "Commands:   " + ", ".join(commands), 80, subsequent_indent=" " * 12, break_on_hyphens=False
    )
    return _LINES.format(version=version) + "\n".join(wrapped) + "\n"
