"""Which object an operation is for: the keys ``popularity`` and ``reuse`` of a scenario."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from ssbench.scenario.rule import Rule, is_number, shorten_value

PopularityKind = Literal["rotate", "uniform", "sequential", "zipf", "latest", "hotspot"]

#: Kinds that have no parameters; "latest" may have one.
_PLAIN_KINDS = ("rotate", "uniform", "sequential", "latest")

#: The exponent of "latest" where none is given; that of YCSB (Cooper et al. 2010).
_DEFAULT_EXPONENT = 0.99

#: Requests that are remembered for each size class at most, in 4 bytes each.
_MAX_REUSE_DISTANCE = 1_000_000


class Popularity(Struct, frozen=True):
    """How an object is chosen.

    ``exponent`` is that of Zipf's law: the object of rank n is asked for n ** -exponent times as often as
    the first.
    ``latest`` ranks the newest object first. In a ``hotspot`` a part of the ``objects`` has a part of the
    ``requests``, both from 0 to 1.
    """

    kind: PopularityKind = "rotate"
    exponent: float = 0.0
    objects: float = 0.0
    requests: float = 0.0

    def __str__(self) -> str:
        """Return it in words."""
        if self.kind == "hotspot":
            return f"hotspot, {100 * self.requests:g}% of requests for {100 * self.objects:g}% of objects"
        return f"{self.kind} {self.exponent:g}" if self.exponent else self.kind


class Reuse(Struct, frozen=True):
    """A ``share`` of reads is for what was read between ``nearest`` and ``farthest`` reads ago."""

    share: float
    nearest: int
    farthest: int

    def __str__(self) -> str:
        """Return it in words."""
        far = "" if self.nearest == self.farthest else f" to {self.farthest:,}"
        return f"{100 * self.share:g}% of what was read {self.nearest:,}{far} reads ago"


def _parse_popularity(value: object) -> object:
    """Return what a value means; any wrong value unchanged."""
    match value:
        case str() if value in _PLAIN_KINDS:
            return Popularity(value, _DEFAULT_EXPONENT if value == "latest" else 0.0)  # type: ignore[arg-type]
        case {"zipf": exponent, **others} if not others and _is_exponent(exponent):
            return Popularity("zipf", float(exponent))
        case {"latest": exponent, **others} if not others and _is_exponent(exponent):
            return Popularity("latest", float(exponent))
        case {"hotspot": {"objects": objects, "requests": requests, **beside}, **others} if (
            not others and not beside and _is_part(objects) and _is_part(requests)
        ):
            return Popularity("hotspot", objects=float(objects), requests=float(requests))
    return value


def _is_exponent(value: Any) -> bool:
    return is_number(value) and 0 < value <= 10


def _is_part(value: Any) -> bool:
    return is_number(value) and 0 < value < 1


def _parse_reuse(value: object) -> object:
    match value:
        case {"share": share, "distance": distance, **others} if not others and is_number(share):
            ends = str(distance).split("..")
            if type(distance) is bool or len(ends) > 2 or not all(end.strip().isdecimal() for end in ends):
                raise ValueError(f"expected {_EXPECTED_REUSE}, not {shorten_value(value)}")
            return Reuse(float(share), int(ends[0]), int(ends[-1]))
    return value


_EXPECTED_REUSE = (
    "a mapping with share, a number above 0 up to 1, and distance, a number of reads from 1 to"
    f" {_MAX_REUSE_DISTANCE:,} or two as in 1..1000"
)

POPULARITY_RULE = Rule(
    lambda value: isinstance(value, Popularity),
    "rotate, uniform, sequential, latest, or a mapping: {zipf: 0.99} or {latest: 0.99} (above 0, up to 10),"
    " or {hotspot: {objects: 0.2, requests: 0.8}} (above 0, below 1)",
    convert=_parse_popularity,
)
REUSE_RULE = Rule(
    lambda value: (
        isinstance(value, Reuse)
        and 0 < value.share <= 1
        and 1 <= value.nearest <= value.farthest <= _MAX_REUSE_DISTANCE
    ),
    _EXPECTED_REUSE,
    convert=_parse_reuse,
)
