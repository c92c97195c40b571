"""Log lines of all programs: ``LEVEL:message`` on standard error."""

from __future__ import annotations

import logging
import re

from ssbench.screen import terminal

#: What would move the cursor of a terminal; names come from files and from other hosts.
_CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class _Handler(logging.Handler):
    """Writes to what ``sys.stderr`` is at that moment, which a bar replaces while it is drawn."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            terminal.write_line(_CONTROL_CHARACTERS.sub("\ufffd", self.format(record)))
        except Exception:  # noqa: BLE001 - as the handlers of the library do
            self.handleError(record)


def set_up(*, verbose: bool = False, quiet: bool = False, time_stamps: bool = False) -> None:
    """Send log lines to standard error: INFO and above, DEBUG when verbose, WARNING when quiet.

    Nothing that is written there can hold up or end the program from then on.
    """
    terminal.set_up()
    stamped = verbose or time_stamps
    logging.basicConfig(
        handlers=[_Handler()],
        level=logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO,
        format="%(asctime)s %(levelname)s:%(message)s" if stamped else "%(levelname)s:%(message)s",
        force=True,
    )
    # Their debug lines hold tokens and passwords, their warnings repeat what we say ourselves.
    for name in ("swiftclient", "keystoneauth", "keystoneclient", "urllib3", "requests"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
