"""Credentials for Swift, the session that authentication returns, and when its token is renewed.

One policy decides when a token that Swift refuses is renewed, and how often a request is sent again with a
new one. The loop of a run asks on a thread (:mod:`ssbench.run.tokens`); those that make and delete containers
wait with :class:`SessionInUse`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from ssbench.base.errors import SsbenchError, UsageError
from ssbench.base.untrusted import read_small_file

AuthVersion = Literal["none", "1.0", "2.0", "3", "cloud", "s3"]

#: Bytes of a bundle of CA certificates; those of systems have 200 to 500 kB.
_MAX_CERTIFICATE_BYTES = 10_000_000

#: Environment variables that hold secrets. Only a process that authenticates should inherit them.
SECRET_VARIABLES = frozenset(
    {
        *("ST_KEY", "OS_PASSWORD", "OS_APPLICATION_CREDENTIAL_SECRET", "OS_AUTH_TOKEN", "OS_TOKEN"),
        *("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """How and where to authenticate. Raises UsageError for an unknown version.

    With "none" the token is used at the storage URLs without authentication. With "cloud" a plugin
    authenticates. With "s3" the user is an access key, the key its secret, and the token that of a session,
    where the key is a temporary one.
    """

    version: AuthVersion
    auth_url: str = ""
    user: str | None = None
    key: str | None = field(default=None, repr=False)
    user_id: str | None = None
    user_domain_id: str | None = None
    user_domain_name: str | None = None
    project_id: str | None = None
    project_name: str | None = None
    project_domain_id: str | None = None
    project_domain_name: str | None = None
    application_credential_id: str | None = None
    application_credential_secret: str | None = field(default=None, repr=False)
    #: With another version than "none", a Keystone token to authenticate with.
    token: str | None = field(default=None, repr=False)
    region_name: str | None = None
    service_type: str = "object-store"
    endpoint_type: str = "public"
    #: With other versions than "none", they override what authentication returns.
    storage_urls: tuple[str, ...] = ()
    insecure: bool = False
    ca_file: str | None = None  # path of a PEM file
    certificate: str | None = None  # path of a PEM file
    certificate_key: str | None = None  # path of a PEM file
    plugin: Any = field(default=None, repr=False)  # of keystoneauth, for "cloud"
    #: What errors begin with where a run has several credentials: ``side old``, ``credentials 3``.
    name: str = ""

    def __post_init__(self) -> None:
        if self.version not in get_args(AuthVersion):
            raise UsageError(
                f"version: expected one of {', '.join(get_args(AuthVersion))}, not {self.version!r}"
            )


@dataclass(frozen=True, slots=True)
class Session:
    """What requests need."""

    storage_urls: tuple[str, ...]  # each request uses one of them
    token: str | None = field(default=None, repr=False)  # None: requests need none
    insecure: bool = False
    ca_file: str | None = None

    @property
    def storage_url(self) -> str:
        """Return the first of the storage URLs."""
        return self.storage_urls[0]

    @property
    def ca_certificates(self) -> str | None:
        """Return the PEM text of ``ca_file``; raises UsageError when it cannot be read.

        It is ASCII, which OpenSSL requires: bundles have names in other characters between certificates.
        """
        if self.ca_file is None:
            return None
        try:
            text = read_small_file(Path(self.ca_file), _MAX_CERTIFICATE_BYTES).decode()
            return text.encode("ascii", "ignore").decode()
        except (OSError, ValueError) as error:
            raise UsageError(f"{self.ca_file}: expected CA certificates in PEM format: {error}") from None


# -- Renewing a token ------------------------------------------------------------------------------


_log = logging.getLogger(__name__)

#: A request fails when its token was refused more often than this.
_MAX_REFUSALS = 10

#: Tokens are renewed at most this often (seconds): a Swift that refuses each one gets no storm of requests.
RENEWAL_INTERVAL = 1.0

#: The longest pause between two attempts (seconds); the first is :data:`RENEWAL_INTERVAL`, then it doubles.
_MAX_PAUSE_SECONDS = 10.0


def is_sent_again(refusals: int) -> bool:
    """Return whether a request whose token was refused so often is sent again with a new one."""
    return refusals <= _MAX_REFUSALS


def pause_after_failures(failures: int) -> float:
    """Return the seconds before the next attempt at a new token, after this many failures in a row."""
    return min(RENEWAL_INTERVAL * 2.0 ** (failures - 1), _MAX_PAUSE_SECONDS)


class SessionInUse:
    """The session of several concurrent requests; the first one whose token is refused renews it.

    ``renew`` returns a new session or raises SsbenchError; None where there is no way to a new token.
    ``exclusive`` is a lock, and ``sleep`` waits, for the kind of concurrency: threads or greenlets.
    """

    def __init__(
        self,
        session: Session,
        renew: Callable[[], Session] | None,
        exclusive: AbstractContextManager[object],
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.session = session
        self._renew = renew
        self._exclusive = exclusive
        self._sleep = sleep
        self._clock = clock
        self._failures = 0
        self._next_at = float("-inf")

    def renew(self, refused: Session, refusals: int) -> bool:
        """Make sure that there is another session than the one refused; return whether to send again.

        ``refusals`` is how many tokens of this request were refused. Waits where the token was renewed just
        now. While the service that issues tokens fails, there are pauses between attempts, in which requests
        fail. Raises what ``renew`` raises.
        """
        if not is_sent_again(refusals):
            return False
        with self._exclusive:
            if self.session is not refused:
                return True
            wait = self._next_at - self._clock()
            if self._renew is None or (wait > 0 and self._failures):
                return False
            if wait > 0:
                self._sleep(wait)
            _log.info("Swift no longer takes the token; authenticating again")
            try:
                self.session = self._renew()
            except SsbenchError:
                self._failures += 1
                self._next_at = self._clock() + pause_after_failures(self._failures)
                raise
            self._failures = 0
            self._next_at = self._clock() + RENEWAL_INTERVAL
            return True
