"""Where the log lines of the embedded Swift go. Runs inside its processes only."""

from __future__ import annotations

import logging
import time
from logging.handlers import SysLogHandler
from typing import Any

from swift.common.utils.logs import SwiftLogFormatter


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
        formatter = SwiftLogFormatter(
            "%(asctime)s.%(msecs)03d %(levelname)s %(server)s: %(message)s", "%Y-%m-%dT%H:%M:%S"
        )
        formatter.converter = time.gmtime  # as the times within the lines
        stderr.setFormatter(formatter)
        logger.addHandler(stderr)
