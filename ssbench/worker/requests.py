"""The run that a worker serves: what each of its jobs asks of Swift."""

from __future__ import annotations

import logging
import random
import time

from ssbench.errors import SsbenchError, WireError
from ssbench.fleet import wire
from ssbench.fleet.wire import Job, Result, RunParameters
from ssbench.names import container_name, object_name
from ssbench.operations import OPERATIONS
from ssbench.swift.objects import Client, ClientSettings, Outcome

_log = logging.getLogger(__name__)

#: Job kinds that are one request.
_METHODS = {operation.code: operation.method for operation in OPERATIONS}

#: What a server says is cut to so many characters; the wire takes no more than 4096.
_LONGEST_TEXT = 500


class Run:
    """A run's parameters, its client of Swift, and what is derived from them once.

    At most ``concurrency`` requests go on at once; each is tried ``retries`` times more.
    """

    def __init__(self, parameters: RunParameters, concurrency: int, retries: int) -> None:
        #: Replaced by later ones of the same run: a new token, workers that are refused.
        self.parameters = parameters
        self._client = Client(
            ClientSettings(
                connect_timeout=parameters.connect_timeout,
                network_timeout=parameters.network_timeout,
                block_size=parameters.block_size,
                max_connections=concurrency,
                retries=retries,
                insecure=parameters.insecure,
                ca_certificates=parameters.ca_certificates,
            )
        )
        self._containers: dict[int, str] = {}

    def close(self) -> None:
        """Close all connections; requests under way fail."""
        self._client.close()

    def perform(self, job: Job, prior: tuple[int, float] | None) -> Outcome:
        """Do a job, of which ``prior`` (retries, seconds) were spent before; raises nothing."""
        try:
            return self._request(job, prior or (0, 0.0))
        except Exception as error:  # noqa: BLE001 - whatever goes wrong, the job ends as data
            if not isinstance(error, SsbenchError):
                _log.exception("A job raised an exception")
            detail = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace").decode()
            return Outcome(None, None, time.monotonic(), 0, 0, None, "worker error", detail)

    def _request(self, job: Job, prior: tuple[int, float]) -> Outcome:
        _, kind, size_class, container_number, number, size = job
        parameters, request = self.parameters, self._client.request
        urls, token = parameters.storage_urls, parameters.token
        url = urls[0] if len(urls) == 1 else random.choice(urls)
        container = self._containers.get(container_number) or self._name_container(container_number)
        name = object_name(parameters.size_classes[size_class], number)
        retries, seconds = prior
        method = _METHODS.get(kind)
        if method is not None:
            return request(
                url,
                method,
                container,
                name,
                token,
                size,
                delete_after=parameters.delete_after if method == "PUT" else None,
                prior_retries=retries,
                prior_seconds=seconds,
            )
        if kind == wire.UPLOAD_IF_MISSING:
            outcome = request(url, "HEAD", container, name, token)
            if outcome.cause == "HTTP 404":
                outcome = request(
                    url, "PUT", container, name, token, size, prior_retries=retries, prior_seconds=seconds
                )
            return outcome
        if kind == wire.REMOVE:
            return request(url, "DELETE", container, name, token, missing_ok=True)
        raise WireError(f"no job is of kind {kind}")

    def _name_container(self, number: int) -> str:
        name = container_name(self.parameters.container_base, number, self.parameters.policy)
        self._containers[number] = name
        return name


def as_result(job_id: int, outcome: Outcome) -> Result:
    """A job's outcome as it goes to the master."""
    trans_id = outcome.trans_id
    return Result(
        job_id,
        outcome.first_byte,
        outcome.last_byte,
        outcome.completed,
        outcome.size,
        outcome.retries,
        trans_id if trans_id is None else trans_id[:_LONGEST_TEXT],
        outcome.cause,
        outcome.detail[:_LONGEST_TEXT],
        outcome.retried,
        outcome.unauthorized,
    )
