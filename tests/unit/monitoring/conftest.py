"""What tests of several modules need: sums of a run, and servers that show them."""

from __future__ import annotations

from collections.abc import Iterator
from socketserver import BaseServer

import pytest
from live_pages import TOKEN
from metric_results import SCENARIO, SOURCE

from ssbench.document.elements import Document, Note, Section
from ssbench.document.renderers.html import make_page_parts
from ssbench.monitoring.page_server import PageApplication
from ssbench.monitoring.prometheus import PrometheusExporter
from ssbench.monitoring.run_metrics import CountingSink
from ssbench.monitoring.serving import BoundedServer, open_listening_socket


@pytest.fixture
def counting() -> CountingSink:
    return CountingSink(SCENARIO, SOURCE, "before upgrade")


@pytest.fixture
def exporter(counting: CountingSink, monkeypatch: pytest.MonkeyPatch) -> Iterator[PrometheusExporter]:
    # How often it looks whether it is to end.
    monkeypatch.setattr(BaseServer.serve_forever, "__defaults__", (0.01,))
    with PrometheusExporter(counting, "127.0.0.1", 0) as made:
        yield made


@pytest.fixture
def site() -> Iterator[tuple[PageApplication, int]]:
    made = PageApplication(TOKEN)
    made.publish(
        "t", make_page_parts(Document("t", [Section("One", [Note("a")]), Section("Two", [Note("b")])]))
    )
    server = BoundedServer(made, open_listening_socket("127.0.0.1", 0), "test")
    yield made, server.server_port
    server.end()
