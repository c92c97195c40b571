"""Values that suites and the command line put into the data of a scenario, before it is checked.

A value has a path of keys (``think_time``, ``sizes.kv.size``, ``operations.list.limit``): an entry of a list
is found by its name. ``size`` is that of all size classes.
"""

from __future__ import annotations

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


def _set_key(place: dict[str, Any], key: str, value: Any) -> None:
    if value is None or value == "none":
        place.pop(key, None)
        return
    if key == "size":
        for other in ("size_min", "size_max"):
            place.pop(other, None)
    if key in {"profile", "crud_profile"}:
        for other in ("profile", "crud_profile"):
            place.pop(other, None)
    place[key] = value
