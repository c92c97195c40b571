"""Reads by temporary URL: a key of the account for the time of a run, and a signature for each container.

The key stays with the master. A signature with an empty prefix is good for all objects of one container, and
for GET and HEAD only; it ends with the key, or at a moment of its own.
"""

from __future__ import annotations

import contextlib
import hmac
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any
from urllib.parse import quote, urlsplit

import requests
import swiftclient

from ssbench.base.errors import ClusterError, SsbenchError, UsageError
from ssbench.store.contract import StoreAccess
from ssbench.store.credentials import Session, SessionInUse
from ssbench.store.http.master_requests import CLIENT_ERRORS, describe_client_error, status_of_error
from ssbench.store.http.redirects import FixedSession
from ssbench.store.swift.containers import call_persistently, open_swift_connection

_log = logging.getLogger(__name__)

#: An account has room for two keys, and takes a signature with either.
_KEY_FIELDS = ("x-account-meta-temp-url-key", "x-account-meta-temp-url-key-2")

#: What keys of ours begin with; until when they are of use follows.
_KEY_PREFIX = "ssbench-"

#: Digests that signatures may have, the best first. Clusters of today take the first by default.
_DIGESTS = ("sha256", "sha512", "sha1")

#: Proxies may keep what they know of an account for a minute.
_PROPAGATION_SECONDS = 70.0
_PAUSE_SECONDS = 0.5

_UNAUTHORIZED_STATUS = 401

#: What a signature is refused with: Swift answers with the first, Ceph with the second.
_REFUSED_STATUSES = frozenset({401, 403})


class TemporaryKey:
    """A key of an account, from its making to :meth:`end`; ``until`` is when signatures end, in Unix time.

    Raises ClusterError where the account does not take a key, UsageError where it has no room for one.
    """

    def __init__(self, access: StoreAccess[Session], until: int) -> None:
        self._access = access
        self._in_use = SessionInUse(access.session, access.renew, threading.Lock())
        self._until = until
        self._key = f"{_KEY_PREFIX}{until}-{secrets.token_hex(16)}"
        found = self._ask(swiftclient.head_account)
        free = [field for field in _KEY_FIELDS if not found.get(field) or _is_key_over(found[field])]
        if not free:
            raise UsageError(
                "tempurl: the account has two keys for temporary URLs already "
                f"({' and '.join(field[2:] for field in _KEY_FIELDS)}), and a run needs one of its own: "
                "remove one of them"
            )
        self._field = free[0]
        self._ask(swiftclient.post_account, {self._field: self._key})

    def queries(
        self, containers: Iterable[str], features: Mapping[str, object], stop: Callable[[], bool]
    ) -> list[str]:
        """Return what makes the path of an object in each container a temporary URL, when it works.

        ``features`` is what the cluster says of its temporary URLs, ``stop`` says whether to wait no longer.
        Where it does not say which digests it takes, the best is found by trying. Raises UsageError where the
        cluster takes no digest that is known, or has no one path for its storage URLs; ClusterError where it
        does not take the signatures.
        """
        session = self._in_use.session
        paths = {urlsplit(url).path.rstrip("/") for url in session.storage_urls}
        if len(paths) > 1:
            raise UsageError(f"tempurl: the storage URLs have different paths: {', '.join(sorted(paths))}")
        allowed = features.get("allowed_digests", _DIGESTS)
        digests = [each for each in _DIGESTS if each in str(allowed)]
        if not digests:
            raise UsageError(f"tempurl: the cluster takes the digests {allowed}, not {' or '.join(_DIGESTS)}")
        path = paths.pop()
        # What is signed begins with the account. With a prefix, Ceph has all of the path in it.
        signed = dict.fromkeys([path[max(path.find("/v1/"), 0) :], path])
        places = list(containers)
        chosen = self._choose(session, places[0], [*product(digests, signed)], stop)
        return [self._query(each, *chosen) for each in places]

    def end(self) -> None:
        """Remove the key, unless the account has another one in its place; log a warning if that fails."""
        try:
            if self._ask(swiftclient.head_account).get(self._field) == self._key:
                self._ask(swiftclient.post_account, {self._field: ""})
        except SsbenchError as error:
            _log.warning(
                "The key for temporary URLs (%s) is still in the account, and of no use after %s: %s",
                self._field[2:],
                time.strftime("%Y-%m-%d", time.localtime(self._until)),
                error,
            )

    def _query(self, container: str, digest: str, path: str) -> str:
        text = f"GET\n{self._until}\nprefix:{path}/{container}/"
        signature = hmac.digest(self._key.encode(), text.encode(), digest).hex()
        return f"temp_url_sig={signature}&temp_url_expires={self._until}&temp_url_prefix="

    def _choose(
        self, session: Session, container: str, ways: list[tuple[str, str]], stop: Callable[[], bool]
    ) -> tuple[str, str]:
        """Return the first of the ways to sign, each a digest and a path, that all storage URLs take.

        Waits until they do.
        """
        ends_at = time.monotonic() + _PROPAGATION_SECONDS
        left = ways
        said = False
        for url in session.storage_urls:
            address = f"{url.rstrip('/')}/{quote(container, '')}/-?"
            while (refused := self._count_refused(address, session, container, left)) == len(left):
                if stop():
                    return left[0]
                if time.monotonic() > ends_at:
                    digests = " or ".join(dict.fromkeys(digest for digest, _ in left))
                    raise ClusterError(
                        f"{url}: the cluster has not taken a temporary URL (signed with {digests})"
                        " for a minute"
                    )
                if not said:
                    _log.info("Waiting until the cluster knows the key of its temporary URLs")
                said = True
                time.sleep(_PAUSE_SECONDS)
            left = left[refused:]
        if left[0][0] != ways[0][0]:
            _log.info("Temporary URLs are signed with %s: the cluster takes no better digest", left[0][0])
        return left[0]

    def _count_refused(
        self, address: str, session: Session, container: str, ways: list[tuple[str, str]]
    ) -> int:
        """Return how many ways are refused before one is not; what the URL is for does not matter."""
        for number, way in enumerate(ways):
            status = _read_status(
                address + self._query(container, *way), replace(self._access, session=session)
            )
            if status not in _REFUSED_STATUSES:
                # Perhaps the cluster has learnt of the key only now, and takes a better way too.
                return self._count_refused(address, session, container, ways[:number])
        return len(ways)

    def _ask(self, function: Any, *arguments: object) -> Any:
        refusals = 0
        while True:
            session = self._in_use.session
            try:
                with contextlib.closing(
                    open_swift_connection(replace(self._access, session=session), 0)
                ) as connection:
                    place = (connection.parsed_url, connection)
                    call = partial(function, connection.url, session.token, *arguments, http_conn=place)
                    return call_persistently(call)
            except CLIENT_ERRORS as error:
                refusals += 1
                if status_of_error(error) == _UNAUTHORIZED_STATUS and self._in_use.renew(session, refusals):
                    continue
                text = (
                    f"{session.storage_url}: the account's key for temporary URLs:"
                    f" {describe_client_error(error)}"
                )
                raise ClusterError(text) from None


def _is_key_over(key: str) -> bool:
    """Whether a key is of a run that ended long ago without removing it."""
    until = key.removeprefix(_KEY_PREFIX).partition("-")[0]
    return key.startswith(_KEY_PREFIX) and until.isdecimal() and int(until) < time.time()


def _read_status(address: str, access: StoreAccess[Session]) -> int:
    session = access.session
    verify: str | bool = False if session.insecure else (session.ca_file or True)
    try:
        with (
            FixedSession() as sender,
            sender.get(address, timeout=access.timeouts, verify=verify, stream=True) as answer,
        ):
            return answer.status_code
    except (requests.RequestException, OSError):
        return 0  # the run will say what is wrong
