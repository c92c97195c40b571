"""How many files and connections this process may have open, and some of them kept for itself."""

from __future__ import annotations

import errno
import os

from ssbench.base.errors import UsageError

#: Most workers that a master keeps; strangers can pretend to be any number.
MAX_WORKERS = 4096

#: How many connections may wait to be accepted at a socket at the most. Thousands come at once when the
#: workers of a large fleet start together; those for which there is no room come again after 1, 2 or 4 s.
_MAX_WAITING_CONNECTIONS = 4096

#: Some descriptors are kept for our own files, for connections to Swift, and for connections that were about
#: to be accepted when no more were to be: as many as may wait at two sockets, and at most this part of all,
#: or what the largest fleet leaves free, with two connections a worker and some for those that come again.
_RESERVED_DIVISOR = 4
_MAX_FLEET_DESCRIPTORS = 2 * MAX_WORKERS + 512

#: With fewer descriptors than this, no more than these are kept, and at most this part.
_FEW_DESCRIPTORS = 8192
_MAX_RESERVED_OF_FEW, _DIVISOR_OF_FEW = 128, 3

#: How many of those are for our own use.
_OWN_DESCRIPTORS = 24

#: With fewer free ones than this, besides the reserved ones, no connection is accepted any more.
_SCARCE_DESCRIPTORS = 8


#: Fewer descriptors are too few for a program of ours: libraries end it then in the middle of something.
MIN_DESCRIPTORS = 64


def raise_descriptor_limit() -> int:
    """Let the process open as many files as its hard limit allows; returns that number.

    Raises UsageError where these are fewer than :data:`MIN_DESCRIPTORS`.
    """
    import resource  # noqa: PLC0415 - only POSIX has it

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < MIN_DESCRIPTORS:
        raise UsageError(
            f"this process may have no more than {hard} files and connections open, and"
            f" needs {MIN_DESCRIPTORS} at"
            " least: raise the limit (ulimit -n)"
        )
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def reserved_descriptors(limit: int) -> int:
    """Return how many descriptors are kept where a process may have so many."""
    if limit < _FEW_DESCRIPTORS:
        return min(_MAX_RESERVED_OF_FEW, limit // _DIVISOR_OF_FEW)
    return min(
        2 * _MAX_WAITING_CONNECTIONS + _OWN_DESCRIPTORS,
        max(limit // _RESERVED_DIVISOR, limit - _MAX_FLEET_DESCRIPTORS),
    )


class Descriptors:
    """Watches how many descriptors are free, and holds some of them until they are needed.

    ``limit`` is how many the process may have, ``backlog`` how many connections may wait to be accepted at
    each of two sockets: those come in after others are shut out. Raises OSError where there are not even
    the reserved ones.
    """

    def __init__(self) -> None:
        self.limit = raise_descriptor_limit()
        self._reserve = reserved_descriptors(self.limit)
        self.backlog = max(1, (self._reserve - _OWN_DESCRIPTORS) // 2)
        self._sample = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._reserved: list[int] = []
        if not self.hold():
            os.close(self._sample)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        self._room = self.limit - self._reserved[-1] - _SCARCE_DESCRIPTORS

    @property
    def room(self) -> int:
        """How many connections there is room for, besides what was open in the beginning."""
        return max(0, self._room)

    def scarce(self) -> bool:
        """Whether hardly any descriptor is free, besides the reserved ones."""
        taken = self._take(_SCARCE_DESCRIPTORS)
        few = len(taken) < _SCARCE_DESCRIPTORS
        _close_descriptors(taken)
        return few

    def hold(self) -> bool:
        """Take the reserved ones; return False, and take none, unless some more are free."""
        wanted = self._reserve + 2 * _SCARCE_DESCRIPTORS - len(self._reserved)
        self._reserved += self._take(wanted)
        enough = len(self._reserved) == self._reserve + 2 * _SCARCE_DESCRIPTORS
        _close_descriptors(self._reserved, self._reserve if enough else 0)
        return enough

    def release(self) -> None:
        """Give the reserved ones back, for whatever is to be opened next."""
        _close_descriptors(self._reserved)

    def close(self) -> None:
        """Close all that is held."""
        self.release()
        if self._sample >= 0:
            os.close(self._sample)
            self._sample = -1

    def _take(self, count: int) -> list[int]:
        """Duplicate a descriptor this many times, or as often as it can be."""
        taken: list[int] = []
        try:
            while len(taken) < count:
                taken.append(os.dup(self._sample))
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
        return taken


def _close_descriptors(descriptors: list[int], but: int = 0) -> None:
    """Close all but the first this many."""
    while len(descriptors) > but:
        os.close(descriptors.pop())
