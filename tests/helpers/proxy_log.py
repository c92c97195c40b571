"""The requests of clients, as the access log of Swift's proxy has them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote


class Logged(NamedTuple):
    """A request of a client in the log of the proxy."""

    method: str
    path: str
    status: int
    trans_id: str
    began: float  # seconds since 1970
    received: int  # bytes of the body of the request
    sent: int  # bytes of the body of the answer


def requests_in(log: Path) -> list[Logged]:
    """Return the requests of clients: of each transaction the line without a source, else the last one.

    The line of a PUT in a container with versions has a source, as those have that middleware makes of it.
    """
    found: dict[str, tuple[bool, Logged]] = {}
    for line in log.read_text("utf-8", "replace").splitlines():
        words = line.split(" ")
        begin = next((place for place, word in enumerate(words) if word.startswith("HTTP/1")), 0)
        rest = words[begin:]
        # protocol status referer agent token received sent etag trans_id headers time source log_info begin
        if begin < 2 or len(rest) < 14:
            continue
        method, path = words[begin - 2 : begin]
        trans_id, of_client = unquote(rest[8]), rest[11] == "-"
        received, sent = (int(each) if each.isdecimal() else 0 for each in rest[5:7])
        if of_client or not found.get(trans_id, (False,))[0]:
            logged = Logged(method, unquote(path), int(rest[1]), trans_id, float(rest[13]), received, sent)
            found[trans_id] = of_client, logged
    return [logged for _, logged in found.values()]
