"""Logging of all programs: ``LEVEL:message`` on standard error."""

from __future__ import annotations

import logging

from ssbench.run import terminal


class _StandardErrorHandler(logging.Handler):
    """Writes to the current ``sys.stderr``, which a progress bar replaces while it is shown."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
            if record.levelno <= logging.INFO and terminal.messages_disappear():
                terminal.write_passing(text.partition("\n")[0])
            else:
                terminal.write_line(text, record.levelname)
        except Exception:  # noqa: BLE001 - as logging.StreamHandler does
            self.handleError(record)


def set_up_logging(*, verbose: bool = False, quiet: bool = False, time_stamps: bool = False) -> None:
    """Send log lines to standard error: INFO and above, DEBUG when verbose, WARNING when quiet.

    From then on nothing that is written there can block or end the program.
    """
    terminal.set_up_terminal()
    stamped = verbose or time_stamps
    logging.basicConfig(
        handlers=[_StandardErrorHandler()],
        level=logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO,
        format="%(asctime)s %(levelname)s:%(message)s" if stamped else "%(levelname)s:%(message)s",
        force=True,
    )
    # Their DEBUG lines contain tokens and passwords; their warnings repeat our own messages.
    for name in ("swiftclient", "keystoneauth", "keystoneclient", "urllib3", "requests"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
