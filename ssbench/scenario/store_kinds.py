"""The kinds of stores that a scenario may be for: what each is called, and in what they differ.

Nothing asks which kind a store is, but for the property that it means. What a store can only say of itself
when it is asked is in :mod:`ssbench.store.contract`; its package is ``ssbench.store.NAME``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreKind:
    """A kind of stores, which have the same API."""

    #: As users write it; also the name of its package in ``ssbench.store``.
    name: str
    api: str  # its API in sentences: "not possible over ..."
    #: How its storage URLs begin, before http:// or https://. By itself, where it is ``of_swift``: its API on
    #: the server that has the account.
    prefix: str = ""
    of_swift: bool = False  # Swift's servers have the API, so that one account may be reached over it too
    account_in_url: bool = True  # a storage URL says which account it is; otherwise the key does
    least_part: int = 0  # bytes of the smallest segment of an object, the last one aside; 0: any
    takes_token: bool = False  # a token authenticates requests; otherwise a key signs them
    slows_by_503: bool = False  # it answers 503 (SlowDown) for a rate limit too
    #: Operations, or keys of them, that are not possible over it, with the reasons.
    lacks: Mapping[str, str] = field(default_factory=dict, compare=False)


SWIFT = StoreKind(name="swift", api="Swift's API", of_swift=True, takes_token=True)
S3 = StoreKind(
    name="s3",
    api="the S3 API",
    prefix="s3+",
    of_swift=True,
    account_in_url=False,
    least_part=5 * 2**20,
    slows_by_503=True,
    lacks={
        "public": "a bucket that anyone can read has no name of its own in requests here",
        "post": "the metadata of an object cannot be changed without writing it anew",
        "dlo": "objects of segments with a common prefix are Swift's own",
        "symlink": "links are Swift's own",
        "versions": "versions of objects are not asked for over the S3 API here",
        "head_account": "an account has no headers of its own",
        "policy": "the store chooses the storage policy of a bucket: leave it out",
    },
)

#: All of them, by their names.
STORE_KINDS = {each.name: each for each in (SWIFT, S3)}


def find_store_kind(url: str) -> StoreKind:
    """Return the kind of store that a storage URL is for."""
    found = [each for each in STORE_KINDS.values() if each.prefix and url.startswith(each.prefix)]
    return found[0] if found else SWIFT


def strip_store_prefix(url: str) -> str:
    """Return a storage URL as it is over HTTP."""
    return url.removeprefix(find_store_kind(url).prefix)


def list_account_apis() -> list[str]:
    """Return the names of the stores that are one account of a Swift, over each of its APIs."""
    return [name for name, kind in STORE_KINDS.items() if kind.of_swift]
