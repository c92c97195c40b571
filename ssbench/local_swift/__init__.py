"""A real OpenStack Swift on loopback, for people and tests without a cluster.

::

    with LocalSwift() as swift:
        print(swift.auth_url, swift.user, swift.key)

What runs is the released Swift of PyPI (``pip install '.[swift]'`` in a clone) in child processes: a
proxy server, a server of accounts and containers, and an object server with one device; one replica.
A :class:`Layout` makes it larger. They need no root, no configuration outside their own folder and no
other service, and they end with the process that started them, however that ends.

:mod:`.cluster` starts and stops them and is each of these processes, :mod:`.configuration` says what there
is and writes what they read. :mod:`._serve` and :mod:`._cache` run inside the children: Swift brings
eventlet, whose patching does not go with gevent's.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ssbench.local_swift.cluster import LocalSwift, find_server_kinds, find_server_processes, start_swifts
    from ssbench.local_swift.configuration import Layout

__all__ = ["Layout", "LocalSwift", "find_server_kinds", "find_server_processes", "start_swifts"]

# Imported when asked for: the help of the sub-command does without.
_MODULES = {
    "Layout": "configuration",
    "LocalSwift": "cluster",
    "find_server_kinds": "cluster",
    "find_server_processes": "cluster",
    "start_swifts": "cluster",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
