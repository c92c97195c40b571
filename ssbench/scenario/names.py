"""Names of containers and objects, made from small numbers, and the pattern that finds the containers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: A number, or an array of them.
_Number = TypeVar("_Number", int, "npt.NDArray[np.int64]")

#: How the name of a container ends that keeps the versions of its objects.
_VERSIONS_SUFFIX = "_versions"

#: How the name of an object ends.
OBJECT_NUMBER_FORMAT = "%06d"

#: Bytes of the longest names that a Swift takes unless it is configured otherwise.
MAX_CONTAINER_NAME_BYTES = 256
MAX_OBJECT_NAME_BYTES = 1024

#: Parts of a path that clients and proxies resolve: a request for a container of this name would be for the
#: account, or for what is above it.
_DOT_SEGMENTS = {b".", b".."}


def container_name(base: str, number: int, policy: str | None) -> str:
    """Return ``<base>_<six or more digits>``, and ``_<policy>`` after it where one is set."""
    return f"{base}_{number:06d}_{policy}" if policy else f"{base}_{number:06d}"


def split_container_number(number: _Number, accounts: int) -> tuple[_Number, _Number]:
    """Return the account, and the number there, of a container of operations that use several accounts.

    They take turns, so that objects in all containers by turns are in all accounts by turns too.
    """
    return number % accounts, number // accounts


#: How the names of accounts of our own begin, unless the user names them.
DEFAULT_ACCOUNT_BASE = "ssbench"


def make_account_names(base: str, count: int) -> list[str]:
    """Return the names of accounts, from 1 on, without the prefix of the reseller."""
    return [f"{base}{number}" for number in range(1, count + 1)]


def versioned_container(container: str) -> str:
    """Return the name of the container beside one, which keeps the versions of its objects."""
    return container + _VERSIONS_SUFFIX


def container_pattern(base: str, policy: str | None) -> re.Pattern[str]:
    """Match whole names that :func:`container_name` makes for a base name.

    With a policy only those for that policy; without one those for any policy that Swift can have, whose
    name is letters, digits and hyphens, and those for none. The containers beside them, of
    :func:`versioned_container`, match too.
    """
    ending = f"_{re.escape(policy)}" if policy else "(_[A-Za-z0-9-]+)?"
    return re.compile(rf"{re.escape(base)}_[0-9]{{6,}}{ending}({_VERSIONS_SUFFIX})?\Z")


def object_name(size_class: str, number: int) -> str:
    """Return ``<size class>_<six or more digits>``."""
    return object_stem(size_class) + OBJECT_NUMBER_FORMAT % number


_NUMBERED_PATTERN = re.compile(r"(.+)_([0-9]{6,})\Z", re.DOTALL)


def parse_object_name(name: str) -> tuple[str, int]:
    """Return what :func:`object_name` made a name of; nothing and 0 where it did not."""
    match = _NUMBERED_PATTERN.match(name)
    if match is None or object_name(match[1], int(match[2])) != name:
        return "", 0
    return match[1], int(match[2])


def object_stem(size_class: str) -> str:
    """Return what the names of a size class begin with; the number follows."""
    return f"{size_class}_"


def run_mark(run_id: int) -> str:
    """``ssb-`` and eight hexadecimal digits: what the transaction ids of a run's requests end in."""
    return f"ssb-{run_id & 0xFFFFFFFF:08x}"


#: What the names of the marks of runs begin with; no object of a run can have such a name.
MARK_PREFIX = ".ssbench-run-"


def mark_name(run: str) -> str:
    """Return the name of the object that is the mark of a run (:mod:`ssbench.store.swift.marks`)."""
    return MARK_PREFIX + run


def object_prefix(group: str, size_class: str) -> str:
    """Return what the names of a size class begin with for the users of a group; empty: there are none."""
    return f"{group}-{size_class}" if group else size_class


def tagged_object_stem(size_class: str, tag: str) -> str:
    """Return what the names of a size class begin with in a run whose names are apart by ``tag``."""
    return f"{size_class}-{tag}" if tag else size_class


def may_be_container(name: bytes) -> bool:
    """Whether a container can have a name, and can be asked for by it."""
    return 0 < len(name) <= MAX_CONTAINER_NAME_BYTES and b"/" not in name and name not in _DOT_SEGMENTS
