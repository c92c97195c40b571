"""How many connections were made for operations, and how many operations used kept ones only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ssbench.results import ResultBlock

#: What a block has given in which operations made connections.
_CONNECTED = frozenset({"connecting", "connections"})


@dataclass(frozen=True, slots=True)
class NewConnections:
    """So many connections were ``made`` for a number of ``operations``; ``resumed`` of them a TLS session.

    Operations that failed are among them.
    """

    operations: int = 0
    made: int = 0
    resumed: int = 0

    def __add__(self, other: NewConnections) -> NewConnections:
        """Return both together."""
        return NewConnections(
            self.operations + other.operations, self.made + other.made, self.resumed + other.resumed
        )


#: What is shared by all that made none.
NONE = NewConnections()


def new_connections_of(block: ResultBlock, rows: npt.NDArray[np.intp]) -> NewConnections:
    """Return the connections that were made for some operations of a block."""
    if not block.given & _CONNECTED:
        return NONE
    made = block.connections[rows]
    resumed = int(block.resumed[rows].sum()) if "resumed" in block.given else 0
    tried = (made > 0) | (block.connecting[rows] > 0)
    return NewConnections(int(np.count_nonzero(tried)), int(made.sum()), resumed)
