"""One process of the embedded Swift: ``python -m ssbench.local_swift._serve ETC PARENT APP...``.

``ETC`` is the folder that :class:`~ssbench.local_swift.configuration.SwiftConfiguration` wrote,
``PARENT`` the process id of who started this one, each ``APP`` the name of a configuration file.
When all of them listen it writes the line ``ready`` to its standard output, or ``port NUMBER`` if
that port is taken.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import sys
from pathlib import Path

import eventlet
import eventlet.hubs
import eventlet.wsgi
from eventlet.green import socket
from swift.common import constraints, storage_policy, utils, wsgi
from swift.common.http_protocol import SwiftHttpProtocol
from swift.common.ring import RingBuilder

from ssbench.local_swift import _log

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
    utils.monkey_patch()
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
            listener = eventlet.listen(address, family, backlog=4096, reuse_port=False)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            print("port", address[1], flush=True)
            return
        # Accepted sockets inherit it; without it a small answer waits for the client's ACK.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        app = wsgi.loadapp(path)
        _log.log_access_to_stderr()
        serving.append(
            eventlet.spawn(
                eventlet.wsgi.server,
                listener,
                app,
                utils.logs.NullLogger(),
                protocol=SwiftHttpProtocol,
                custom_pool=eventlet.GreenPool(4096),
                socket_timeout=60.0,
                capitalize_response_headers=False,
                url_length_limit=constraints.MAX_REQUEST_LINE,
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
