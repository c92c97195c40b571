"""When bytes arrived, by the kernel's time stamp (SO_TIMESTAMPNS): before the event loop came round to them.

Between the arrival of an answer and the moment at which its greenlet reads it lies what the loop was doing
for others, which grows with the number of users. The kernel's time is that of the wall clock, which can be
stepped: it is believed only where that clock went as the monotonic one did since the request was sent.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from time import monotonic, time

#: Of asm-generic/socket.h, which all machines use that Python is likely to meet on Linux but these.
_SO_TIMESTAMPNS = 35
_OTHER_ARCHITECTURES = ("alpha", "mips", "parisc", "sparc")

#: Room for one control message with a timespec; the kernel has no other to give.
ANCILLARY_BYTES = socket.CMSG_SPACE(16)

#: Two clocks that differ by more since the request was sent (seconds) did not go alike.
_MAX_CLOCK_STEP = 0.0005

_unpack_timespec = struct.Struct("@qq").unpack_from


def ask_for_arrivals(sock: socket.socket) -> bool:
    """Let the kernel tell when bytes arrive; return whether it may."""
    # Where the kernel's long has 32 bits, this number gives a timespec of 8 bytes.
    wide = sys.maxsize > 2**32
    if sys.platform != "linux" or not wide or os.uname().machine.startswith(_OTHER_ARCHITECTURES):
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True


def arrival_time(stamp: bytes, now: float, sent_at: float, wall_offset: float, before: float) -> float:
    """Return when bytes arrived that were read ``now``, by the monotonic clock.

    ``stamp`` is the kernel's timespec, ``wall_offset`` what the wall clock was ahead of the monotonic one
    when the request was sent, at ``sent_at``. ``before`` is what this returned for the bytes that were read
    before these; no later ones arrived earlier. Returns ``now`` where the stamp cannot be believed.
    """
    seconds, nanoseconds = _unpack_timespec(stamp)
    then, wall = now, time()
    if not -_MAX_CLOCK_STEP < wall - then - wall_offset < _MAX_CLOCK_STEP:
        # Another process or thread may have had the core between the two readings.
        then, wall = monotonic(), time()
    # Each time the wall clock is read last: a pause before that makes it seem further ahead than it is.
    arrived: float = seconds - min(wall - then, wall_offset) + nanoseconds * 1e-9
    if -_MAX_CLOCK_STEP < wall - then - wall_offset < _MAX_CLOCK_STEP and sent_at <= arrived < now:
        # Two reads may be of one segment, with one stamp: the difference of the clocks is read for each, and
        # varies by some nanoseconds.
        return arrived if arrived > before else before
    return now
