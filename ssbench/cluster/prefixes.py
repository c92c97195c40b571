"""Who wrote a log line, by the words before its message.

The words are those of syslog (traditional, RFC 3339, RFC 5424), of journald, of a container runtime (CRI),
of ``docker compose``, ``kubectl --prefix`` or ``logcli``, or of a log handler.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_LEVEL_WORDS = frozenset([b"DEBUG", b"INFO", b"NOTICE", b"WARNING", b"WARN", b"ERROR", b"CRITICAL"])
_TIME_WORD = re.compile(rb"\d[-\d]*[T:]\d|\d{2}:\d{2}|\d{4}-\d{2}-\d{2}")
_ISO_BEGIN = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:")
#: A label or a trailing word that names a host.
HOST_LABEL = re.compile(rb'\b(?:host|hostname|_HOSTNAME|nodename|node_name|node)="?([\w.:-]+)')
_CRI_WORDS = ((b"stdout", b"stderr"), (b"F", b"P"))


def host_of_prefix(prefix: Sequence[bytes]) -> bytes:
    """Return the host that the words before a message name; empty where they name none."""
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
    label = HOST_LABEL.search(b" ".join(prefix)) if b"{" in first + b"".join(prefix[1:2]) else None  # logcli
    return label[1] if label else b""


def _host_by_tag(prefix: Sequence[bytes]) -> bytes:
    """Return the word before the first that ends in a colon, which is the tag of syslog.

    A program that itself writes a tag (a container under systemd) has two.
    """
    for place, word in enumerate(prefix):
        if word[-1:] == b":" and not _TIME_WORD.match(word):
            before = prefix[place - 1] if place else b""
            if before in _LEVEL_WORDS:
                before = prefix[0]
            return before if _may_be_host(before) else b""
    # RFC 5424 without a priority: TIME HOST APPLICATION PROCESS MESSAGE-ID DATA
    after = next((place for place, word in enumerate(prefix) if _ISO_BEGIN.match(word)), len(prefix))
    return prefix[after + 1] if len(prefix) - after >= 6 and _may_be_host(prefix[after + 1]) else b""


@lru_cache(maxsize=4096)
def _may_be_host(word: bytes) -> bool:
    return bool(word) and word not in _LEVEL_WORDS and not _TIME_WORD.match(word)
