"""Checking URLs, and showing them without the password that one may hold."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from ssbench.base.errors import UsageError

#: Up to the last @: a password may hold a slash, which ends what a parser takes for the user-info.
_USER_INFO_PATTERN = re.compile(r"//.*@", re.DOTALL)


def redact_url(url: str) -> str:
    """Return the URL as a message may show it: quoted, without a user name and a password."""
    return repr(_USER_INFO_PATTERN.sub("//***@", url))


def parse_http_url(url: str) -> SplitResult | None:
    """Return the parts of an absolute http or https URL; None where it is none."""
    if not url.isprintable() or " " in url:  # urlsplit drops some of these characters without a word
        return None
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if valid else None


def refuse_user_info(url: str, what: str) -> None:
    """Raise UsageError where a URL has a user name or a password in it; ``what`` is for the text."""
    try:
        has_user_info = "@" in urlsplit(url).netloc
    except ValueError:
        return  # not a URL, which is reported where one is needed
    if has_user_info:
        raise UsageError(
            f"{what} {redact_url(url)}: a user name or password in a URL is refused, because URLs are shown and"
            " saved"
        )
