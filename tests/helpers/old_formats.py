"""Makes stat files as ssbench 0.x wrote them, from the description of their formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgpack

OLD_TYPES = ("upload_object", "get_object", "update_object", "delete_object")

#: The content of a scenario file of those days.
SCENARIO: dict[str, Any] = {
    "name": "Old scenario",
    "sizes": [
        {"name": "tiny", "size_min": 4096, "size_max": 8192, "crud_profile": [10, 70, 10, 10]},
        {"name": "zero", "size_min": 0, "size_max": 0},
        {"name": "unused", "size_min": 1, "size_max": 2},
    ],
    "initial_files": {"tiny": 30, "zero": 10},
    "crud_profile": [60, 15, 20, 5],
    "user_count": 8,
    "operation_count": 100,
}


def state(**changes: Any) -> dict[str, Any]:
    """Return what was kept of a scenario: its content, and what the command line made of it."""
    kept = {"_scenario_data": SCENARIO, "name": SCENARIO["name"], "user_count": 8, "operation_count": 100}
    return {**kept, "container_base": "ssbench", "container_count": 5, "container_concurrency": 5, **changes}


def success(operation: int = 1, completed: float = 1e9, last: float = 0.02, **more: Any) -> dict[str, Any]:
    """Return a result map of a success."""
    first = {"first_byte_latency": 0.01 if operation == 1 else None}
    return {
        "type": OLD_TYPES[operation],
        "size_str": "tiny",
        "container": "ssbench_000001",
        "name": "tiny_000001",
        "worker_id": 0,
        "last_byte_latency": last,
        "completed_at": completed,
        "trans_id": f"tx{completed}",
        **first,
        **more,
    }


def failure(operation: int = 1, completed: float = 1e9, **more: Any) -> dict[str, Any]:
    """Return a result map of a failure, which has no latencies."""
    result = success(operation, completed, exception="error(111, 'Connection refused')", traceback="...")
    for key in ("last_byte_latency", "first_byte_latency", "trans_id"):
        del result[key]
    return {**result, **more}


def msgpack_file(batches: Iterable[list[Any]], **changes: Any) -> bytes:
    """Return the bytes of a file of 0.2.14 to 0.3.9, not compressed."""
    packer: Any = msgpack.Packer(use_bin_type=False)
    head = packer.pack(state(version="0.3.9", run_seconds=None, delete_after=None, **changes))
    return bytes(head) + b"".join(packer.pack(batch) for batch in batches)


class Pickler:
    """Writes protocol 0 as Python 2 did, numbering each object in case it comes again.

    ``share`` refers back to texts that were written before, as happens where Python kept only one of
    each; ``ordered`` is the module that OrderedDict comes from, None to write plain dictionaries.
    """

    def __init__(self, *, first: int = 1, share: bool = False, ordered: str | None = None) -> None:
        self._next = first
        self._share = share
        self._ordered = ordered
        self._known: dict[str, int] = {}

    def file(self, results: Iterable[Any], scenario: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield the pieces of a file of 0.0.1 to 0.2.13, not compressed."""
        yield f"(l{self._put()}".encode()
        yield f"ccopy_reg\n_reconstructor\n{self._put()}(cssbench.scenario\nScenario\n{self._put()}".encode()
        yield f"c__builtin__\nobject\n{self._put()}NtR{self._put()}".encode()
        yield self._dump(dict(scenario)) + b"ba"
        yield f"(l{self._put()}".encode()
        for result in results:
            yield self._dump(result) + b"a"
        yield b"a."

    def _put(self) -> str:
        number = self._next
        self._next += 1
        return f"p{number}\n"

    def _dump(self, value: Any) -> bytes:  # noqa: PLR0911  (a table of types)
        match value:
            case None:
                return b"N"
            case bool():
                return b"I%02d\n" % value
            case int():
                return b"I%d\n" % value if abs(value) < 2**63 else b"L%dL\n" % value
            case float():
                return f"F{value!r}\n".encode()
            case str():
                return self._text(value)
            case bytes():
                return b"S" + repr(value)[1:].encode() + b"\n" + self._put().encode()
            case dict() if self._ordered:
                items = self._dump([[key, entry] for key, entry in value.items()])
                return f"c{self._ordered}\nOrderedDict\n(".encode() + items + b"tR" + self._put().encode()
            case dict():
                head = f"(d{self._put()}".encode()
                return bytes(head) + b"".join(
                    self._dump(key) + self._dump(entry) + b"s" for key, entry in value.items()
                )
            case list():
                return f"(l{self._put()}".encode() + b"".join(self._dump(entry) + b"a" for entry in value)
        raise TypeError(value)

    def _text(self, text: str) -> bytes:
        if self._share and text in self._known:
            return b"g%d\n" % self._known[text]
        self._known[text] = self._next
        if text.isascii():
            data = b"S" + repr(text).encode()
        else:
            escaped = text.replace("\\", "\\u005c").replace("\n", "\\u000a")
            data = b"V" + escaped.encode("raw_unicode_escape")
        if not self._share:
            self._known.clear()
        return data + b"\n" + self._put().encode()


def pickle_file(results: Iterable[Any], pickler: Pickler | None = None, **changes: Any) -> bytes:
    """Return the bytes of a file of 0.0.1 to 0.2.13, not compressed."""
    return b"".join((pickler or Pickler()).file(results, state(**changes)))
