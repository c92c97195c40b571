"""The HTTP server of ``--metrics-port``."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, make_wsgi_app

from ssbench.serving import BoundedServer, listen


class MetricsServer(BoundedServer):
    """Serves a registry at an address and a port (0: any that is free); raises OSError."""

    def __init__(self, registry: CollectorRegistry, address: str, port: int) -> None:
        super().__init__(make_wsgi_app(registry), listen(address, port), "metrics")
