"""Where the log lines of the embedded Swift go. Runs inside its processes only."""

from __future__ import annotations

import logging
from logging.handlers import SysLogHandler
from typing import Any


def log_to_stderr(
    conf: Any, name: str, to_console: bool, route: str, fmt: str | None, logger: logging.Logger, adapted: Any
) -> None:
    """Turn Swift's logging from syslog to this process's standard error, which is a file."""
    for handler in list(logger.handlers):
        if isinstance(handler, SysLogHandler):
            logger.removeHandler(handler)
            handler.close()
    if not logger.handlers:
        stderr = logging.StreamHandler()
        stderr.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(server)s: %(message)s"))
        logger.addHandler(stderr)
