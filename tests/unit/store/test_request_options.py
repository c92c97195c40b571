"""Options of requests, as the master and the clients of workers use them."""

from __future__ import annotations

import pytest

from ssbench.store.http.client import ClientSettings
from ssbench.store.request_options import RequestOptions


@pytest.mark.parametrize("kind", [RequestOptions, ClientSettings])
def test_the_master_waits_for_as_long_as_workers_do(kind: type[RequestOptions]) -> None:
    assert kind(connect_timeout=3.0, network_timeout=7.5).timeouts == (3.0, 7.5)
