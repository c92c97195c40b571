"""What is wrong with a set-up, said from the store's answer to a first request.

The first request is a GET: the answer to a HEAD has no body, so that its 400 or 403 says nothing. The store
says itself which region it wants, so that none has to be guessed.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime

from ssbench.store.s3.answers import StoreFault, find_root
from ssbench.store.s3.signing import AccessKey

#: So many seconds the clocks of store and client may differ.
_SKEW_SECONDS = 15 * 60

_SKEWED = "RequestTimeTooSkewed"
_WRONG_SIGNATURE = "SignatureDoesNotMatch"
_MAX_LINE_CHARACTERS = 160

_NO_API = (
    "the answer was {}, and none of the S3 API: is it the right address, and does the server have that API"
    " (in Swift's proxy the filter s3api, before the one that authenticates by tokens)?"
)

#: Sentences by the code of an error.
_SENTENCES = {
    "InvalidAccessKeyId": "the store does not know the access key {!r}",
    "ExpiredToken": "the session token of the access key {!r} has expired",
    "InvalidToken": "the session token of the access key {!r} is refused",
    "AccessDenied": "the access key {!r} may not list its buckets",
}


def explain_other_answer(body: bytes) -> str | None:
    """Return what is wrong with the body of a success; None for a list of buckets."""
    root = find_root(body)
    if root == "ListAllMyBucketsResult":
        return None
    if root == "ListBucketResult":
        return (
            "the answer was the listing of one bucket, as where the host's name begins with that of a bucket:"
            " expected the name of the server alone"
        )
    return _NO_API.format("a success")


def find_region(fault: StoreFault | None) -> str | None:
    """Return the region that an error asks for; None where it is about something else."""
    if fault is None or fault.code not in {
        "AuthorizationHeaderMalformed",
        "AuthorizationQueryParametersError",
    }:
        return None
    return fault.fields.get("Region") or None


def explain_refusal(
    status: int,
    reason: str,
    fault: StoreFault | None,
    *,
    key: AccessKey,
    canonical: str,
    date: str | None,
    now: float,
    made_by_keystone: bool = False,
) -> str:
    """Return in one sentence why the first request was refused.

    ``reason`` is the status line, ``fault`` what the body says, None where that is no error of S3.
    ``canonical`` is what was signed, ``date`` the field ``Date`` of the answer, ``now`` the clock here (Unix
    time). ``made_by_keystone``: the key is right, because Keystone has just made it.
    """
    if fault is None:
        return _NO_API.format(reason)
    if fault.code == _SKEWED:
        return _explain_skew(date, now)
    if (region := find_region(fault)) is not None:
        return f"the region of the store is {region!r}, not {key.region!r}: set AWS_REGION={region}"
    if fault.code == _WRONG_SIGNATURE:
        return _explain_signature(fault, key, canonical, made_by_keystone)
    known = _SENTENCES.get(fault.code)
    return f"HTTP {status}, {fault}" if known is None else f"{known.format(key.access)} ({fault})"


def _explain_skew(date: str | None, now: float) -> str:
    try:
        ahead = now - parsedate_to_datetime(date or "").timestamp()
    except (TypeError, ValueError, OverflowError):
        return f"the clocks of the store and of this host differ by more than {_SKEW_SECONDS // 60} minutes"
    where = "ahead of" if ahead > 0 else "behind"
    return (
        f"the clock of this host is {abs(ahead) / 60:.0f} minutes {where} the store's, which takes a"
        f" difference of {_SKEW_SECONDS // 60} at most: check NTP"
    )


def _explain_signature(fault: StoreFault, key: AccessKey, canonical: str, made_by_keystone: bool) -> str:
    theirs = fault.fields.get("CanonicalRequest", "")
    if theirs and (other := find_first_difference(canonical, theirs)) is not None:
        return (
            "the request reached the store otherwise than it was signed, as where a proxy changes it: the"
            f" first line that differs is {other[0]!r} here and {other[1]!r} there"
        )
    if made_by_keystone:
        return (
            "the store refuses a key that Keystone has just made: in the pipeline of Swift's proxy authtoken"
            " has to come before s3api, and s3token between s3api and keystoneauth"
        )
    return (
        f"the secret key is not that of the access key {key.access!r}, or the store does not know this access"
        " key (Swift gives one answer for both)"
    )


def find_first_difference(ours: str, theirs: str) -> tuple[str, str] | None:
    """Return the first line in which two texts differ, of each; None where they do not."""
    # XML turns line ends of some texts into one kind.
    mine, other = ours.split("\n"), theirs.replace("\r\n", "\n").strip("\n").split("\n")
    for place in range(max(len(mine), len(other))):
        pair = tuple(lines[place] if place < len(lines) else "" for lines in (mine, other))
        if pair[0] != pair[1]:
            return pair[0][:_MAX_LINE_CHARACTERS], pair[1][:_MAX_LINE_CHARACTERS]
    return None
