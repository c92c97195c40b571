"""What pages of a listing must be, whoever asks for them, before anything that they name is read or deleted.

A store may ignore a prefix or a marker, a cache may give the answer to another question, and a page may come
again for ever. Names that were not asked for are not ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from ssbench.store.contract import Listing

#: A listing that has had so many pages, with fewer names a page than this, does not end. Swift has 10,000
#: names a page and the S3 API 1,000, unless a store is configured otherwise.
_MOST_THIN_PAGES = 1_000
_NAMES_OF_THIN_PAGES = 10

#: No account and no container that can be used for a benchmark has more names.
_MOST_NAMES = 100_000_000

_MOST_SHOWN = 80


class WrongPageError(ValueError):
    """A page has other names than were asked for, or none that come after the page before."""


def check_prefix(names: Iterable[str], listing: Listing | None) -> None:
    """Raise WrongPageError where a name does not begin with the prefix that was asked for."""
    if listing is None or not listing.prefix:
        return
    for name in names:
        if not name.startswith(listing.prefix):
            raise WrongPageError(
                f"names that do not begin with the prefix {listing.prefix!r}, as {name[:_MOST_SHOWN]!r}"
            )


class PageOrder:
    """Watches the pages of one listing: each has to come after the one before, with its names in order."""

    def __init__(self, most_names: int = _MOST_NAMES) -> None:
        self._most_names = most_names
        self._last = ""
        self._names = self._pages = 0

    def take(self, names: Sequence[str]) -> None:
        """Take the names of the next page; raises WrongPageError for one that repeats, or never ends."""
        if names and self._pages and names[0] <= self._last:
            raise WrongPageError(
                f"a page does not come after {self._last[:_MOST_SHOWN]!r}, where it had to begin"
            )
        # Code points have the order of their UTF-8 bytes.
        if any(one >= other for one, other in pairwise(names)):
            raise WrongPageError("names that are not in order, or twice in a page")
        self._pages += 1
        self._names += len(names)
        self._last = names[-1] if names else self._last
        thin = self._names < self._pages * _NAMES_OF_THIN_PAGES
        if self._names > self._most_names or (self._pages >= _MOST_THIN_PAGES and thin):
            raise WrongPageError(f"it does not end after {self._pages:,} pages with {self._names:,} names")
