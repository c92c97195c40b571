"""The options and environment variables of authentication, as the ``swift`` command has them.

Values from the environment are looked up when the options have been parsed and are never defaults
of the parser, so ``--help`` cannot show a password.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from ssbench.errors import UsageError
from ssbench.swift.credentials import Credentials, Session, Version, is_http_url
from ssbench.swift.urls import refuse_user_info, shown

_log = logging.getLogger(__name__)

#: The version that each ``--os-auth-type`` means; None where others have to tell.
_AUTH_TYPES: dict[str, Version | None] = {
    "password": None,
    "v1password": "1.0",
    "v2password": "2.0",
    "v3password": "3",
    "v3token": "3",
    "v3applicationcredential": "3",
}
#: What version 1 needs.
_TRIO = ("ST_AUTH", "ST_USER", "ST_KEY")
_VERSIONS: dict[str, Version] = {"1": "1.0", "1.0": "1.0", "2": "2.0", "2.0": "2.0", "3": "3", "3.0": "3"}


class _Option(NamedTuple):
    flags: tuple[str, ...]
    variable: str
    metavar: str
    help: str

    @property
    def destination(self) -> str:
        """The attribute of the namespace, with a prefix that keeps clear of the sub-commands' own."""
        return "auth_option_" + self.variable


def _keystone(flag: str, metavar: str, text: str) -> _Option:
    return _Option((flag,), flag.removeprefix("--").upper().replace("-", "_"), metavar, text)


_SWIFT = (
    _Option(("-A", "--auth-url"), "ST_AUTH", "URL", "where to authenticate"),
    _Option(("-U", "--user"), "ST_USER", "USER", "account and user, as ACCOUNT:USER"),
    _Option(("-K", "--key"), "ST_KEY", "KEY", "key of the user"),
    _Option(
        ("-V", "--auth-version"), "ST_AUTH_VERSION", "VERSION", "1, 2 or 3 (default: what the rest says)"
    ),
)
_KEYSTONE = (
    _keystone("--os-cloud", "NAME", "cloud of a clouds.yaml, instead of what follows (needs openstacksdk)"),
    _keystone("--os-auth-url", "URL", "where to authenticate"),
    _keystone("--os-username", "NAME", "user"),
    _keystone("--os-user-id", "ID", "user, by id"),
    _keystone("--os-password", "PASSWORD", "password of the user"),
    _keystone("--os-user-domain-id", "ID", "domain of the user, by id"),
    _keystone("--os-user-domain-name", "NAME", "domain of the user"),
    _keystone("--os-project-id", "ID", "project, by id"),
    _keystone("--os-project-name", "NAME", "project"),
    _keystone("--os-project-domain-id", "ID", "domain of the project, by id"),
    _keystone("--os-project-domain-name", "NAME", "domain of the project"),
    _keystone("--os-tenant-id", "ID", "project, by id, in the words of version 2.0"),
    _keystone("--os-tenant-name", "NAME", "project, in the words of version 2.0"),
    _keystone("--os-auth-type", "TYPE", "one of " + ", ".join(_AUTH_TYPES)),
    _keystone("--os-application-credential-id", "ID", "application credential"),
    _keystone("--os-application-credential-secret", "SECRET", "secret of the application credential"),
    _keystone("--os-auth-token", "TOKEN", "token to authenticate with; with a storage URL, to use as it is"),
    _keystone("--os-storage-url", "URL", "the same as --storage-url"),
    _keystone("--os-region-name", "NAME", "region of the object store"),
    _keystone("--os-service-type", "TYPE", "what it is called in the catalog (default: object-store)"),
    _keystone("--os-endpoint-type", "TYPE", "public, internal or admin (default: public)"),
    _keystone("--os-interface", "TYPE", "the same as --os-endpoint-type"),
    _keystone("--os-cacert", "FILE", "CA certificates to trust, in PEM format"),
    _keystone("--os-cert", "FILE", "client certificate for authentication, in PEM format"),
    _keystone("--os-key", "FILE", "private key of the client certificate"),
    _keystone("--os-identity-api-version", "VERSION", "the same as --auth-version"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add every option of authentication to the parser of a sub-command."""
    group = parser.add_argument_group(
        "authentication",
        "Each value may come from its environment variable instead, where other users of the machine cannot "
        "see it. Version 1 needs -A, -U and -K; without one of them version 2 or 3 (Keystone) is taken.",
    )
    for option in _SWIFT:
        _add(group, option)
    group.add_argument(
        "-S",
        "--storage-url",
        action="append",
        metavar="URL",
        dest="auth_storage_urls",
        help="use this storage URL, not the one authentication returns; may be repeated, each request takes "
        "one at random",
    )
    group.add_argument(
        "-T",
        "--token",
        metavar="TOKEN",
        dest="auth_token",
        help="with -S: use this token and do not authenticate",
    )
    group.add_argument(
        "--insecure",
        action="store_true",
        dest="auth_insecure",
        help="do not verify the certificates of servers [SWIFTCLIENT_INSECURE]",
    )
    group = parser.add_argument_group("authentication by Keystone")
    for option in _KEYSTONE:
        _add(group, option)


def _add(group: argparse._ArgumentGroup, option: _Option) -> None:
    group.add_argument(
        *option.flags,
        metavar=option.metavar,
        dest=option.destination,
        help=f"{option.help} [{option.variable}]",
    )


def from_arguments(arguments: argparse.Namespace, environ: Mapping[str, str]) -> Credentials:
    """Make credentials of the options and, where one is not given, of the environment.

    Raises UsageError, which names what is missing or wrong and never a password.
    """
    given = {option.variable: getattr(arguments, option.destination) for option in (*_SWIFT, *_KEYSTONE)}
    values = {name: value or environ.get(name) or None for name, value in given.items()}
    files = {name: _readable(values[name], name) for name in ("OS_CACERT", "OS_CERT", "OS_KEY")}
    insecure = arguments.auth_insecure or environ.get("SWIFTCLIENT_INSECURE", "").lower() in {
        "true",
        "1",
        "yes",
        "on",
        "t",
        "y",
    }
    storage_urls = tuple(arguments.auth_storage_urls or filter(None, [values["OS_STORAGE_URL"]]))
    for url in storage_urls:
        _check_url(url, "storage URL")
    token = arguments.auth_token or values["OS_AUTH_TOKEN"]
    for secret in (
        values["ST_KEY"],
        values["OS_PASSWORD"],
        values["OS_APPLICATION_CREDENTIAL_SECRET"],
        token,
    ):
        if secret and not secret.isprintable():
            raise UsageError(
                "a key, password, secret or token has a line end or another control character in it"
            )
    if arguments.auth_token and not storage_urls:
        raise UsageError("-T/--token without -S/--storage-url: where to use the token is not known")
    urls = tuple(url.rstrip("/") for url in storage_urls)
    if urls and token:
        return Credentials(
            version="none",
            token=token,
            storage_urls=urls,
            insecure=insecure,
            ca_file=files["OS_CACERT"],
        )
    endpoint_types = ("OS_ENDPOINT_TYPE", "OS_INTERFACE")
    endpoint = Credentials(
        version="cloud",
        region_name=values["OS_REGION_NAME"],
        service_type=values["OS_SERVICE_TYPE"] or "",
        endpoint_type=next(
            filter(None, (source[name] for source in (given, values) for name in endpoint_types)), ""
        ),
        storage_urls=urls,
        insecure=insecure,
        ca_file=files["OS_CACERT"],
        certificate=files["OS_CERT"],
        certificate_key=files["OS_KEY"],
    )
    if cloud := _cloud(given, values):
        from ssbench.swift.cloud import from_cloud

        return from_cloud(cloud, endpoint)
    auth_url = values["ST_AUTH"] or values["OS_AUTH_URL"]
    if auth_url:
        _check_url(auth_url, "authentication URL")
    version = _version(given, values, auth_url or "", environ)
    user = values["ST_USER"] or values["OS_USERNAME"]
    key = values["ST_KEY"] or values["OS_PASSWORD"]
    _check_complete(version, values)
    return replace(
        endpoint,
        version=version,
        service_type=endpoint.service_type or "object-store",
        endpoint_type=endpoint.endpoint_type or "public",
        auth_url=auth_url or "",
        user=user,
        key=key,
        user_id=values["OS_USER_ID"],
        user_domain_id=values["OS_USER_DOMAIN_ID"],
        user_domain_name=values["OS_USER_DOMAIN_NAME"],
        project_id=values["OS_PROJECT_ID"] or values["OS_TENANT_ID"],
        project_name=values["OS_PROJECT_NAME"] or values["OS_TENANT_NAME"],
        project_domain_id=values["OS_PROJECT_DOMAIN_ID"],
        project_domain_name=values["OS_PROJECT_DOMAIN_NAME"],
        application_credential_id=values["OS_APPLICATION_CREDENTIAL_ID"],
        application_credential_secret=values["OS_APPLICATION_CREDENTIAL_SECRET"],
        token=token,
    )


_Values = Mapping[str, str | None]


def _cloud(given: _Values, values: _Values) -> str | None:
    """The cloud to authenticate with; its variable gives way to options and to version 1's variables."""
    if given["ST_AUTH"] or given["OS_AUTH_URL"] or all(values[name] for name in _TRIO):
        return given["OS_CLOUD"]
    return values["OS_CLOUD"]


def _version(given: _Values, values: _Values, auth_url: str, environ: Mapping[str, str]) -> Version:
    """Find the version as ``swift`` does, except that options win over the environment as a whole."""
    auth_type = values["OS_AUTH_TYPE"]
    if auth_type is not None and auth_type not in _AUTH_TYPES:
        raise UsageError(f"authentication type {auth_type!r}: expected one of {', '.join(_AUTH_TYPES)}")
    if auth_type is not None and (version := _AUTH_TYPES[auth_type]):
        return version
    asked = given["ST_AUTH_VERSION"] or given["OS_IDENTITY_API_VERSION"] or values["ST_AUTH_VERSION"]
    if not asked and not all(given[name] for name in _TRIO):
        asked = environ.get("OS_AUTH_VERSION") or values["OS_IDENTITY_API_VERSION"]
    if asked and asked.removeprefix("v") not in _VERSIONS:
        raise UsageError(f"authentication version {asked!r}: expected 1, 2 or 3")
    version = _VERSIONS[asked.removeprefix("v")] if asked else "1.0"
    if version != "1.0" or all(values[name] for name in _TRIO):
        return version
    domains = ("OS_USER_DOMAIN_ID", "OS_USER_DOMAIN_NAME", "OS_PROJECT_DOMAIN_ID", "OS_PROJECT_DOMAIN_NAME")
    says_two = urlsplit(auth_url).path.rstrip("/").rpartition("/")[2].startswith("v2")
    return "2.0" if says_two and not any(values[name] for name in domains) else "3"


def _check_complete(version: Version, values: _Values) -> None:
    """Raise UsageError when something is missing that this version cannot do without."""

    def missing(*needed: str) -> list[str]:
        """List those of the needed "VARIABLE or ANOTHER" of which no variable is given."""
        return [names for names in needed if not any(values[name] for name in names.split(" or "))]

    def missing_domains() -> list[str]:
        """List the domains that version 3 asks for beside a name; an id needs none."""
        by_token = values["OS_AUTH_TOKEN"] or values["OS_AUTH_TYPE"] == "v3token"
        by_name = values["OS_PROJECT_NAME"] or values["OS_TENANT_NAME"]
        by_id = values["OS_PROJECT_ID"] or values["OS_TENANT_ID"]
        lacks = []
        if not values["OS_USER_ID"] and not by_token:
            lacks += missing("OS_USER_DOMAIN_NAME or OS_USER_DOMAIN_ID")
        if not by_id and (by_name or not by_token):
            lacks += missing("OS_PROJECT_DOMAIN_NAME or OS_PROJECT_DOMAIN_ID")
        return lacks

    auth_url = "ST_AUTH or OS_AUTH_URL"
    if version == "1.0":
        lacks = missing(auth_url, "ST_USER or OS_USERNAME", "ST_KEY or OS_PASSWORD")
    elif values["OS_APPLICATION_CREDENTIAL_ID"] or values["OS_AUTH_TYPE"] == "v3applicationcredential":
        lacks = missing(auth_url, "OS_APPLICATION_CREDENTIAL_ID", "OS_APPLICATION_CREDENTIAL_SECRET")
    elif values["OS_AUTH_TOKEN"] or values["OS_AUTH_TYPE"] == "v3token":
        lacks = missing(auth_url, "OS_AUTH_TOKEN")
        lacks += missing_domains() if version == "3" else []
    else:
        lacks = missing(auth_url, "ST_USER or OS_USERNAME or OS_USER_ID", "ST_KEY or OS_PASSWORD")
        project = "OS_PROJECT_NAME or OS_PROJECT_ID or OS_TENANT_NAME or OS_TENANT_ID"
        if not (version == "2.0" and ":" in (values["ST_USER"] or values["OS_USERNAME"] or "")):
            lacks += missing(project)
        lacks += missing_domains() if version == "3" else []
    if not lacks:
        return
    ways = []
    if first := missing(*_TRIO):
        ways.append(f"version 1 lacks {', '.join(first)} (-A, -U, -K)")
    if version == "1.0":
        lacks = missing("OS_AUTH_URL", "OS_USERNAME or OS_USER_ID", "OS_PASSWORD", "OS_PROJECT_NAME")
        lacks += missing_domains()
    # What is there under one name need not be offered under another.
    short = [
        names.removeprefix("ST_AUTH or ").removeprefix("ST_USER or ").removeprefix("ST_KEY or ")
        for names in lacks
    ]
    ways.append(f"version {'3' if version == '1.0' else version} lacks {', '.join(short)}")
    raise UsageError(
        f"no way to authenticate: {'; '.join(ways)}; each is a variable of the environment or an option"
    )


def warn_of_proxy(credentials: Credentials, session: Session) -> None:
    """Say where a proxy of the environment is used, because workers use none."""
    from ssbench.swift.auth import is_proxied

    uses = []
    if (
        credentials.version != "none"
        and is_http_url(credentials.auth_url)
        and is_proxied(credentials.auth_url)
    ):
        uses.append("to authenticate")
    if any(map(is_proxied, session.storage_urls)):
        uses.append("to make and list containers")
    if uses:
        _log.warning(
            "The proxy of the environment (http_proxy, https_proxy, all_proxy) is used %s; requests for"
            " objects do not use it (no_proxy=HOST keeps the others from it)",
            " and ".join(uses),
        )


def _check_url(url: str, what: str) -> None:
    refuse_user_info(url, what)
    if not is_http_url(url):
        raise UsageError(f"{what} {shown(url)}: expected http://HOST[:PORT]/PATH or https://...")


def _readable(path: str | None, variable: str) -> str | None:
    """Return the path of a file that can be read, None for none."""
    if path is not None:
        option = "--" + variable.lower().replace("_", "-")
        try:
            with Path(path).open("rb"):
                pass
        except OSError as error:
            raise UsageError(f"{option} {path}: {error.strerror}") from None
    return path
