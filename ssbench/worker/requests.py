"""The run that a worker serves: what each of its jobs asks of Swift."""

from __future__ import annotations

import logging
import random
import time

from msgspec import structs

from ssbench.errors import SsbenchError, WireError
from ssbench.fleet import wire
from ssbench.fleet.wire import Job, Result, RunParameters
from ssbench.names import container_name, object_name
from ssbench.operations import OPERATIONS
from ssbench.swift.causes import NOT_FOUND
from ssbench.swift.objects import Client, ClientSettings, Outcome

_log = logging.getLogger(__name__)

#: Job kinds that are one request.
_METHODS = {operation.code: operation.method for operation in OPERATIONS}

#: What a server says is cut to so many characters; the wire takes no more than 4096.
_LONGEST_TEXT = 500


class Run:
    """A run's parameters, its client of Swift, and what is derived from them once.

    At most ``concurrency`` requests go on at once.
    """

    def __init__(self, parameters: RunParameters, concurrency: int) -> None:
        #: Replaced by later ones of the same run: a new token, workers that are refused.
        self.parameters = parameters
        self._client = Client(
            ClientSettings(
                connect_timeout=parameters.connect_timeout,
                network_timeout=parameters.network_timeout,
                request_timeout=parameters.request_timeout,
                block_size=parameters.block_size,
                max_connections=concurrency,
                retries=parameters.retries,
                retry_404=parameters.retry_404,
                insecure=parameters.insecure,
                ca_certificates=parameters.ca_certificates,
                trans_id_extra=parameters.trans_id_extra,
            )
        )
        self._containers: dict[int, str] = {}

    def close(self) -> None:
        """Close all connections; requests under way fail at once."""
        self._client.close()

    def perform(self, job: Job, prior: tuple[int, float] | None) -> tuple[Outcome, int]:
        """Do a job, of which ``prior`` (retries, seconds) were spent before; raises nothing.

        Returns how it ended, and which of the storage URLs it used.
        """
        urls = self.parameters.storage_urls
        place = 0 if len(urls) == 1 else random.randrange(len(urls) or 1)
        try:
            return self._request(job, urls[place], prior or (0, 0.0)), place
        except Exception as error:  # noqa: BLE001 - whatever goes wrong, the job ends as data
            if not isinstance(error, SsbenchError):
                _log.exception("A job raised an exception")
            detail = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace").decode()
            return Outcome(None, None, time.monotonic(), 0, 0, None, "worker error", detail), place

    def _request(self, job: Job, url: str, prior: tuple[int, float]) -> Outcome:
        _, kind, size_class, container_number, number, size = job
        parameters, request, token = self.parameters, self._client.request, self.parameters.token
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
                size if method == "PUT" else 0,
                delete_after=parameters.delete_after if method == "PUT" else None,
                prior_retries=retries,
                prior_seconds=seconds,
            )
        if kind == wire.UPLOAD_IF_MISSING:
            found = None
            outcome = request(url, "HEAD", container, name, token)
            if outcome.cause is None:
                found = outcome.size
                smallest, largest = parameters.size_ranges[size_class]
                if smallest <= found <= largest:
                    return structs.replace(outcome, found=found)
            elif outcome.cause != NOT_FOUND:
                return outcome
            outcome = request(
                url, "PUT", container, name, token, size, prior_retries=retries, prior_seconds=seconds
            )
            return structs.replace(outcome, found=found)
        if kind == wire.REMOVE:
            return request(url, "DELETE", container, name, token, missing_ok=True)
        raise WireError(f"no job is of kind {kind}")

    def _name_container(self, number: int) -> str:
        name = container_name(self.parameters.container_base, number, self.parameters.policy)
        self._containers[number] = name
        return name


def as_result(job_id: int, outcome: Outcome, storage_url: int) -> Result:
    """A job's outcome as it goes to the master, with the number of the storage URL that it used."""
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
        storage_url,
        outcome.found,
        outcome.status,
        outcome.spent,
        outcome.resent,
    )
