"""How the sizes of a class are distributed: the key ``size`` of a size class.

A *fixed* or *uniform* size needs no more than the smallest and the largest size. The others are a
:data:`Shape`, which also says how large objects are on average.
"""

from __future__ import annotations

import math
from pathlib import Path
from statistics import NormalDist
from typing import Any

from msgspec import Struct

from ssbench.base import text_values
from ssbench.base.untrusted import TooMuchError, read_small_file
from ssbench.document import units
from ssbench.scenario.value_rules import MAX_BYTES, is_number, make_size_rule, shorten_value

#: The kinds of distributions, which are keys of ``size``.
SIZE_KINDS = ("fixed", "uniform", "lognormal", "histogram", "file")

#: The ends of a lognormal distribution that says none: so many standard deviations from the median, of the
#: logarithm. 1 of 16,000 would lie beyond each.
_DEFAULT_DEVIATIONS = 4.0

#: The least part of a lognormal distribution that has to lie between its ends.
_MIN_INSIDE_SHARE = 1e-6

#: A file of sizes is no larger, in bytes, and has no more different sizes.
_MAX_FILE_BYTES = 10_000_000
_MAX_DIFFERENT_SIZES = 10_000

#: Histograms with more ranges are not spelt out.
_MAX_RANGES_IN_WORDS = 6

_RANGE_RULE = make_size_rule(0)
_NORMAL_DISTRIBUTION = NormalDist()

_EXPECTED_SIZE = (
    "a size, two as in 4kB..64kB, or a mapping with one of fixed, uniform, lognormal (which may have min and"
    " max beside it), histogram and file"
)


class Lognormal(Struct, frozen=True, tag="lognormal"):
    """Sizes of which the logarithm is normal, none beyond the ends; all in bytes but for ``sigma``."""

    median: int
    sigma: float  # standard deviation of the logarithm
    smallest: int
    largest: int

    @property
    def part(self) -> tuple[float, float]:
        """The shares of the whole distribution below the smallest size, and up to the largest."""
        low, high = (
            _NORMAL_DISTRIBUTION.cdf(self._deviations(size)) for size in (self.smallest, self.largest)
        )
        return low, high

    @property
    def mean(self) -> float:
        """The mean size in bytes: that of a truncated lognormal distribution."""
        low, high = self.part
        shifted = [
            _NORMAL_DISTRIBUTION.cdf(self._deviations(size) - self.sigma)
            for size in (self.smallest, self.largest)
        ]
        return self.median * math.exp(self.sigma**2 / 2) * (shifted[1] - shifted[0]) / (high - low)

    def _deviations(self, size: int) -> float:
        return math.log(size / self.median) / self.sigma

    def __str__(self) -> str:
        """Return it in words."""
        return f"lognormal, median {text_values.format_bytes(self.median)}, sigma {self.sigma:g}"


class Histogram(Struct, frozen=True, tag="histogram"):
    """Weighted ranges of sizes: (smallest, largest, weight), bytes, each uniform with both ends included."""

    ranges: tuple[tuple[int, int, float], ...]

    @property
    def mean(self) -> float:
        """The mean size in bytes."""
        total = math.fsum(weight for *_, weight in self.ranges)
        return math.fsum((low + high) / 2 * (weight / total) for low, high, weight in self.ranges)

    def __str__(self) -> str:
        """Return it in words."""
        if all(low == high for low, high, _ in self.ranges):
            count = len(self.ranges)
            return f"{count:,} weighted size{'s' * (count != 1)}"
        if len(self.ranges) > _MAX_RANGES_IN_WORDS:
            return f"histogram of {len(self.ranges):,} ranges"
        total = math.fsum(weight for *_, weight in self.ranges)
        return "histogram, " + ", ".join(
            f"{units.format_share(weight, total)} "
            + " to ".join(text_values.format_bytes(size) for size in dict.fromkeys((low, high)))
            for low, high, weight in self.ranges
        )


Shape = Lognormal | Histogram


def read_size(value: object, folder: Path) -> tuple[int, int, Shape | None]:
    """Return the smallest and the largest size in bytes of what a size class has as its ``size``.

    The third is their distribution, None where it is uniform. Paths are relative to a ``folder``. Raises
    ValueError.
    """
    if not isinstance(value, dict):
        return *_read_range(value, _EXPECTED_SIZE), None
    kinds = value.keys() & set(SIZE_KINDS)
    others = [key for key in value if key not in kinds]
    ends = {"min", "max"} if "lognormal" in value else set()
    if len(kinds) != 1 or set(others) - ends:
        raise ValueError(f"expected {_EXPECTED_SIZE}, not {shorten_value(value)}")
    (kind,) = kinds
    given = value[kind]
    match kind:
        case "fixed":
            low, high = _read_range(given, "fixed: a size in bytes, 0 or more")
            if low != high:
                raise ValueError(f"expected fixed: one size, not {shorten_value(given)}")
            return low, high, None
        case "uniform":
            return *_read_range(given, "uniform: two sizes as in 4kB..64kB"), None
        case "lognormal":
            curve = _read_lognormal(given, value)
            return curve.smallest, curve.largest, curve
    found = _read_histogram(given) if kind == "histogram" else _read_file(given, folder)
    return min(low for low, *_ in found.ranges), max(high for _, high, _ in found.ranges), found


def _read_range(value: object, expected: str) -> tuple[int, int]:
    try:
        found: Any = _RANGE_RULE.read(value)
    except ValueError as error:
        raise ValueError(f"expected {expected}: {error}") from None
    if not _RANGE_RULE.accepts(found):
        raise ValueError(f"expected {expected}, not {shorten_value(value)}")
    return found[0], found[1]


def _read_lognormal(given: object, beside: dict[str, Any]) -> Lognormal:
    expected = "lognormal: a mapping with median, a size above 0, and sigma, a number above 0 up to 10"
    if not isinstance(given, dict) or given.keys() != {"median", "sigma"}:
        raise ValueError(f"expected {expected}, not {shorten_value(given)}")
    median, top = _read_range(given["median"], expected)
    sigma = given["sigma"]
    if not 0 < median == top or not is_number(sigma) or not 0 < sigma <= 10:
        raise ValueError(f"expected {expected}, not {shorten_value(given)}")
    reach = math.exp(_DEFAULT_DEVIATIONS * sigma)
    # A size of 0 has no logarithm.
    smallest = max(1, _read_end(beside, "min", math.ceil(median / reach)))
    largest = _read_end(beside, "max", min(int(median * reach), MAX_BYTES))
    if smallest > largest:
        raise ValueError(f"expected min, which is {smallest}, to be at most max, which is {largest}")
    found = Lognormal(median, float(sigma), smallest, largest)
    low, high = found.part
    if smallest < largest and high - low < _MIN_INSIDE_SHARE:
        raise ValueError(
            f"expected a min and a max with some of the sizes between them, not {shorten_value(beside)}"
        )
    return found


def _read_end(beside: dict[str, Any], key: str, default: int) -> int:
    if beside.get(key) is None:
        return default
    low, high = _read_range(beside[key], f"{key}: a size")
    if low != high:
        raise ValueError(f"expected {key}: one size, not {shorten_value(beside[key])}")
    return low


def _read_histogram(given: object) -> Histogram:
    expected = "histogram: a mapping of sizes, or ranges as in 1kB..4kB, to weights of 0 or more"
    if not isinstance(given, dict) or not given or not all(map(is_number, given.values())):
        raise ValueError(f"expected {expected}, not {shorten_value(given)}")
    if not 0 < sum(given.values()) < 1e300:
        raise ValueError(f"expected {expected}, of which some are above 0, not {shorten_value(given)}")
    return Histogram(
        tuple((*_read_range(key, expected), float(weight)) for key, weight in given.items() if weight)
    )


def _read_file(given: object, folder: Path) -> Histogram:
    """Read a file with a size on each line, and a weight behind it where it is not 1."""
    if not isinstance(given, str) or not given or "\0" in given:
        raise ValueError(f"expected file: the path of a file, not {shorten_value(given)}")
    try:
        text = read_small_file(folder / given, _MAX_FILE_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"{given} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{given}: expected UTF-8 text") from None
    except TooMuchError as error:
        raise ValueError(f"{given}: expected sizes, at most {_MAX_FILE_BYTES:,} bytes: {error}") from None
    weights: dict[int, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            size = text_values.parse_size(words[0])
            (weight,) = map(float, words[1:] or ["1"])
        except ValueError:
            size, weight = -1, 0.0
        if not 0 <= size <= MAX_BYTES or not 0 <= weight < 1e290:
            raise ValueError(
                f"{given}:{number}: expected a size, and a weight of 0 or more behind it,"
                f" not {shorten_value(line)}"
            )
        weights[size] = weights.get(size, 0.0) + weight
    ranges = tuple((size, size, weight) for size, weight in sorted(weights.items()) if weight)
    if not ranges:
        raise ValueError(f"{given}: expected a size with a weight above 0")
    if len(ranges) > _MAX_DIFFERENT_SIZES:
        raise ValueError(
            f"{given}: expected at most {_MAX_DIFFERENT_SIZES:,} different sizes, not {len(ranges):,}"
        )
    return Histogram(ranges)
