"""An embedded Swift's object server with one of the faults for which :class:`LocalSwift` has no place.

``LocalSwift(object_options={"use": "call:planted_object_server:make_app", "fault": ..., "device": ...,
"seconds": ...})``, with this folder in ``PYTHONPATH``. Each server has two worker processes, as Swift's have
several. ``worker``: one worker of the device's server waits wherever it opens an object. ``large``: the
device waits where it opens one of 200 kB or more. ``none``: nobody waits.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import eventlet
import eventlet.hubs
from swift.common import utils
from swift.obj import diskfile, server

from ssbench.local_swift._serve import end_with_parent

_LARGE = 200_000


def make_app(global_conf: dict[str, str], *, fault: str, device: str, seconds: str, **conf: str) -> Any:
    """Make the application, in each of the two workers: the socket is open by then, and nothing served."""
    parent = os.getpid()
    is_second = os.fork() == 0
    if is_second:
        end_with_parent(parent)
        eventlet.hubs.use_hub(utils.get_hub())
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the first says for both that they are ready
    is_slow = fault == "worker" and is_second and (Path(global_conf["devices"]) / device).exists()
    opened = diskfile.BaseDiskFile.open

    def open_later(self: Any, *arguments: Any, **options: Any) -> Any:
        if is_slow:
            eventlet.sleep(float(seconds))
        found = opened(self, *arguments, **options)
        is_large = int(found.get_metadata()["Content-Length"]) >= _LARGE
        if fault == "large" and is_large and Path(self._device_path).name == device:
            eventlet.sleep(float(seconds))
        return found

    diskfile.BaseDiskFile.open = open_later
    return server.app_factory(global_conf, **conf)
