"""A stand-in for an account of Swift whose listings are long: containers and objects are names only.

Served by :class:`fault_server.FaultServer`: ``server.rule = StandInAccount(...)``. It answers
listings in pages, and DELETE; what it does not do is anything else.
"""

from __future__ import annotations

import bisect
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from fault_server import Reply, Request

GONE = Reply(204)
MISSING = Reply(404)
CONFLICT = Reply(409)


class StandInAccount:
    """``containers`` maps each name to the names of its objects, which are in order; see :meth:`hold`."""

    def __init__(self, page: int = 10_000) -> None:
        self.containers: dict[str, list[str]] = {}
        self.page = page
        self.lock = threading.Lock()

    def hold(self, containers: Mapping[str, Iterable[str]]) -> None:
        """Have these containers and objects, and no others."""
        self.containers = {name: sorted(objects) for name, objects in containers.items()}

    def __call__(self, request: Request) -> Reply:
        parts = urlsplit(request.target)
        _, _version, _account, *rest = unquote(parts.path).split("/", 4)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        with self.lock:
            return self.answer(request, rest, query)

    def answer(self, request: Request, path: list[str], query: dict[str, str]) -> Reply:
        match request.method, path:
            case "GET", []:
                names = sorted(self.containers)
                return self.listing(names, query, lambda name: {"count": len(self.containers[name])})
            case "GET", [container] if container in self.containers:
                return self.listing(self.containers[container], query, lambda _: {"bytes": 1})
            case "DELETE", [container] if container in self.containers:
                if self.containers[container]:
                    return CONFLICT
                del self.containers[container]
                return GONE
            case "DELETE", [container, name] if name in self.containers.get(container, ()):
                objects = self.containers[container]
                del objects[bisect.bisect_left(objects, name)]
                return GONE
        return MISSING

    def listing(self, names: Any, query: Any, describe: Callable[[str], Any]) -> Reply:
        chosen = [name for name in names if name.startswith(query.get("prefix", ""))]
        first = bisect.bisect_right(chosen, query.get("marker", ""))
        limit = min(self.page, int(query.get("limit", self.page)))
        rows = [{"name": name, **describe(name)} for name in chosen[first : first + limit]]
        return Reply(200, json.dumps(rows).encode(), (("Content-Type", "application/json; charset=utf-8"),))
