"""What browsers are served: the page, and a stream of what changes in it. The path begins with a token."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Condition
from typing import Any

import msgspec

from ssbench.base.serving import STREAM_KEY, StartResponse
from ssbench.document.renderers.html import PagePart, make_page

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
    """What the page shows: ``number`` differs from one state to the next; nothing follows the ``last``."""

    number: int
    title: str
    parts: Sequence[PagePart]
    last: bool = False


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
