"""Values that suites and the command line put into the data of a scenario, before it is checked.

A value has a path of keys (``think_time``, ``sizes.kv.size``, ``operations.list.limit``): an entry of a list
is found by its name. ``size`` is that of all size classes, ``objects`` are the initial objects of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from ssbench.base.errors import did_you_mean

#: What suites call keys of scenarios.
OTHER_NAMES = {"users": "user_count", "seconds": "run_seconds"}


def parse_setting(text: str) -> tuple[str, Any]:
    """Return the path and the value of ``think_time=10ms``, whose value is YAML; raises ValueError."""
    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        raise ValueError(f"{text!r} is not KEY=VALUE, such as think_time=10ms")
    try:
        return path.strip(), yaml.safe_load(value)
    except yaml.YAMLError:
        raise ValueError(f"{path}: {value!r} is not YAML") from None


def set_value(data: dict[str, Any], path: str, value: Any) -> None:
    """Replace what is at a path of keys; ``none`` removes it. Raises ValueError without such a place."""
    *parents, last = OTHER_NAMES.get(path, path).split(".")
    if not parents and last == "size":  # of all classes
        for each in data.get("sizes") or []:
            _set_key(each, last, value)
        return
    if not parents and last == "objects":
        data["initial_files"] = _share_objects(data.get("initial_files"), value)
        return
    place: Any = data
    for number, part in enumerate(parents):
        where = ".".join(parents[: number + 1])
        if isinstance(place, list):
            named = [each for each in place if isinstance(each, dict) and str(each.get("name")) == part]
            if not named:
                names = [str(each.get("name")) for each in place if isinstance(each, dict)]
                raise ValueError(
                    f"{path}: there is no {where} ({', '.join(names)}){did_you_mean(part, names)}"
                )
            place = named[0]
        elif isinstance(place, dict):
            place = place.setdefault(part, {})
        else:
            raise ValueError(f"{path}: {where} has no keys")
    if not isinstance(place, dict):
        raise ValueError(f"{path}: expected the name of one of {'.'.join(parents)} before {last}")
    _set_key(place, last, value)


def share_count(count: int, shares: Sequence[int]) -> list[int]:
    """Return the parts of a number in the proportion of some shares, which are not all 0."""
    total, given, done = sum(shares), 0, 0
    found = []
    for each in shares:
        # What has been rounded so far is made up for, so that the sum is exact.
        given += each
        found.append(round(count * given / total) - done)
        done += found[-1]
    return found


def _share_objects(files: Any, value: Any) -> dict[str, int]:
    """Return so many initial objects in the proportion of those that there are; raises ValueError."""
    counts = files if isinstance(files, dict) else {}
    if (
        not counts
        or not all(type(each) is int and each >= 0 for each in counts.values())
        or not any(counts.values())
    ):
        raise ValueError("objects: the scenario has no initial_files to share them")
    try:
        number = float(value)  # YAML takes 1e4 for a text
    except (TypeError, ValueError):
        number = 0.5
    if not 1 <= number <= 10**9 or number % 1:
        raise ValueError(f"objects: expected a number from 1 to 1,000,000,000, not {value!r}")
    return dict(zip(counts, share_count(int(number), list(counts.values())), strict=True))


def _set_key(place: dict[str, Any], key: str, value: Any) -> None:
    if value is None or value == "none":
        place.pop(key, None)
        return
    if key == "size":
        for other in ("size_min", "size_max"):
            place.pop(other, None)
    for pair in (("profile", "crud_profile"), ("container_count", "objects_per_container")):
        if key in pair:
            for other in pair:
                place.pop(other, None)
    place[key] = value
