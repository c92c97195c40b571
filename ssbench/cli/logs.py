"""Log lines of all programs: ``LEVEL:message`` on standard error."""

from __future__ import annotations

import logging
import sys


def set_up(*, verbose: bool = False, quiet: bool = False, time_stamps: bool = False) -> None:
    """Send log lines to standard error: INFO and above, DEBUG when verbose, WARNING when quiet."""
    stamped = verbose or time_stamps
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO,
        format="%(asctime)s %(levelname)s:%(message)s" if stamped else "%(levelname)s:%(message)s",
        force=True,
    )
    # Their debug lines hold tokens and passwords, their warnings repeat what we say ourselves.
    for name in ("swiftclient", "keystoneauth", "keystoneclient", "urllib3", "requests"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
