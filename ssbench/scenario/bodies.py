"""What is in the bodies that a scenario uploads: random bytes, zeros, or so many of both."""

from __future__ import annotations

from dataclasses import dataclass

from ssbench.rule import Rule


@dataclass(frozen=True, slots=True)
class Body:
    """Bodies of which a share is ``zeros``, evenly spread; the rest is random. 1: all of it."""

    zeros: float

    def __str__(self) -> str:
        if self.zeros in {0, 1}:
            return "zero" if self.zeros else "random"
        return f"compressible: {self.zeros:g}"


def _body(value: object) -> object:
    """Return what a scenario says of bodies; a value that says nothing unchanged."""
    match value:
        case "random" | "zero":
            return Body(float(value == "zero"))
        case {"compressible": int() | float() as share, **rest} if not rest and type(share) is not bool:
            return Body(float(share)) if 0 < share < 1 else value
    return value


BODY = Rule(
    lambda value: isinstance(value, Body),
    "random, zero, or {compressible: 0.6}: a share above 0 and below 1, which a compressor saves",
    convert=_body,
)
