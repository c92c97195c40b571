"""Reads live pages as a browser does: for tests of the server of pages and of its connections."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

TOKEN = "the-token"


def ask(port: int, path: str, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()


def events(answer: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    for line in answer:
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


@contextmanager
def follow(port: int) -> Iterator[Iterator[dict[str, Any]]]:
    """Yield what a browser that reads is told."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("GET", f"/{TOKEN}/events")
        answer = connection.getresponse()
        assert answer.status == 200
        yield events(answer)
