"""How long systems wait by default: the one table of lengths by which latencies pile up, and their names.

Sources: Linux ``include/net/tcp.h`` (TCP_DELACK_MIN, TCP_RTO_MIN, TCP_TIMEOUT_INIT, which doubles from
the first retry on, since 6.5 from the fifth: tcp_syn_linear_timeouts), its ``kernel/time/timer.c`` (how late
timers are), resolv.conf(5) (``timeout``), and Swift's sample configuration for its defaults.
"""

from __future__ import annotations

import msgspec


class WaitLength(msgspec.Struct, frozen=True):
    """A wait of ``seconds``, of at most ``jitter`` more, in ``connecting`` or in the request after that.

    ``reads`` and ``writes`` tell of which requests it can be part. With ``alone`` it is named even where
    every request waits and nothing faster shows how long they take without: no round trip is that long.
    With ``shared`` all that begin during it wait for its end, those that begin later for less.
    """

    seconds: float
    jitter: float
    name: str
    advice: str
    connecting: bool = False
    reads: bool = True
    writes: bool = True
    alone: bool = True
    shared: bool = False


#: The kernel's wheel of timers has coarser steps for longer ones: one of a second is late by up to 32 ms with
#: 250 ticks a second, by up to 64 ms with 1,000; and so is each of several in a row.
_LATE_SHARE = 0.065

_LOST_SYN_NAME = "a lost SYN that was sent again"
_SYN_ADVICE = (
    "look at full listen queues (nstat TcpExtListenOverflows, backlog of the server) and at dropped packets"
)

WAIT_LENGTHS = (
    WaitLength(
        0.04,
        0.009,  # two jiffies of 4 ms
        "Nagle's algorithm with delayed ACK",
        "have servers and load balancers set TCP_NODELAY, or send headers and body together",
        alone=False,
    ),
    WaitLength(
        0.2,
        0.025,  # and what the round trip varies by
        "a TCP retransmission",
        "look at lost packets: nstat TcpRetransSegs, ip -s link, full queues of switches",
        alone=False,
    ),
    WaitLength(
        0.5,
        0.015,
        "post_quorum_timeout or conn_timeout",
        "a replica answers late or its server does not accept connections: see timeouts in the proxies' logs,"
        " and ssbench-master attribute",
        reads=False,
    ),
    WaitLength(
        0.5,
        0.015,
        "conn_timeout or concurrency_timeout",
        "a server of the first replica does not accept connections, or does not answer: see the proxies'"
        " logs, and ssbench-master attribute",
        writes=False,
    ),
    WaitLength(
        1.0,
        0.03,
        "container_update_timeout",
        "a container server does not answer: look for asynchronous pendings (swift-recon --async)",
        reads=False,
    ),
    WaitLength(
        1.0,
        _LATE_SHARE,
        f"{_LOST_SYN_NAME} between the first server and the next",
        _SYN_ADVICE,
        writes=False,
    ),
    *(
        WaitLength(each, _LATE_SHARE * each, _LOST_SYN_NAME, _SYN_ADVICE, connecting=True)
        for each in (1.0, 2.0, 3.0, 7.0)
    ),
    WaitLength(
        5.0,
        0.05,
        "a name server that does not answer",
        "look at the first name servers of /etc/resolv.conf on the workers' hosts, or use addresses",
        connecting=True,
        shared=True,  # by the connections of a worker
    ),
    WaitLength(
        10.0,
        0.1,
        "node_timeout",
        "a storage server hangs: see the proxies' logs for timeouts, and ssbench-master attribute",
    ),
    WaitLength(
        60.0,
        0.3,
        "client_timeout",
        "a proxy waited for the client: look at the network to the workers",
    ),
)
