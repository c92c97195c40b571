"""When a line was written, by the words before its message or by its record of JSON."""

from __future__ import annotations

import re
import time
from calendar import timegm
from functools import lru_cache
from typing import NamedTuple

_MONTH_NUMBERS = {
    name: place + 1
    for place, name in enumerate(
        (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")
    )
}
#: As journald writes it in JSON, in microseconds.
_JOURNALD_TIME = re.compile(rb'"__REALTIME_TIMESTAMP"\s*:\s*"?(\d{10})(\d{6})\b')
_ISO_TIME = re.compile(
    rb"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s?(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
#: Traditional syslog: no year, no zone. What is further on in the line is part of the message.
_SYSLOG_TIME = re.compile(rb"([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d)\b")
_BEGINNING_BYTES = 48
#: An access line of a storage server has the time at its end, always in UTC.
_ACCESS_TIME = re.compile(rb"\[(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d) \+0000\]")


class LineTime(NamedTuple):
    """Seconds since 1970; unless ``zoned`` as if local time were UTC."""

    seconds: float
    zoned: bool


def parse_line_time(line: bytes, near: float) -> LineTime | None:
    """Return when a line was written; None where it does not say. A missing year is that of ``near``."""
    if found := _JOURNALD_TIME.search(line):
        return LineTime(int(found[1]) + int(found[2]) / 1e6, zoned=True)
    is_json = line[:1] == b"{"
    found = None if is_json else _SYSLOG_TIME.search(line, 0, _BEGINNING_BYTES)
    if found and found[1] in _MONTH_NUMBERS:
        month, (day, hour, minute, second) = _MONTH_NUMBERS[found[1]], map(int, found.groups()[1:])
        year = time.gmtime(near).tm_year
        years = (_utc_seconds(each, month, day, hour, minute, second) for each in (year - 1, year, year + 1))
        return LineTime(min(years, key=lambda seconds: abs(seconds - near)), zoned=False)
    # Further on it is part of the message, as in the name of an object.
    if found := _ISO_TIME.search(line) if is_json else _ISO_TIME.search(line, 0, 2 * _BEGINNING_BYTES):
        *words, fraction, zone = found.groups()
        if not (1 <= int(words[1]) <= 12 and int(words[0])):
            return None
        seconds = _utc_seconds(*map(int, words)) + (float(b"0." + fraction) if fraction else 0.0)
        return LineTime(seconds - _zone_seconds(zone), zoned=zone is not None)
    return None


def parse_access_time(line: bytes) -> int | None:
    """Return the seconds since 1970 in an access line of a storage server; None where there is none."""
    found = _ACCESS_TIME.search(line)
    return _parse_access_text(found[0]) if found else None


@lru_cache(maxsize=1024)
def _parse_access_text(text: bytes) -> int | None:
    found = _ACCESS_TIME.match(text)
    if found is None or found[2] not in _MONTH_NUMBERS:
        return None
    day, _, year, hour, minute, second = found.groups()
    if not int(year):
        return None
    return _utc_seconds(int(year), _MONTH_NUMBERS[found[2]], int(day), int(hour), int(minute), int(second))


def _utc_seconds(*words: int) -> int:
    return timegm(words)


def _zone_seconds(zone: bytes | None) -> int:
    """Return by how many seconds a zone is ahead of UTC."""
    if zone is None or zone == b"Z":
        return 0
    seconds = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
    return -seconds if zone[:1] == b"-" else seconds
