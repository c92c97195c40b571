"""A server of some lines in a process of its own, as the stores of these benchmarks are."""

from __future__ import annotations

import multiprocessing
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from yardsticks import free_port


@contextmanager
def served(serve: Callable[..., None], *arguments: object) -> Iterator[str]:
    """Run ``serve(port, *arguments)`` in a new process until the block ends.

    Yields its URL without a path, once it takes connections.
    """
    port = free_port()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(port, *arguments), daemon=True)
    process.start()
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except ConnectionRefusedError:
                if time.monotonic() > deadline or not process.is_alive():
                    raise
                time.sleep(0.01)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.join()


def reads(name: str, seconds: float, users: int, objects: int) -> dict[str, Any]:
    """Return a scenario of reads of small objects."""
    return {
        "name": name,
        "sizes": [{"name": "tiny", "size_min": 100, "size_max": 100}],
        "initial_files": {"tiny": objects},
        "run_seconds": seconds,
        "crud_profile": [0, 1, 0, 0],
        "user_count": users,
        "container_count": 2,
    }
