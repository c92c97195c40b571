"""One process of the embedded Swift: ``python -m ssbench.local_swift._serve ETC PARENT APP...``.

``ETC`` is the folder that :class:`~ssbench.local_swift.configuration.SwiftConfiguration` wrote,
``PARENT`` the process id of who started this one, each ``APP`` the name of a configuration file.
When all of them listen it writes the line ``ready`` to its standard output, or ``port NUMBER`` if
that port is taken.

It runs every release of Swift since 2.29, and is all that other Pythons than that of ssbench need of it.

The configuration files name two things here: where log lines go (:func:`log_to_stderr`), and a filter that
makes a server slow (:func:`make_faults_filter`).
"""

from __future__ import annotations

import ctypes
import errno
import json
import logging
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Mapping
from logging.handlers import SysLogHandler
from pathlib import Path
from typing import Any

import eventlet
import eventlet.hubs
import eventlet.wsgi
from eventlet import patcher
from eventlet.green import socket
from swift.common import constraints, storage_policy, utils, wsgi
from swift.common.ring import RingBuilder

try:
    from swift.common.http_protocol import SwiftHttpProtocol
except ImportError:  # until Swift 2.26
    SwiftHttpProtocol = wsgi.SwiftHttpProtocol

#: As newer releases have it.
_MAX_REQUEST_LINE_BYTES = 8192


def log_to_stderr(
    conf: Any, name: str, to_console: bool, route: str, fmt: str | None, logger: logging.Logger, adapted: Any
) -> None:
    """Turn Swift's logging from syslog to this process's standard error, which is a file."""
    _redirect(logger)


def log_access_to_stderr() -> None:
    """Do so for the access lines of a loaded proxy: Swift heeds no ``log_custom_handlers`` for them."""
    _redirect(logging.getLogger("proxy-access"))


def _redirect(logger: logging.Logger) -> None:
    for handler in list(logger.handlers):
        if isinstance(handler, SysLogHandler):
            logger.removeHandler(handler)
            handler.close()
    if not logger.handlers:
        stderr = logging.StreamHandler()
        formatter = utils.SwiftLogFormatter(
            "%(asctime)s.%(msecs)03d %(levelname)s %(server)s: %(message)s", "%Y-%m-%dT%H:%M:%S"
        )
        formatter.converter = time.gmtime  # as the times within the lines
        stderr.setFormatter(formatter)
        logger.addHandler(stderr)


# -- Slow servers ------------------------------------------------------------------------------------


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


# -- The process -------------------------------------------------------------------------------------


_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the thread that started it ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the request was made
        os._exit(1)


def write_rings(etc: Path) -> None:
    """Write the rings of ``rings.json``; every process does, and all write the same bytes."""
    for name, ring in json.loads((etc / "rings.json").read_text()).items():
        builder = RingBuilder(ring["part_power"], ring["replicas"], 0)
        for device in ring["devices"]:
            replication = {"replication_ip": device["ip"], "replication_port": device["port"]}
            builder.add_dev({"region": 1, "zone": 1, "weight": 1, "meta": "", **device, **replication})
        builder.rebalance(seed="ssbench")
        builder.get_ring().save(str(etc / f"{name}.ring.gz"))


def serve_apps(etc: Path, apps: list[str]) -> None:
    """Serve the apps until killed."""
    if hasattr(utils, "monkey_patch"):
        utils.monkey_patch()
    else:  # until Swift 2.30, whose programs did so
        patcher.monkey_patch(all=False, socket=True, select=True, thread=True)
    # Swift reads these from /etc/swift when it is imported, whatever swift_dir says.
    utils.set_swift_dir(str(etc))
    constraints.reload_constraints()
    storage_policy.reload_storage_policies()
    eventlet.hubs.use_hub(utils.get_hub())
    write_rings(etc)
    serving = []
    for name in apps:
        path = str(etc / f"{name}.conf")
        conf = wsgi.appconfig(path, name="main")
        address = (conf["bind_ip"], int(conf["bind_port"]))
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        try:
            listener = eventlet.listen(
                address, family, backlog=int(conf.get("backlog", 4096)), reuse_port=False
            )
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            print("port", address[1], flush=True)
            return
        # Accepted sockets inherit it; without it a small answer waits for the client's ACK.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        app = wsgi.loadapp(path)
        log_access_to_stderr()
        serving.append(
            eventlet.spawn(
                eventlet.wsgi.server,
                listener,
                app,
                utils.NullLogger(),
                protocol=SwiftHttpProtocol,
                custom_pool=eventlet.GreenPool(int(conf.get("max_clients", 4096))),
                socket_timeout=float(conf.get("client_timeout", 60)),
                keepalive=float(conf["keepalive_timeout"]) if "keepalive_timeout" in conf else True,
                capitalize_response_headers=False,
                url_length_limit=getattr(constraints, "MAX_REQUEST_LINE", _MAX_REQUEST_LINE_BYTES),
            )
        )
    print("ready", flush=True)
    for thread in serving:
        thread.wait()


def main() -> None:
    """Run as the module's program."""
    end_with_parent(int(sys.argv[2]))
    # Ctrl-C in a terminal is for the parent alone, which ends this process when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve_apps(Path(sys.argv[1]), sys.argv[3:])


if __name__ == "__main__":
    main()
