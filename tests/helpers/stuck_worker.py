"""A real worker whose jobs never end: it claims them with each heartbeat, for ever."""

from __future__ import annotations

import sys

import gevent

from ssbench.cli.worker import main
from ssbench.worker.worker_run import WorkerRun


def never_end(*_: object) -> None:
    gevent.sleep(1e9)


WorkerRun.perform = never_end  # type: ignore[method-assign,assignment]  # that is what is stuck
sys.exit(main())
