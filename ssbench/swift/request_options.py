"""How requests for objects are made: the options of ``run-scenario`` that a worker's client has to know.

A new one is a field here, and whatever in :mod:`ssbench.swift` heeds it: the command line, the messages to
workers, the client's settings and the stat file follow from the field.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ssbench.option import Option, Unit

Time = Annotated[float, Meta(gt=0, le=1e9)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class RequestOptions(Struct, array_like=True, frozen=True, kw_only=True):
    """The options, in the same order on the wire. Times are in seconds, and end up to a twentieth late.

    ``connect_timeout`` is for all addresses of a name together, and once more for the TLS handshake;
    ``network_timeout`` for each wait for progress. ``request_timeout`` (None: three times
    ``network_timeout``) is for a whole attempt once it is connected, but does not run while a body moves
    faster than 10 kB/s. ``block_size`` is how many bytes are sent or received at once over TLS, and where
    the system has no way to do it without copying. A request that failed for a transient reason is tried
    again ``retries`` times; ``retry_404`` is how often, apart from those, a GET or DELETE is tried again that
    finds no object.
    """

    block_size: Annotated[
        int,
        Meta(ge=1, le=2**30),
        Option(help="bytes that a worker sends or receives at once", unit=Unit.BYTES, letter="-b"),
    ] = 65536
    connect_timeout: Annotated[Time, Option(help="seconds to wait for a connection", unit=Unit.SECONDS)] = (
        10.0
    )
    network_timeout: Annotated[
        Time, Option(help="seconds to wait for progress of a request", unit=Unit.SECONDS)
    ] = 20.0
    request_timeout: Annotated[
        Time | None,
        Option(
            help="seconds for a whole attempt of a request; the clock stops while its body moves at 10 kB/s"
            " or faster",
            unit=Unit.SECONDS,
            default="three times --network-timeout",
        ),
    ] = None
    retries: Annotated[
        Count,
        Option(
            help="maximum number of retries of a request that failed for a transient reason", unit=Unit.NUMBER
        ),
    ] = 10
    retry_404: Annotated[
        Count,
        Option(help="maximum number of retries of a read or delete that finds no object", unit=Unit.NUMBER),
    ] = 0
