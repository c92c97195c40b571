"""The metadata that uploads of a scenario have: the key ``metadata``."""

from __future__ import annotations

from msgspec import Struct

from ssbench import quantities
from ssbench.document.columns import plural
from ssbench.rule import Rule

#: Swift takes 90 items of 256 bytes unless a cluster says otherwise, which is asked before a run.
_MOST_ITEMS, _MOST_BYTES = 1000, 10_000


class Metadata(Struct, frozen=True):
    """``number`` items of metadata of each object, ``size`` bytes of value each."""

    number: int
    size: int

    def __str__(self) -> str:
        """Return it in words."""
        return f"{plural(self.number, 'item')} of {plural(self.size, 'byte')}"


def _metadata(value: object) -> object:
    """Return what a value means; any wrong value unchanged."""
    match value:
        case {"number": int() as number, "size": int() | str() as given, **others} if not others:
            size = int(quantities.size(given)) if isinstance(given, str) else given
            if type(number) is not bool and type(given) is not bool:
                return Metadata(number, size)
    return value


METADATA = Rule(
    lambda value: (
        isinstance(value, Metadata) and 1 <= value.number <= _MOST_ITEMS and 1 <= value.size <= _MOST_BYTES
    ),
    f"a mapping with number, a whole number of items from 1 to {_MOST_ITEMS}, and size, the bytes of each"
    f" value from 1 to {_MOST_BYTES}",
    convert=_metadata,
)
