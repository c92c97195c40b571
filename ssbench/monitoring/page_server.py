"""What browsers are served: the page of a run, and a stream of what changes in it.

The page is a document like that of the report, of the results that there are so far (:class:`LiveDocument`).
The path of its URL begins with a token.
"""

from __future__ import annotations

import hmac
import queue
import secrets
import signal
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Condition, Thread
from typing import Any

import msgspec
from msgspec.structs import replace

from ssbench.base.errors import StatFileError
from ssbench.comparison.archive import ArchiveEntry, compare_with_earlier, list_folder_runs
from ssbench.comparison.paired_sides import make_sided_run_document
from ssbench.document.elements import Document, Note, Tone, Verdict
from ssbench.document.renderers.html import PagePart, make_page, make_page_parts
from ssbench.monitoring.serving import STREAM_KEY, BoundedServer, StartResponse
from ssbench.monitoring.sink import PageMessage, decode_message
from ssbench.reports import products
from ssbench.reports.verdict_words import make_verdict_so_far
from ssbench.reports.writing import ReportOptions
from ssbench.results.reading import DamageError, open_results
from ssbench.results.run_description import RunSummary
from ssbench.statistics.summary import FollowedStatistics, summarize

#: A stream in which nothing changes has a sign of life after so many seconds, to find out who is gone.
_SIGN_OF_LIFE_SECONDS = 5.0

#: Milliseconds after which a browser connects again.
_RETRY_MILLISECONDS = 500

_PLAIN_HEADERS = [("Content-Type", "text/plain; charset=utf-8")]
_COMMON_HEADERS = [
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
]


@dataclass(frozen=True, slots=True)
class _PageState:
    """What the page shows."""

    number: int  # differs from one state to the next
    title: str
    parts: Sequence[PagePart]
    last: bool = False  # nothing follows this state


class PageApplication:
    """A WSGI application; :meth:`publish` may be called by one thread, while others answer."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()
        self._shown = _PageState(0, "ssbench", ())
        self._changed = Condition()
        self._streams = 0

    def publish(self, title: str, parts: Sequence[PagePart], *, last: bool = False) -> None:
        """Show these parts from now on."""
        with self._changed:
            self._shown = _PageState(self._shown.number + 1, title, parts, last)
            self._changed.notify_all()

    @property
    def read(self) -> bool:
        """Whether a browser follows the page now."""
        return self._streams > 0

    def wait_for_readers(self, seconds: float) -> bool:
        """Wait until all that follow the page have the last state; return whether they have."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._streams, seconds)

    def __call__(self, environ: dict[str, Any], start: StartResponse) -> Iterable[bytes]:
        """Answer a request; what is wrong about a path is not said."""
        _, token, *rest = [*str(environ.get("PATH_INFO", "")).split("/", 2), ""]
        if not hmac.compare_digest(token.encode("latin-1", "replace"), self._token):
            return _refuse_request(start, "404 Not Found")
        if environ.get("REQUEST_METHOD") != "GET":
            return _refuse_request(start, "405 Method Not Allowed", ("Allow", "GET, HEAD"))
        if rest[0] == "":
            return self._page(start)
        if rest[0] == "events":
            if not environ[STREAM_KEY]():
                return _refuse_request(start, "503 Service Unavailable", ("Retry-After", "5"))
            start("200 OK", [("Content-Type", "text/event-stream"), *_COMMON_HEADERS])
            return self._events()
        return _refuse_request(start, "404 Not Found")

    def _page(self, start: StartResponse) -> Iterable[bytes]:
        shown, nonce = self._shown, secrets.token_urlsafe(12)
        body = make_page(shown.title, shown.parts, address="events", nonce=nonce).encode()
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data:;"
            " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        kind = ("Content-Type", "text/html; charset=utf-8")
        start("200 OK", [kind, ("Content-Security-Policy", policy), *_COMMON_HEADERS])
        return [body]

    def _events(self) -> Iterator[bytes]:
        """Yield what changes; a browser that does not keep up skips what came meanwhile."""
        sent: dict[str, str] = {}
        number = -1
        with self._changed:
            self._streams += 1
        try:
            yield f"retry: {_RETRY_MILLISECONDS}\n\n".encode()
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._shown.number != number, _SIGN_OF_LIFE_SECONDS)  # noqa: B023
                    shown = self._shown
                if shown.number == number:
                    yield b":\n\n"
                    continue
                number = shown.number
                changed = {each.id: each.html for each in shown.parts if sent.get(each.id) != each.html}
                sent = {each.id: each.html for each in shown.parts}
                yield (
                    b"event: page\ndata: "
                    + msgspec.json.encode(
                        {"title": shown.title, "order": [*sent], "changed": changed, "last": shown.last}
                    )
                    + b"\n\n"
                )
                if shown.last:
                    return
        finally:
            with self._changed:
                self._streams -= 1
                self._changed.notify_all()


def _refuse_request(start: StartResponse, status: str, *headers: tuple[str, str]) -> Iterable[bytes]:
    start(status, [*_PLAIN_HEADERS, *_COMMON_HEADERS, *headers])
    return [f"{status[4:].lower()}\n".encode()]


# -- The document of a run that is under way -------------------------------------------------------


#: What the page says until the first benchmark begins.
WAITING_DOCUMENT = Document(
    "ssbench",
    [Note("Workers are waited for, containers are made, initial objects are uploaded. This page follows.")],
    Verdict(Tone.OPEN, "The benchmark has not begun yet"),
)


class LiveDocument:
    """Follows the stat files of runs, one after another.

    ``ended`` is whether the run of :meth:`tell` has ended, and that :meth:`look` has returned all of it.
    The sides of a run are compared by what is known of ``earlier`` ones.
    """

    def __init__(self) -> None:
        self.ended = False
        self.earlier: Sequence[ArchiveEntry] | None = None
        self._counting: FollowedStatistics | None = None
        self._so_far: RunSummary | None = None
        self._broken = False

    @property
    def begun(self) -> bool:
        """Whether there is a run to follow."""
        return self._counting is not None

    def tell(self, message: PageMessage) -> None:
        """Take note of what the master says; another file is another run."""
        if self._counting is None or self._counting.path != message.file:
            if self._counting is not None:
                self._counting.close()
            self._counting = FollowedStatistics(message.file, products.PAGE_GROUPS, over_time=True)
            self._broken, self.ended = False, False
        self._so_far = message.so_far

    def look(self) -> Document:
        """Count what is new, and return the document."""
        counting = self._counting
        if counting is None:
            return WAITING_DOCUMENT
        if not self._broken:
            try:
                while counting.some():
                    pass
            except (DamageError, OSError):
                self._broken = True
        # Of a run whose warm-up is to be found, the figures are known when all is.
        if self._broken or (counting.ended and counting.needs_all_twice):
            return self._whole(counting.path)
        numbers = counting.statistics(self._so_far)
        if numbers is None:
            return WAITING_DOCUMENT
        if not counting.ended:
            return replace(
                make_sided_run_document(numbers, self._options),
                verdict=make_verdict_so_far(numbers, self._options),
            )
        self.ended = True
        return make_sided_run_document(numbers, self._options)

    @property
    def _options(self) -> ReportOptions:
        if self._counting is None:
            return ReportOptions()
        return ReportOptions(compare_sides=partial(compare_with_earlier, self.earlier, self._counting.path))

    def without_end(self) -> Document | None:
        """Return the document of a run whose end never came; None where no report can be made of it."""
        if self._counting is None:
            return None
        try:
            return make_sided_run_document(
                summarize(open_results(self._counting.path), products.PAGE_GROUPS, over_time=True),
                self._options,
            )
        except StatFileError:
            return None

    def _whole(self, path: Path) -> Document:
        """Return the document of a file that is complete, read from its beginning."""
        try:
            results = open_results(path)
            numbers = summarize(results, products.PAGE_GROUPS, over_time=True)
        except StatFileError:
            return WAITING_DOCUMENT
        self.ended = numbers.complete
        made = make_sided_run_document(numbers, self._options)
        return made if self.ended else replace(made, verdict=make_verdict_so_far(numbers, self._options))


# -- The process ---------------------------------------------------------------------------------


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
