"""Lines of Swift's background daemons: which one was at work, on which device, and for how long.

They are read for messages of Swift 2.1 to 2.38. A message without a duration still shows that logs of its
daemon are given.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ssbench.logs.envelopes import find_json_messages
from ssbench.logs.prefixes import host_of_prefix, split_fetched

_DAEMON_KINDS = rb"updater|replicator|auditor|reconstructor|expirer|sharder|reaper"
#: Finds what may be a line of a daemon quickly, since it begins with a fixed character.
DAEMON_MARK = re.compile(rb"-(?:%b)(?![\w-])" % _DAEMON_KINDS)
_DAEMON_PROGRAM = re.compile(rb"(?<![\w./-])((?:object|container|account)-(?:%b))(?![\w./-])" % _DAEMON_KINDS)
#: What a line says about how long it took; the unit is that of the second group.
_DAEMON_SECONDS = re.compile(
    rb"(?: completed| progress| in|, Total time|Pass so far|Pass completed in| complete(?: \(once\))?\.) ?"
    rb"(?:on \S+ in |on \S+: |: |\()?(\d{1,9}(?:\.\d{1,9})?) ?(s\b|seconds|minutes|,)"
)
_DAEMON_RSYNC = re.compile(rb"Successful rsync of \S+ to \S+ \((\d{1,9}\.\d+)\)")
_DAEMON_BEGINS = re.compile(
    rb": (?:Begin |Beginning |Starting object re\w+ pass|Object update sweep starting|"
    rb"Container sharder cycle starting|Pass beginning)"
)
#: Device and what follows it in a path of a node's disk, or a sweep's device.
_DISK_PATH = re.compile(rb"/([^/\s]+)/(?:objects|containers|accounts|async_pending|tmp)[-/\w]*")
_DAEMON_SWEEP = re.compile(rb"sweep (?:starting on|completed on|progress on|of) (?:/\S*/)?([^/\s:]+)")
#: The auditor has two processes, of which one looks at objects without content.
_AUDITOR_MODE = re.compile(rb"\((ALL|ZBF)(?: - (?:parallel, )?([^)\s]+))?\)")


class DaemonRecord(NamedTuple):
    """A line of a daemon."""

    host: bytes  # that of its prefix
    program: bytes
    device: bytes  # empty: it names none, or all
    seconds: float | None  # those that it had been at work for; None: the line does not say
    begins: bool  # a pass begins


def parse_daemon_line(line: bytes) -> DaemonRecord | None:
    """Return what a line of a daemon says; None for lines of others."""
    program = _DAEMON_PROGRAM.search(line)
    if program is None:
        return None
    host, name, device = _host_of_daemon(line, program.start()), program[1], _device_of_daemon(line)
    if mode := _AUDITOR_MODE.search(line):
        name += b" " + mode[1]
        device = device or (mode[2] if mode[2] and b"," not in mode[2] else b"")
    if rsync := _DAEMON_RSYNC.search(line):
        return DaemonRecord(host, name, device, float(rsync[1]), begins=False)
    if lasted := _DAEMON_SECONDS.search(line):
        seconds = float(lasted[1]) * (60 if lasted[2] == b"minutes" else 1)
        return DaemonRecord(host, name, device, seconds, begins=False)
    return DaemonRecord(host, name, device, None, begins=_DAEMON_BEGINS.search(line) is not None)


def _host_of_daemon(line: bytes, tag: int) -> bytes:
    """Return the host that the words before the daemon's name tell, or the record of JSON that it is in."""
    for record in find_json_messages(line, _DAEMON_PROGRAM):
        return record.host
    node, before = split_fetched(line[:tag])
    return host_of_prefix([*before.split(), b"tag:"]) or node


def _device_of_daemon(line: bytes) -> bytes:
    found = _DAEMON_SWEEP.search(line) or _DISK_PATH.search(line)
    return found[1] if found and found[1] != b"all" else b""
