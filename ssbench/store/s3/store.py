"""Stores of the S3 API as a :class:`~ssbench.store.contract.Store`: s3api of a Swift, Ceph's RGW, SeaweedFS.

Credentials are those of the API, or those of the Swift behind it: account and user of version 1 are an access
key, and Keystone makes one for the time of the program. The first request is a GET, from whose answer the
region follows, or what is wrong with the set-up (:func:`explain_refusal`): the answer to a HEAD has no body,
so that its 400 or 403 says nothing. The store says itself which region it wants, so that none has to be
guessed.
"""

# ruff: noqa: D102 - the methods are documented in Store

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from msgspec import structs

from ssbench.base.errors import AuthenticationError, ClusterError, SsbenchError, UsageError
from ssbench.scenario.names import (
    DEFAULT_CONTAINER_BASE,
    container_name,
    container_pattern,
    longer_base_pattern,
)
from ssbench.scenario.operations import OperationSettings
from ssbench.scenario.store_kinds import S3
from ssbench.store.contract import (
    Capabilities,
    ClockBounds,
    Listing,
    ListingPage,
    ReadSignatures,
    RequestOutcome,
    Store,
    StoreAccess,
    StoreRequest,
)
from ssbench.store.credentials import Credentials, Session
from ssbench.store.http.master_requests import ContainerMaker, ask_over_http, make_containers
from ssbench.store.listing_pages import PageOrder, WrongPageError
from ssbench.store.s3.access_keys import KeystoneKeys
from ssbench.store.s3.dialect import (
    S3Dialect,
    StoreFault,
    explain_wrong_bucket,
    find_root,
    is_bucket_name,
    parse_fault,
    parse_s3_url,
)
from ssbench.store.s3.signing import RENEWED_AFTER_SECONDS, AccessKey, make_canonical_request

_log = logging.getLogger(__name__)

_DEFAULT_REGION = "us-east-1"

#: A container takes at most so many seconds more than two requests.
_MAKING_SECONDS = 16.0

#: The longest time that a signed read is good for, a week (seconds).
_MAX_SIGNED_SECONDS = 7 * 86400

_NOTHING_STATUS = 204

#: Features that operations need, and that every store of the API has in a way of its own.
_FEATURES = ("slo", "bulk_upload", "tempurl")


class S3Store:
    """The master's side of stores with the S3 API."""

    def __init__(self) -> None:
        self._made = KeystoneKeys()

    # -- sessions -----------------------------------------------------------------------------

    def authenticate(self, credentials: Credentials, timeout: float = 10.0) -> Session:
        """Find an access key and its region, with a first request."""
        try:
            return self._authenticate(credentials, (timeout, timeout))
        except SsbenchError as error:
            if not credentials.name:
                raise
            raise type(error)(f"{credentials.name}: {error}") from None

    def _authenticate(self, credentials: Credentials, timeouts: tuple[float, float]) -> Session:
        if credentials.storage_urls == (S3.prefix,):
            credentials = replace(credentials, storage_urls=(_find_api(credentials),))
        for url in credentials.storage_urls:
            parse_s3_url(url)
        of_keystone = credentials.version in {"2.0", "3", "cloud"}
        if credentials.version == "none":
            raise UsageError(
                "a token is no credential of the S3 API: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or"
                " the variables of Keystone or of Swift's version 1"
            )
        if of_keystone:
            access, secret = self._made.find(credentials)
        else:
            access, secret = credentials.user or "", credentials.key or ""
        key = AccessKey(
            access=access,
            secret=secret,
            region=credentials.region_name or _DEFAULT_REGION,
            session=(credentials.token or "") if credentials.version == "s3" else "",
        )
        session = Session(credentials.storage_urls, key.pack(), credentials.insecure, credentials.ca_file)
        # The region of a catalog's endpoint is no region of this API, but one that was given is checked.
        given = credentials.region_name is not None and not of_keystone
        return self._check(session, key, timeouts, asks_region=not given, of_keystone=of_keystone)

    def _check(
        self,
        session: Session,
        key: AccessKey,
        timeouts: tuple[float, float],
        *,
        asks_region: bool,
        of_keystone: bool,
    ) -> Session:
        """Return a session whose region is right; raises AuthenticationError with what is wrong."""
        url = session.storage_url
        outcome = self._look(StoreAccess(session, timeouts))
        if outcome.reply is None:
            raise ClusterError(f"{url}: {outcome.cause}")
        if outcome.cause is None:
            if wrong := explain_other_answer(outcome.reply.body):
                raise AuthenticationError(f"{url}: {wrong}")
            return session
        fault = parse_fault(outcome.reply.body)
        region = find_region(fault)
        if region is not None and asks_region and region != key.region:
            _log.info("%s: the region is %s", url, region)
            key = structs.replace(key, region=region)
            session = replace(session, token=key.pack())
            return self._check(session, key, timeouts, asks_region=False, of_keystone=of_keystone)
        if fault is None and b"HTTPS" in outcome.reply.body and url.startswith(f"{S3.prefix}http:"):
            raise AuthenticationError(f"{url}: the server expects TLS there: {S3.prefix}https://")
        _, host = parse_s3_url(url)
        sent = {"host": host, "x-amz-content-sha256": "UNSIGNED-PAYLOAD", "x-amz-date": ""}
        if key.session:
            sent["x-amz-security-token"] = key.session
        if fault is not None:
            # Our text has the moment that theirs has: the rest is what may differ.
            theirs = fault.fields.get("CanonicalRequest", "")
            sent["x-amz-date"] = theirs.partition("x-amz-date:")[2].partition("\n")[0]
        text = explain_refusal(
            outcome.status,
            f"HTTP {outcome.status} {outcome.detail}".strip(),
            fault,
            key=key,
            canonical=make_canonical_request("GET", "/", "", sent, "UNSIGNED-PAYLOAD"),
            date=outcome.reply.fields.get("date"),
            now=time.time(),
            made_by_keystone=of_keystone,
        )
        raise AuthenticationError(f"{url}: {text}")

    def _look(self, access: StoreAccess[Session]) -> RequestOutcome:
        """GET the list of buckets."""
        return self.ask(access, StoreRequest(method="GET"))

    def warn_of_route(self, credentials: Credentials, session: Session) -> None:
        from ssbench.store.swift.auth import is_proxied  # noqa: PLC0415 - of python-swiftclient's module

        if any(is_proxied(url.removeprefix(S3.prefix)) for url in session.storage_urls):
            _log.warning(
                "The proxy of the environment (http_proxy, https_proxy, all_proxy) is used to make and list"
                " buckets; requests for objects do not use it (no_proxy=HOST keeps the others from it)"
            )

    def in_account(self, session: Session, name: str) -> Session:
        raise UsageError(
            "accounts: an access key is that of one account: give a list of credentials (--credentials)"
        )

    def end(self) -> None:
        self._made.end()

    # -- what the store can do ----------------------------------------------------------------

    def capabilities(self, access: StoreAccess[Session]) -> Capabilities:
        """Return what every store of the API has; that of Swift is seen from the transaction id."""
        outcome = self._look(access)
        if outcome.reply is None:
            return Capabilities()
        # X-Delete-After is Swift's, and would be ignored elsewhere.
        is_swift = "x-trans-id" in outcome.reply.fields
        features: dict[str, dict[str, object]] = {name: {} for name in _FEATURES}
        return Capabilities(features, known=True, expires=is_swift, keeps_parts=is_swift)

    def container_base(self, session: Session, base: str) -> str:
        """Return a base name whose containers have hyphens: in place of the usual one that with a hyphen."""
        chosen = f"{base}-" if base == DEFAULT_CONTAINER_BASE else base
        if is_bucket_name(name := container_name(chosen, 0, None)):
            return chosen
        raise UsageError(
            f"{session.storage_url}: container_base: {explain_wrong_bucket(name)}; with a container_base that"
            f" ends in a hyphen, such as {DEFAULT_CONTAINER_BASE}-, names have hyphens"
        )

    def explain_lack(self, session: Session, operation: OperationSettings) -> list[str]:
        values = operation.values
        if operation.name == "slo" and values.get("segment_size", (S3.least_part,))[0] < S3.least_part:
            return [f"slo: segment_size: parts of less than {S3.least_part:,} bytes are refused by S3 stores"]
        if operation.name == "segment_size":
            return [*_explain_wrong_parts(values)]
        if operation.name == "list_account" and values:
            return [f"list_account: a listing of all buckets has no {', '.join(sorted(values))}"]
        return []

    def renewal_seconds(self, session: Session) -> float:
        return RENEWED_AFTER_SECONDS

    def clock(self, session: Session) -> ClockBounds | None:
        from ssbench.store.swift.containers import measure_clock_difference  # noqa: PLC0415 - one for both

        verify = False if session.insecure else (session.ca_file or True)
        return measure_clock_difference(f"{session.storage_url.removeprefix(S3.prefix)}/", verify)

    # -- requests -----------------------------------------------------------------------------

    def ask(
        self, access: StoreAccess[Session], request: StoreRequest, retry_seconds: float | None = None
    ) -> RequestOutcome:
        dialect = S3Dialect(access.session.storage_url, access.trans_id_extra)
        return ask_over_http(dialect, access, request, retry_seconds)

    def prepare(
        self,
        access: StoreAccess[Session],
        containers: Iterable[str],
        policy: str | None,
        concurrency: int,
        advance: Callable[[], None],
        *,
        check: Callable[[], None],
        headers: Mapping[str, str],
    ) -> None:
        if policy is not None:
            raise UsageError(
                f"policy: {policy!r} cannot be asked for over the S3 API, where the store chooses the storage"
                " policy of a bucket: leave it out"
            )

        def make(name: str) -> tuple[str, str | None]:
            return f"{access.session.storage_url}/{name}", self._ensure(access, name, headers)

        @contextlib.contextmanager
        def open_maker(_: int) -> Iterator[ContainerMaker]:
            yield make

        longest = _MAKING_SECONDS + 2 * sum(access.timeouts)
        make_containers(open_maker, containers, concurrency, advance, check, longest)

    def _ensure(self, access: StoreAccess[Session], name: str, headers: Mapping[str, str]) -> str | None:
        """Make a bucket unless it is there; return why it will not do.

        It is looked for by a listing of one entry, whose answer says what is wrong, unlike that to a HEAD.
        """
        if not is_bucket_name(name):
            return f"{explain_wrong_bucket(name)}; a container_base that ends in a hyphen makes such names"
        look = StoreRequest(method="GET", container=name, listing=Listing(limit=1))
        outcome = self.ask(access, look)
        if outcome.cause is None:
            return None
        if outcome.status == 404:
            new = StoreRequest(method="PUT", container=name, headers=tuple(headers.items()))
            outcome = self.ask(access, new)
            ours = outcome.reply is not None and b"BucketAlreadyOwnedByYou" in outcome.reply.body
            if outcome.cause is None or ours:
                return None
        # Names of buckets are those of all accounts of a store.
        taken = outcome.status in {403, 409}
        hint = ": is this bucket somebody else's? Choose another container_base" if taken else ""
        return f"{outcome.cause} {outcome.detail}".strip() + hint

    def find_containers(
        self, access: StoreAccess[Session], base: str, policy: str | None, *, longer: bool = False
    ) -> Iterator[tuple[str, int]]:
        """Yield the buckets of a base name; how many objects they have is not told: 0."""
        request = StoreRequest(method="GET", listing=Listing(limit=1000))
        outcome = self.ask(access, request)
        if outcome.cause is None and outcome.reply is not None:
            patterns = [make(base, policy) for make in (container_pattern, longer_base_pattern)[: 1 + longer]]
            page = _read_page(S3Dialect(access.session.storage_url), outcome, request)
            for name, _ in page.rows:
                if is_bucket_name(name) and any(pattern.match(name) for pattern in patterns):
                    yield name, 0
            return
        where = f"{access.session.storage_url}: buckets cannot be listed"
        raise ClusterError(f"{where}: {outcome.cause} {outcome.detail}".strip())

    def objects(
        self, access: StoreAccess[Session], container: str, *, expect: Callable[[int], None]
    ) -> Iterator[tuple[str, int]]:
        if not is_bucket_name(container):
            raise UsageError(explain_wrong_bucket(container))
        dialect = S3Dialect(access.session.storage_url)
        listing, count, order = Listing(limit=dialect.page_entries), 0, PageOrder()
        where = f"bucket {container!r} cannot be listed"
        while True:
            request = StoreRequest(method="GET", container=container, listing=listing)
            outcome = self.ask(access, request)
            if outcome.status == 404:
                raise ClusterError(f"{access.session.storage_url}: there is no bucket {container!r}")
            if outcome.cause is not None or outcome.reply is None:
                raise ClusterError(f"{where}: {outcome.cause} {outcome.detail}".strip())
            page = _read_page(dialect, outcome, request)
            try:
                order.take([name for name, _ in page.rows])
            except WrongPageError as error:
                raise ClusterError(f"{where}: {error}") from None
            # Their number is not known before the end.
            count += len(page.rows)
            expect(count)
            yield from page.rows
            if not page.following:
                return
            listing = structs.replace(listing, following=page.following)

    def sign(self, access: StoreAccess[Session], until: int) -> ReadSignatures:
        return PresignedReads(until)


def _read_page(dialect: S3Dialect, outcome: RequestOutcome, request: StoreRequest) -> ListingPage:
    """Return the page of a listing that was asked with success; a 204 has no body, which is an empty page."""
    if outcome.reply is None or outcome.status == _NOTHING_STATUS:
        return ListingPage([])
    return dialect.read_page(outcome.reply.body, request)


class PresignedReads:
    """Reads that have their signature in the query: each object has one of its own, which workers make."""

    def __init__(self, until: int) -> None:
        self._seconds = max(1, min(_MAX_SIGNED_SECONDS, until - int(time.time())))

    def queries(
        self,
        containers: Iterable[str],
        features: Mapping[str, object],
        stop: Callable[[], bool],
    ) -> list[str]:
        """Return for how many seconds a signature is good, for each container."""
        return [str(self._seconds) for _ in containers]

    def end(self) -> None:
        """Do nothing: signatures end by themselves."""


def _explain_wrong_parts(values: Mapping[str, Any]) -> Iterator[str]:
    """Say why objects of a size class cannot be in parts."""
    if values["segments"] == "dynamic":
        yield f"segments: dynamic: {S3.lacks['dlo']}"
    elif values["segment_size"] < min(S3.least_part, values["size_max"]):
        yield f"segment_size: parts of less than {S3.least_part:,} bytes are refused by S3 stores"


def _find_api(credentials: Credentials) -> str:
    """Return the address of the S3 API of the server that has the account of credentials."""
    from ssbench.store.swift.auth import authenticate_swift  # noqa: PLC0415 - brings python-swiftclient

    parts = urlsplit(authenticate_swift(replace(credentials, storage_urls=(), name="")).storage_url)
    return f"{S3.prefix}{parts.scheme}://{parts.netloc}"


# -- what is wrong with a set-up -----------------------------------------------------------------


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


STORE_CLASS: type[Store[Credentials, Session]] = S3Store
