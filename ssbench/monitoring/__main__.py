"""The process that serves the page of a run, started by :mod:`ssbench.monitoring.sink`."""

from __future__ import annotations

import queue
import signal
import socket
import sys
import time
from pathlib import Path
from threading import Thread

from ssbench.base.serving import BoundedServer
from ssbench.comparison.archive import list_folder_runs
from ssbench.document.elements import Document
from ssbench.document.renderers.html import make_page_parts
from ssbench.monitoring.messages import PageMessage, decode_message
from ssbench.monitoring.page_server import LiveDocument, PageApplication

#: Seconds from one state of the page to the next, at least, and so many times as long as making one takes.
_STATE_SECONDS, _STATE_COST_FACTOR = 1.0, 9.0

#: Seconds in which the last state is to be made, and sent to those who read.
_LAST_MAKE_SECONDS, _LAST_SEND_SECONDS = 10.0, 5.0


def main(descriptor: int, folder: Path | None) -> None:
    """Serve at a socket; standard input has the token, and then messages until the program ends.

    ``folder`` has the earlier runs.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the master ends this by closing standard input
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    site = PageApplication(sys.stdin.buffer.readline().decode().strip())
    live = LiveDocument()
    document = _publish_page(site, live)
    server = BoundedServer(site, socket.socket(fileno=descriptor), "page")
    messages: queue.SimpleQueue[PageMessage | None] = queue.SimpleQueue()
    Thread(target=_read_messages, args=(messages,), name="messages", daemon=True).start()
    # Before the benchmark begins, from which it would take CPU.
    live.earlier = list_folder_runs(folder)
    due = time.monotonic()
    while (message := _next_message(messages, due)) is not None:
        if isinstance(message, PageMessage):
            live.tell(message)
        if (began := time.monotonic()) >= due:
            document = _publish_page(site, live)
            due = began + max(_STATE_SECONDS, _STATE_COST_FACTOR * (time.monotonic() - began))
    _show_end(site, live, document)
    server.end()


def _next_message(messages: queue.SimpleQueue[PageMessage | None], due: float) -> PageMessage | bool | None:
    """Return the next message, None for the end, and True when it is time to look."""
    try:
        return messages.get(timeout=max(0.0, due - time.monotonic()))
    except queue.Empty:
        return True


def _read_messages(messages: queue.SimpleQueue[PageMessage | None]) -> None:
    """Hand over the messages; the body of a thread."""
    for line in sys.stdin.buffer:
        messages.put(decode_message(line))
    messages.put(None)


def _publish_page(site: PageApplication, live: LiveDocument, *, last: bool = False) -> Document:
    document = live.look()
    site.publish(document.tab, make_page_parts(document), last=last)
    return document


def _show_end(site: PageApplication, live: LiveDocument, document: Document) -> None:
    """Show the end of the run to those who look at the page."""
    if not site.read:
        return
    end = time.monotonic() + _LAST_MAKE_SECONDS
    while live.begun and not live.ended and time.monotonic() < end:
        time.sleep(0.1)
        document = live.look()
    if live.begun and not live.ended:  # the master was killed
        document = live.without_end() or document
    site.publish(document.tab, make_page_parts(document), last=True)
    site.wait_for_readers(_LAST_SEND_SECONDS)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
