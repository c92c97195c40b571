"""A filter that makes a server of the embedded Swift slow. Runs inside its processes only."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Mapping
from typing import Any

import eventlet
from eventlet import patcher

_sleep_blocking = patcher.original("time").sleep


class ServerDelays:
    """What :func:`ssbench.local_swift.configuration.write_slow_targets` wrote for one server."""

    def __init__(self, path: str, server: str) -> None:
        self._path = path
        self._server = server
        self._version = (0, 0)
        self._slow: list[dict[str, Any]] = []

    def wait(self, device: str, *places: str) -> None:
        """Wait as long as a request to ``device`` is to at one of ``places``."""
        for slow in self._read():
            if (
                slow["target"] in (device, self._server)
                and slow["where"] in places
                and random.random() < slow["share"]
            ):
                (_sleep_blocking if slow["where"] == "block" else eventlet.sleep)(slow["delay"])

    def _read(self) -> list[dict[str, Any]]:
        status = os.stat(self._path)  # noqa: PTH116 - with each request
        version = (status.st_ino, status.st_mtime_ns)
        if version != self._version:
            with open(self._path, encoding="utf-8") as file:  # noqa: PTH123
                self._slow = json.load(file)
            self._version = version
        return self._slow


class FaultsFilter:
    """WSGI filter that waits before the application sees the request."""

    def __init__(self, app: Callable[..., Any], delays: ServerDelays) -> None:
        self.app = app
        self.delays = delays

    def __call__(self, env: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        self.delays.wait(env["PATH_INFO"].split("/", 2)[1], "request")
        return self.app(env, start_response)


def _delay_diskfiles(delays: ServerDelays) -> None:
    """Have the classes of Swift that keep objects in files wait."""
    from swift.obj import diskfile  # noqa: PLC0415 - a proxy does without it

    opened = diskfile.BaseDiskFile.open

    def open_later(self: Any, *args: Any, **options: Any) -> Any:
        delays.wait(os.path.basename(self._device_path), "open", "block")  # noqa: PTH119
        return opened(self, *args, **options)

    diskfile.BaseDiskFile.open = open_later

    def delayed(put: Callable[..., Any]) -> Callable[..., Any]:
        def put_later(self: Any, *args: Any, **options: Any) -> Any:
            delays.wait(os.path.basename(self._diskfile._device_path), "commit")  # noqa: PTH119
            return put(self, *args, **options)

        return put_later

    for writer in (diskfile.DiskFileWriter, diskfile.ECDiskFileWriter):
        writer.put = delayed(writer.put)


def make_faults_filter(global_conf: Mapping[str, str], path: str, server: str, **_: str) -> Any:
    """Make the filter for paste.deploy; ``server`` is the name of the process."""
    delays = ServerDelays(path, server)
    if server.startswith("object"):
        _delay_diskfiles(delays)
    return lambda app: FaultsFilter(app, delays)
