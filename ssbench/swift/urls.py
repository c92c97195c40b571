"""What a URL may be shown as, and which are refused: no password belongs in a stat file or a message."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from ssbench.errors import UsageError

#: Up to the last @: a password may hold a slash, which ends what a parser takes for the user-info.
_USER_INFO = re.compile(r"//.*@", re.DOTALL)


def shown(url: str) -> str:
    """Return the URL as a message may show it: quoted, without a user name and a password."""
    return repr(_USER_INFO.sub("//***@", url))


def refuse_user_info(url: str, what: str) -> None:
    """Raise UsageError where a URL has a user name or a password in it; ``what`` is for the text."""
    try:
        has_user_info = "@" in urlsplit(url).netloc
    except ValueError:
        return  # it is no URL, as whoever needs one will say
    if has_user_info:
        raise UsageError(
            f"{what} {shown(url)}: a user name or password in a URL is refused, because URLs are shown and"
            " saved"
        )
