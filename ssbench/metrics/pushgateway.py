"""Metrics pushed to a Prometheus Pushgateway at the end of a run, where no server can scrape this host."""

from __future__ import annotations

import socket
import urllib.error

from prometheus_client import push_to_gateway

from ssbench.metrics.counting import Counting
from ssbench.metrics.courier import Courier, DeliveryError
from ssbench.metrics.prometheus import registry

#: The job of the metrics.
_JOB = "ssbench"

#: Seconds that the gateway has for each step of an answer.
_SECONDS = 10.0


def courier(counting: Counting, url: str) -> Courier:
    """Return what pushes all metrics when a run has ended.

    They replace those of the run before with the same host and label: a Pushgateway forgets nothing.
    """
    key = {"instance": socket.gethostname()} | ({"label": counting.label} if counting.label else {})
    metrics = registry(counting)

    def push() -> None:
        try:
            push_to_gateway(url, _JOB, metrics, key, timeout=_SECONDS)
        except urllib.error.HTTPError as error:
            said = error.read(200).decode("utf-8", "replace").strip()
            raise DeliveryError(f"HTTP {error.code} {said or error.reason}") from None
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise DeliveryError(getattr(reason, "strerror", None) or str(reason)) from None

    made = Courier("--metrics-push", url, push)
    counting.on_ended.append(made.send)
    return made
