"""The words before a message, which say who wrote it.

They are those of syslog (traditional, RFC 3339, RFC 5424), of journald, of a container runtime (CRI), of
``docker compose``, ``kubectl --prefix`` or ``logcli``, of a log handler, or of the program that fetched it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ssbench.logs.envelopes import ANY_HOST, host_of_record

_LEVEL_WORD = re.compile(
    rb"(?i)\[?(?:\w+\.)?(?:debug|info|notice|warn|warning|err|error|crit|critical|alert|emerg)\]?"
)
_TIME_WORD = re.compile(rb"\d[-\d]*[T:]\d|\d{2}:\d{2}|\d{4}-\d{2}-\d{2}")
_ISO_BEGIN = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:")
_DATE_WORD = re.compile(
    rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mon|Tue|Wed|Thu|Fri|Sat|Sun),?|\d{1,4}"
)
_NAME_WORD = re.compile(rb"[A-Za-z0-9](?:[\w.-]*\w)?")
#: A label or a trailing word that names a host.
HOST_LABEL = re.compile(rb'\b(?:host|hostname|_HOSTNAME|nodename|node_name|node)="?([\w.:-]+)')
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_CRI_WORDS = ((b"stdout", b"stderr"), (b"F", b"P"))
#: What pdsh, clush and grep put before the lines of others: ``NODE: ``, ``PATH:`` or ``PATH:NUMBER:``.
_FETCHED_FROM = re.compile(
    rb"([\w.-]*\w): (?=\S)"
    rb"|([^\s:\"\[{]*/[^\s:\"\[{]+|[\w@%+-][\w@%+.-]*\.(?:log|txt|\d+|gz|zst|xz|bz2|json)):(?:\d+:)?(?! )"
)
#: Names of programs before a message, which are not nodes.
_PROGRAM = re.compile(
    rb"(?i)(?:swift[-.])?(?:swift|proxy|account|container|object)"
    rb"(?:-(?:server|access|updater|replicator|auditor|reconstructor|expirer|reaper|sharder)\S*)?$|.*server$"
)
#: What :func:`find_log_files` leaves out of the name of a file.
_LOG_ENDING = re.compile(rb"\.(?:log|txt|json|gz|zst|xz|bz2|\d)$|\.log\b")
_FILE_ENDING = re.compile(rb"(?:\.(?:gz|zst|xz|bz2)|\.log|\.txt|\.json|\.\d+|-\d{8})+$")


class FetchedLine(NamedTuple):
    """A line without the prefix of the program that fetched it; ``node`` is empty if the prefix named"
    " none."""

    node: bytes
    line: bytes


def split_fetched(line: bytes) -> FetchedLine:
    """Take off the name of the node, or of the file, that the line was fetched from."""
    node = b""
    for _ in range(2):  # pdsh ... grep -H
        found = _FETCHED_FROM.match(line)
        if found is None or (found[1] and _PROGRAM.match(found[1])):
            break
        node = node or found[1] or find_file_node(found[2])
        line = line[found.end() :]
    return FetchedLine(node, line)


def find_file_node(path: bytes) -> bytes:
    """Return the name of the node of a log file: its path without endings."""
    return _FILE_ENDING.sub(b"", path) if b"/" in path or _LOG_ENDING.search(path) else path


def host_of_prefix(prefix: Sequence[bytes]) -> bytes:
    """Return the host that the words before a message name; empty where they name none.

    Every node may call itself localhost.
    """
    host = _find_host(prefix)
    return b"" if ANY_HOST.match(host) else host


def _find_host(prefix: Sequence[bytes]) -> bytes:
    if len(prefix) >= 3 and prefix[1] in _CRI_WORDS[0] and prefix[2] in _CRI_WORDS[1]:
        prefix = prefix[3:]
    if not prefix:
        return b""
    if prefix[0][:1] == b"<" and len(prefix) >= 4 and _TIME_WORD.search(prefix[1]):  # RFC 5424
        return b"" if prefix[2] == b"-" else prefix[2]
    return _host_by_collector(prefix) or _host_by_tag(prefix)


def _host_by_collector(prefix: Sequence[bytes]) -> bytes:
    first = prefix[0]
    if prefix[1:2] == [b"|"]:  # docker compose
        return first
    if first[:5] == b"[pod/":  # kubectl: [pod/NAME/CONTAINER]
        return first[5:].partition(b"/")[0].rstrip(b"]")
    if b"{" in first + b"".join(prefix[1:2]):  # logcli
        labels = _LABEL.findall(b" ".join(prefix).decode("utf-8", "replace"))
        return host_of_record(dict(labels)).encode()
    # stern: POD CONTAINER
    is_name = len(prefix) <= 2 and all(map(_NAME_WORD.fullmatch, prefix)) and _may_be_host(first)
    return first if is_name and not _PROGRAM.match(first) else b""


def _host_by_tag(prefix: Sequence[bytes]) -> bytes:
    """Return the word before the first that ends in a colon, which is the tag of syslog.

    A program that itself writes a tag (a container under systemd) has two. Between them may be a priority,
    and before that, in lines of log handlers, the time.
    """
    for place, word in enumerate(prefix):
        if word[-1:] == b":" and not _TIME_WORD.match(word):
            before = list(prefix[:place])
            is_leveled = bool(before) and _is_level(before[-1])
            while before and (_is_level(before[-1]) or (is_leveled and _TIME_WORD.match(before[-1]))):
                before.pop()
            return before[-1] if before and _may_be_host(before[-1]) else b""
    # RFC 5424 without a priority: TIME HOST APPLICATION PROCESS MESSAGE-ID DATA
    after = next((place for place, word in enumerate(prefix) if _ISO_BEGIN.match(word)), len(prefix))
    return prefix[after + 1] if len(prefix) - after >= 6 and _may_be_host(prefix[after + 1]) else b""


def _is_level(word: bytes) -> bool:
    return _LEVEL_WORD.fullmatch(word) is not None


@lru_cache(maxsize=4096)
def _may_be_host(word: bytes) -> bool:
    return bool(word) and not (_is_level(word) or _TIME_WORD.match(word) or _DATE_WORD.fullmatch(word))
