"""What stands in for memcached in the embedded Swift: a dictionary in the proxy's process.

Swift keeps tokens and what it knows of containers in ``swift.cache``; one proxy process needs no
server for that. Runs inside a child of :class:`~ssbench.local_swift.LocalSwift` only. It is emptied
by a restart of the proxy, which makes every token invalid, as tests of a 401 want it.
"""

from __future__ import annotations

import json
import time as clock
from collections.abc import Callable, Iterable, Mapping
from typing import Any

#: Entries beyond which those whose time is over are looked for.
_MANY = 10_000


class DictionaryCache:
    """The part of ``swift.common.memcached.MemcacheRing`` that Swift's proxy calls.

    Values go through JSON as they do on the way to memcached, so tuples come back as lists.
    """

    def __init__(self) -> None:
        self._entries: dict[str, tuple[float, str]] = {}

    def set(self, key: str, value: Any, serialize: bool = True, time: float = 0, **_: Any) -> None:
        """Keep ``value`` for ``time`` seconds from now (until a moment, if that is beyond 30 days)."""
        if isinstance(value, bytes):
            value = value.decode()
        now = clock.time()
        # memcached reads a time of more than 30 days as seconds since 1970.
        expires = float("inf") if not time else time if time > 30 * 86400 else now + time
        if len(self._entries) > _MANY:
            self._entries = {name: entry for name, entry in self._entries.items() if entry[0] > now}
        self._entries[key] = (expires, json.dumps(value))

    def get(self, key: str, raise_on_error: bool = False) -> Any:
        """Return the value, None where there is none or its time is over."""
        expires, text = self._entries.get(key, (0.0, "null"))
        return json.loads(text) if expires > clock.time() else None

    def incr(self, key: str, delta: int = 1, time: float = 0) -> int:
        """Add ``delta`` to a counter that starts at 0 and is never negative; return what it is then."""
        value = max(0, int(self.get(key) or 0) + int(delta))
        self.set(key, value, time=time)
        return value

    def decr(self, key: str, delta: int = 1, time: float = 0) -> int:
        """Take ``delta`` from a counter."""
        return self.incr(key, -int(delta), time)

    def delete(self, key: str, server_key: str | None = None) -> None:
        """Forget a key."""
        self._entries.pop(key, None)

    def set_multi(self, mapping: Mapping[str, Any], server_key: str, **options: Any) -> None:
        """Keep several values."""
        for key, value in mapping.items():
            self.set(key, value, **options)

    def get_multi(self, keys: Iterable[str], server_key: str) -> list[Any]:
        """Return several values in the order of their keys."""
        return [self.get(key) for key in keys]


class CacheFilter:
    """WSGI filter that puts one :class:`DictionaryCache` into every request."""

    def __init__(self, app: Callable[..., Any]) -> None:
        self.app = app
        self.cache = DictionaryCache()

    def __call__(self, env: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        env["swift.cache"] = self.cache
        return self.app(env, start_response)


def filter_factory(global_conf: Mapping[str, str], **_: str) -> type[CacheFilter]:
    """Make the filter for paste.deploy."""
    return CacheFilter
