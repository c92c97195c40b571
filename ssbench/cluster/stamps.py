"""When a log line was written, by the words before its message or by the record of JSON that it is in."""

from __future__ import annotations

import re
import time
from calendar import timegm
from functools import lru_cache
from typing import NamedTuple

_MONTHS = {
    name: place + 1
    for place, name in enumerate(
        (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")
    )
}
#: As journald writes it in JSON, in microseconds.
_REALTIME = re.compile(rb'"__REALTIME_TIMESTAMP"\s*:\s*"?(\d{10})(\d{6})\b')
_ISO = re.compile(
    rb"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s?(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
#: Traditional syslog: no year, no zone. What is further on in the line is part of the message.
_TRADITIONAL = re.compile(rb"([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d)\b")
_BEGINNING = 48
#: An access line of a storage server has the time at its end, always in UTC.
_ACCESS = re.compile(rb"\[(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d) \+0000\]")


class Stamp(NamedTuple):
    """Seconds since 1970; unless ``zoned`` as if local time were UTC."""

    seconds: float
    zoned: bool


def stamp(line: bytes, near: float) -> Stamp | None:
    """Return when a line was written; None where it does not say. A missing year is that of ``near``."""
    if found := _REALTIME.search(line):
        return Stamp(int(found[1]) + int(found[2]) / 1e6, zoned=True)
    is_json = line[:1] == b"{"
    found = None if is_json else _TRADITIONAL.search(line, 0, _BEGINNING)
    if found and found[1] in _MONTHS:
        month, (day, hour, minute, second) = _MONTHS[found[1]], map(int, found.groups()[1:])
        year = time.gmtime(near).tm_year
        years = (_utc(each, month, day, hour, minute, second) for each in (year - 1, year, year + 1))
        return Stamp(min(years, key=lambda seconds: abs(seconds - near)), zoned=False)
    # Further on it is part of the message, as in the name of an object.
    if found := _ISO.search(line) if is_json else _ISO.search(line, 0, 2 * _BEGINNING):
        *words, fraction, zone = found.groups()
        if not (1 <= int(words[1]) <= 12 and int(words[0])):
            return None
        seconds = _utc(*map(int, words)) + (float(b"0." + fraction) if fraction else 0.0)
        return Stamp(seconds - _ahead(zone), zoned=zone is not None)
    return None


def access_time(line: bytes) -> int | None:
    """Return the seconds since 1970 in an access line of a storage server; None where there is none."""
    found = _ACCESS.search(line)
    return _of_access(found[0]) if found else None


@lru_cache(maxsize=1024)
def _of_access(text: bytes) -> int | None:
    found = _ACCESS.match(text)
    if found is None or found[2] not in _MONTHS:
        return None
    day, _, year, hour, minute, second = found.groups()
    if not int(year):
        return None
    return _utc(int(year), _MONTHS[found[2]], int(day), int(hour), int(minute), int(second))


def _utc(*words: int) -> int:
    return timegm((*words, 0, 0, 0))


def _ahead(zone: bytes | None) -> int:
    """Return by how many seconds a zone is ahead of UTC."""
    if zone is None or zone == b"Z":
        return 0
    seconds = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
    return -seconds if zone[:1] == b"-" else seconds
