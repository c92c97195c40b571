"""The client for objects, for tests whose greenlet does other things between two requests."""

from __future__ import annotations

from typing import Any

import gevent

from ssbench.store.contract import RequestOutcome
from ssbench.store.http.client import ClientSettings, HttpClient
from ssbench.store.http.connection import HttpConnection
from ssbench.store.stores import open_dialect


class FreshClient(HttpClient):
    """A client whose time-outs begin with the request.

    The event loop's clock stands still while it does not turn. A worker's turns all the time; that of a test
    does not while the test starts servers and makes certificates, which takes seconds on a loaded machine. A
    time-out that began then would be over at once.
    """

    def __init__(self, settings: ClientSettings) -> None:
        super().__init__(settings, open_dialect)

    def rest(self, seconds: float) -> None:
        """Let its connections be at rest for so long already."""
        rest(self, seconds)

    def request(self, *arguments: Any, **named: Any) -> RequestOutcome:
        gevent.sleep(0)
        return super().request(*arguments, **named)


def rest(client: HttpClient, seconds: float) -> None:
    """Let the connections of a client be at rest for so long already."""
    for connection in client._shared.connections:
        assert isinstance(connection, HttpConnection)
        connection.received_at -= seconds
