"""The client for objects, for tests whose greenlet does other things between two requests."""

from __future__ import annotations

from typing import Any

import gevent

from ssbench.store.contract import RequestOutcome
from ssbench.store.http.client import ClientSettings, HttpClient
from ssbench.store.stores import open_dialect


class FreshClient(HttpClient):
    """A client whose time-outs begin with the request.

    The event loop's clock stands still while it does not turn. A worker's turns all the time; that of a test
    does not while the test starts servers and makes certificates, which takes seconds on a loaded machine. A
    time-out that began then would be over at once.
    """

    def __init__(self, settings: ClientSettings) -> None:
        super().__init__(settings, open_dialect)

    def request(self, *arguments: Any, **named: Any) -> RequestOutcome:
        gevent.sleep(0)
        return super().request(*arguments, **named)
