"""Values as people write them: times and sizes with units, URLs, and references to runs.

Times and sizes are ``200ms``, ``1m30s``, ``4KiB``, ``1MB``. A plain number is seconds, or bytes. As for the
``swift`` command and the GNU tools, ``K``, ``M`` and so on are powers of 1024, as ``KiB`` and ``MiB`` are;
``kB`` and ``MB`` are powers of 1000. URLs are checked, and shown without the password that one may hold.
References are ``last``, ``last-1`` and ``@label``, where no file has such a name.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any
from urllib.parse import SplitResult, urlsplit

from ssbench.base.errors import UsageError


class FieldValues(dict[str, Any]):
    """What one option says of several fields of its record, by their names."""


_UNIT_SECONDS = {
    "us": Fraction(1, 1_000_000),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}
_SIZE_PREFIXES = "kmgtpe"
_DECIMAL_UNITS = ("", "kB", "MB", "GB", "TB", "PB")
_BINARY_UNITS = ("", "KiB", "MiB", "GiB", "TiB", "PiB")
_SIZE_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")

#: Characters from which on a text is no quantity, so that no number is too large for a float.
_MAX_CHARACTERS = 100

_TIME_PATTERN = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.ASCII)
_SIZE_PATTERN = re.compile(
    r"(\d+(?:\.\d+)?(?:e\+?\d{1,2})?)\s*(?:b|([kmgtpe])(i?b?))?", re.ASCII | re.IGNORECASE
)

TIME_EXAMPLES = "such as 30, 200ms, 1m30s or 2h"
SIZE_EXAMPLES = "such as 4096, 4K (4096), 4kB (4000) or 1.5MiB"


def parse_seconds(text: str) -> float:
    """Return a time in seconds; raises ValueError for what is none, or has an unknown unit."""
    try:
        value = float(text)
    except ValueError:
        return _parse_with_units(text.strip())
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not a time, {TIME_EXAMPLES}")
    return value


def _parse_with_units(text: str) -> float:
    total, place = Fraction(0), 0
    while len(text) < _MAX_CHARACTERS and (part := _TIME_PATTERN.match(text, place)):
        number, unit = part.groups()
        if unit not in _UNIT_SECONDS:
            raise ValueError(f"{text!r}: {unit!r} is not a unit of time (us, ms, s, m, h, d)")
        total += Fraction(number) * _UNIT_SECONDS[unit]
        place = part.end()
    if not place or place < len(text):
        raise ValueError(f"{text!r} is not a time, {TIME_EXAMPLES}")
    return float(total)


def parse_size(text: str) -> int:
    """Return a number of bytes; raises ValueError for what is none, or is not whole."""
    found = _SIZE_PATTERN.fullmatch(text.strip())
    if found is None or len(text) >= _MAX_CHARACTERS:
        raise ValueError(f"{text!r} is not a number of bytes, {SIZE_EXAMPLES}")
    number, prefix, unit = found.groups()
    base = 1000 if (unit or "").lower() == "b" else 1024
    power = _SIZE_PREFIXES.index(prefix.lower()) + 1 if prefix else 0
    value = Fraction(number) * base**power
    if value.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(value)


def spell_size(size: int) -> str:
    """Return a size as a scenario may have it, which :func:`parse_size` reads back: ``4KiB``, ``5MB``."""
    for base, ends in ((1024, _BINARY_UNITS), (1000, _DECIMAL_UNITS)):
        power = 0
        while size and power < len(ends) - 1 and size % base ** (power + 1) == 0:
            power += 1
        if power:
            return f"{size // base**power}{ends[power]}"
    return str(size)


def format_bytes(value: float) -> str:
    """Return bytes as a person says them, with three digits: ``4.1 kB``."""
    power = 0
    while value >= 999.5 and power < len(_SIZE_UNITS) - 1:
        value, power = value / 1000, power + 1
    text = f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"
    return f"{text} {'byte' if not power and text == '1' else _SIZE_UNITS[power]}"


def format_duration(value: float) -> str:
    """Return seconds as a person says them, in two units at most: ``8 min 40 s``, ``200 ms``."""
    if 0 < value < 0.9995:
        return f"{1000 * value:.3g} ms"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


# -- URLs ------------------------------------------------------------------------------------------


#: Up to the last @: a password may hold a slash, which ends what a parser takes for the user-info.
_USER_INFO_PATTERN = re.compile(r"//.*@", re.DOTALL)


def redact_url(url: str) -> str:
    """Return the URL as a message may show it: quoted, without a user name and a password."""
    return repr(_USER_INFO_PATTERN.sub("//***@", url))


def parse_http_url(url: str) -> SplitResult | None:
    """Return the parts of an absolute http or https URL; None where it is none."""
    if not url.isprintable() or " " in url:  # urlsplit drops some of these characters without a word
        return None
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if valid else None


def refuse_user_info(url: str, what: str) -> None:
    """Raise UsageError where a URL has a user name or a password in it; ``what`` is for the text."""
    try:
        has_user_info = "@" in urlsplit(url).netloc
    except ValueError:
        return  # not a URL, which is reported where one is needed
    if has_user_info:
        raise UsageError(
            f"{what} {redact_url(url)}: a user name or password in a URL is refused, because URLs are shown "
            "and saved"
        )


# -- References to runs ----------------------------------------------------------------------------


#: ``last``, ``last-1`` and so on; the number is its first group.
LAST_PATTERN = re.compile(r"last(?:-(\d{1,6}))?\Z", re.ASCII)


def is_reference(text: str) -> bool:
    """Whether a text is a reference to runs of an archive, and not the name of a file that exists."""
    if not text.startswith("@") and LAST_PATTERN.match(text) is None:
        return False
    return not os.path.exists(text)  # noqa: PTH110 - it raises nothing where that cannot be known


def explain_several_runs(reference: str, files: Sequence[object]) -> str:
    """Return the message on a reference that stands for several stat files, the newest last."""
    return (
        f"{reference}: {len(files)} runs have this label; one is expected: name its file, such as {files[-1]}"
    )


def is_foreign_name(name: str) -> bool:
    """Whether a file is one of another tool than ssbench, by the end of its name."""
    return name.removesuffix(".zst").endswith((".csv", ".json"))
