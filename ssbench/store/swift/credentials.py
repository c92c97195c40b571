"""Credentials for Swift, and the session that authentication returns, as plain records."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from ssbench.base.errors import UsageError
from ssbench.base.untrusted import read_small_file

AuthVersion = Literal["none", "1.0", "2.0", "3", "cloud"]

#: Bytes of a bundle of CA certificates; those of systems have 200 to 500 kB.
_MAX_CERTIFICATE_BYTES = 10_000_000

#: Environment variables that hold secrets. Only a process that authenticates should inherit them.
SECRET_VARIABLES = frozenset(
    {"ST_KEY", "OS_PASSWORD", "OS_APPLICATION_CREDENTIAL_SECRET", "OS_AUTH_TOKEN", "OS_TOKEN"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """How and where to authenticate.

    With ``version`` "none" the ``token`` is used at the ``storage_urls`` without authentication. With "cloud"
    the ``plugin``, of keystoneauth, authenticates. With any other version ``storage_urls`` override what
    authentication returns, and ``token`` is a Keystone token to authenticate with. ``ca_file``,
    ``certificate`` and ``certificate_key`` are paths of PEM files. ``name`` is what errors begin with where
    a run has several credentials: ``side old``, ``credentials 3``.

    Raises UsageError for another version.
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
    token: str | None = field(default=None, repr=False)
    region_name: str | None = None
    service_type: str = "object-store"
    endpoint_type: str = "public"
    storage_urls: tuple[str, ...] = ()
    insecure: bool = False
    ca_file: str | None = None
    certificate: str | None = None
    certificate_key: str | None = None
    plugin: Any = field(default=None, repr=False)
    name: str = ""

    def __post_init__(self) -> None:
        if self.version not in get_args(AuthVersion):
            raise UsageError(
                f"version: expected one of {', '.join(get_args(AuthVersion))}, not {self.version!r}"
            )


@dataclass(frozen=True, slots=True)
class Session:
    """What requests need: one of ``storage_urls``, and the token if there is one."""

    storage_urls: tuple[str, ...]
    token: str | None = field(default=None, repr=False)
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


def session_in_account(session: Session, name: str) -> Session:
    """Return the session of a reseller admin in another account, of this name after the reseller's prefix.

    The prefix is that of the account of its storage URL, such as ``AUTH_``. Raises UsageError where that has
    none.
    """
    urls = []
    for url in session.storage_urls:
        before, _, own = url.rpartition("/")
        prefix, underscore, _ = own.partition("_")
        if not underscore or not before.partition("/v1")[1]:
            raise UsageError(
                f"accounts: {url} does not end in an account such as AUTH_test, from which the names of"
                " others could be made: give a list of credentials (--credentials)"
            )
        urls.append(f"{before}/{prefix}_{name}")
    return replace(session, storage_urls=tuple(urls))
