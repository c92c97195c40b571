"""The replacement for memcached in the embedded Swift: a dictionary, or a folder that proxies share.

Swift keeps tokens and what it knows of containers in ``swift.cache``; one proxy process needs no
server for that. Runs inside a child of :class:`~ssbench.local_swift.LocalSwift` only. The dictionary is
emptied by a restart of the proxy, which makes every token invalid, as tests of a 401 want it. Several
proxies need the folder: each must accept the other's tokens and learn of its new containers.
"""

from __future__ import annotations

import hashlib
import json
import os
import time as clock
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

#: Entries beyond which those whose time is over are looked for.
_PRUNE_ABOVE_ENTRIES = 10_000


if TYPE_CHECKING:  # Python 3.8, which runs old releases, cannot make it
    #: When an entry is over, in seconds since 1970, and its value as JSON.
    CacheEntry = tuple[float, str]


class CacheFolder:
    """Entries as files of a folder, for the dictionary's part in :class:`Cache`.

    Those whose time is over stay: there are a few for each account, container and token.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, key: str, default: CacheEntry) -> CacheEntry:
        """Return the entry, ``default`` where there is none."""
        try:
            expires, text = json.loads(self._file(key).read_text())
        except FileNotFoundError:
            return default
        return expires, text

    def __setitem__(self, key: str, entry: CacheEntry) -> None:
        new = self._file(f"{os.getpid()} {key}")
        new.write_text(json.dumps(entry))
        new.replace(self._file(key))  # another proxy may be reading it

    def pop(self, key: str, default: None) -> None:
        """Remove the entry if it is there."""
        self._file(key).unlink(missing_ok=True)

    def _file(self, key: str) -> Path:
        return self._path / hashlib.sha256(key.encode()).hexdigest()


class Cache:
    """The part of ``swift.common.memcached.MemcacheRing`` that Swift's proxy calls.

    Values go through JSON as they do on the way to memcached, so tuples come back as lists.
    """

    def __init__(self, entries: dict[str, CacheEntry] | CacheFolder) -> None:
        self._entries = entries

    def set(self, key: str, value: Any, serialize: bool = True, time: float = 0, **_: Any) -> None:
        """Keep ``value`` for ``time`` seconds from now (until a moment, if that is beyond 30 days)."""
        if isinstance(value, bytes):
            value = value.decode()
        now = clock.time()
        # memcached reads a time of more than 30 days as seconds since 1970.
        expires = float("inf") if not time else time if time > 30 * 86400 else now + time
        if isinstance(self._entries, dict) and len(self._entries) > _PRUNE_ABOVE_ENTRIES:
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
    """WSGI filter that puts one :class:`Cache` into every request."""

    def __init__(self, app: Callable[..., Any], cache: Cache) -> None:
        self.app = app
        self.cache = cache

    def __call__(self, env: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        env["swift.cache"] = self.cache
        return self.app(env, start_response)


def make_cache_filter(global_conf: Mapping[str, str], folder: str = "", **_: str) -> Any:
    """Make the filter for paste.deploy; without ``folder`` the cache is this process's own."""
    cache = Cache(CacheFolder(Path(folder)) if folder else {})
    return lambda app: CacheFilter(app, cache)
