"""How requests for objects are made: the options of ``run-scenario`` that a worker's client has to know.

A new one is a field here, and whatever in the store heeds it: the command line, the messages to
workers, the client's settings and the stat file follow from the field.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Annotated

from msgspec import Meta, Struct

from ssbench.base.option import Option, OptionUnit

Time = Annotated[float, Meta(gt=0, le=1e9)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


#: A name or an address, without the port and what else a URL has.
_HOST = re.compile(r"[^\s:/@\[\]]+\Z")


def parse_addresses(text: str) -> dict[str, list[str]]:
    """Read ``HOST=IP,IP``; raises ValueError."""
    host, _, listed = text.partition("=")
    addresses = listed.split(",")
    try:
        known = [str(ip_address(each.strip().strip("[]"))) for each in addresses]
    except ValueError:
        known = []
    if not _HOST.match(host) or len({*known}) != len(addresses):
        raise ValueError(
            f"{text!r} is not a host and its addresses, as in swift.example.com=10.0.0.1,10.0.0.2"
        )
    return {host.lower(): known}


def _checked(text: str) -> str:
    parse_addresses(text)
    return text


class RequestOptions(Struct, array_like=True, frozen=True, kw_only=True):
    """The options, in the same order on the wire. Times are in seconds, and end up to a twentieth late."""

    #: The size of pieces over TLS, and where the system cannot send or receive without copying.
    block_size: Annotated[
        int,
        Meta(ge=1, le=2**30),
        Option(help="bytes that a worker sends or receives at once", unit=OptionUnit.BYTES, letter="-b"),
    ] = 65536
    #: All addresses of a name together have this time; so has the TLS handshake after that.
    connect_timeout: Annotated[
        Time, Option(help="seconds to wait for a connection", unit=OptionUnit.SECONDS)
    ] = 10.0
    #: Each wait for progress has this time.
    network_timeout: Annotated[
        Time, Option(help="seconds to wait for progress of a request", unit=OptionUnit.SECONDS)
    ] = 20.0
    #: The time of an attempt once it is connected; None: three times ``network_timeout``.
    request_timeout: Annotated[
        Time | None,
        Option(
            help="seconds for a whole attempt of a request; the clock stops while its body moves at 10 kB/s"
            " or faster",
            unit=OptionUnit.SECONDS,
            default="three times --network-timeout",
            on_command_line=False,
        ),
    ] = None
    retries: Annotated[
        Count,
        Option(
            help="maximum number of retries of a request that failed for a transient reason",
            unit=OptionUnit.NUMBER,
        ),
    ] = 10
    #: These do not count as ``retries``.
    retry_404: Annotated[
        Count,
        Option(
            help="maximum number of retries of a read or delete that finds no object",
            unit=OptionUnit.NUMBER,
            on_command_line=False,
        ),
    ] = 0
    #: Addresses of a host (:func:`parse_addresses`).
    resolve: Annotated[
        Annotated[str, Meta(max_length=10_000)] | None,
        Option(
            help=(
                "addresses that workers use in turn for the host of the storage URL instead of those from DNS"
            ),
            unit=OptionUnit.NUMBER,
            default="from DNS",
            parse=_checked,
            metavar="HOST=IP,IP",
        ),
    ] = None

    @property
    def timeouts(self) -> tuple[float, float]:
        """Those of connecting and of each wait for an answer, in seconds."""
        return self.connect_timeout, self.network_timeout
