"""Redirects: where the master's requests are not sent, whatever an answer says.

requests and keystoneauth follow a redirect with all fields of the request, the token or the password among
them. A request to a store follows none, like those of workers: another address has other objects.
Authentication and ``/info`` follow one within the origin (scheme, host and port), such as that to a path with
a slash at its end.
"""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

import requests

from ssbench.base.text_values import parse_http_url, redact_url

#: Statuses that requests or keystoneauth would follow.
_REDIRECT_STATUSES = frozenset({301, 302, 303, 305, 307, 308})

_DEFAULT_PORTS = {"http": 80, "https": 443}

_MOST_SHOWN = 200


class RedirectRefusedError(requests.RequestException):
    """An answer redirects to another origin; ``status_code`` is its status, ``location`` its target."""

    def __init__(self, answer: requests.Response, location: str) -> None:
        super().__init__(describe_redirect(location))
        self.status_code = answer.status_code
        self.location = location


class NoRedirects:
    """Makes a :class:`requests.Session` return redirects as they are; their addresses are not even read."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Return None: nothing is followed."""
        return None


class RedirectsWithinOrigin:
    """Makes a :class:`requests.Session` raise RedirectRefusedError instead of leaving the origin of a URL."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Return where an answer redirects to, None for no redirect.

        requests asks this of every answer, also where the caller (keystoneauth) follows redirects itself.
        """
        location = resp.headers.get("location")
        if location is None or resp.status_code not in _REDIRECT_STATUSES:
            return None
        target = _find_address(resp.url, location)
        if target is None or _find_origin(target) != _find_origin(resp.url):
            resp.close()
            raise RedirectRefusedError(resp, location)
        resp.headers["location"] = target  # keystoneauth follows this, and none without a host
        return target


class FixedSession(NoRedirects, requests.Session):
    """A session of requests that follows no redirect."""


class OriginSession(RedirectsWithinOrigin, requests.Session):
    """A session of requests that follows redirects within the origin of a URL."""


def describe_redirect(location: str) -> str:
    """Return for people that a redirect was not followed."""
    return (
        f"a redirect to {redact_url(location):.{_MOST_SHOWN}}, which is not followed: it would take the"
        " credentials there"
    )


def _find_address(base: str, location: str) -> str | None:
    """Return the absolute address of a ``Location``; None if libraries may interpret it differently."""
    try:
        address = urljoin(base, location)
    except ValueError:
        return None
    # A host of its own for urllib3, user information for urllib.parse.
    ambiguous = "\\" in location or "@" in address.partition("?")[0] or not location.isprintable()
    return None if ambiguous or parse_http_url(address) is None else address


def _find_origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)
