"""Whom to authenticate as: options and environment variables, those of the ``swift`` command, or a file.

Values from the environment are looked up after parsing. They are never defaults of the parser, so ``--help``
cannot show a password. The functions at the beginning find out which version of authentication is meant, and
what it lacks. Their values are by the name of the environment variable. "Given" values come from options, all
others from options and, where one is not given, from the environment.

``--credentials FILE`` is a list of credentials, one for each of several accounts
(:func:`read_account_credentials`). An entry has the names of the options (``user``, ``key``, ``os_password``,
...); what it lacks comes from the command line and the environment. ``NAME_env`` is the variable that holds a
value, so that a file needs no secrets. Messages never show a value.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from ssbench.base.errors import UsageError, did_you_mean
from ssbench.base.text_values import parse_http_url, redact_url, refuse_user_info
from ssbench.base.untrusted import TooMuchError, open_regular_file, read_small_file
from ssbench.cli.asked import Asked
from ssbench.cli.options import FILE, Argument, ValueKind, add_options, parse_urls
from ssbench.cli.parser import Parser
from ssbench.scenario.store_kinds import STORE_KINDS, SWIFT, find_store_kind, strip_store_prefix

if TYPE_CHECKING:
    from ssbench.store.credentials import AuthVersion
    from ssbench.store.stores import Credentials

AuthValues = Mapping[str, str | None]

_AnyAuthAsked = TypeVar("_AnyAuthAsked", bound="AuthAsked")

#: The version that each ``--os-auth-type`` means; None where other values decide.
AUTH_TYPES: dict[str, AuthVersion | None] = {
    "password": None,
    "v1password": "1.0",
    "v2password": "2.0",
    "v3password": "3",
    "v3token": "3",
    "v3applicationcredential": "3",
}
#: Types of authentication without a token.
_TYPES_WITHOUT_TOKEN = frozenset(AUTH_TYPES) - {"v3token"}
#: What version 1 needs.
_V1_VARIABLES = ("ST_AUTH", "ST_USER", "ST_KEY")
_VERSION_NAMES: dict[str, AuthVersion] = {
    "1": "1.0",
    "1.0": "1.0",
    "2": "2.0",
    "2.0": "2.0",
    "3": "3",
    "3.0": "3",
}


def choose_cloud(given: AuthValues, values: AuthValues) -> str | None:
    """Return the cloud to authenticate with, None for none.

    Its variable counts only where neither an option nor the variables of version 1 say otherwise.
    """
    if given["ST_AUTH"] or given["OS_AUTH_URL"] or all(values[name] for name in _V1_VARIABLES):
        return given["OS_CLOUD"]
    return values["OS_CLOUD"]


def choose_version(
    given: AuthValues, values: AuthValues, auth_url: str, environ: Mapping[str, str]
) -> AuthVersion:
    """Choose the version as ``swift`` does, except that an option wins over any variable.

    Raises UsageError for an unknown version or type.
    """
    auth_type = values["OS_AUTH_TYPE"]
    if auth_type is not None and auth_type not in AUTH_TYPES:
        raise UsageError(f"authentication type {auth_type!r}: expected one of {', '.join(AUTH_TYPES)}")
    if auth_type is not None and (version := AUTH_TYPES[auth_type]):
        return version
    asked = given["ST_AUTH_VERSION"] or given["OS_IDENTITY_API_VERSION"] or values["ST_AUTH_VERSION"]
    if not asked and not all(given[name] for name in _V1_VARIABLES):
        asked = environ.get("OS_AUTH_VERSION") or values["OS_IDENTITY_API_VERSION"]
    if asked and asked.removeprefix("v") not in _VERSION_NAMES:
        raise UsageError(f"authentication version {asked!r}: expected 1, 2 or 3")
    version = _VERSION_NAMES[asked.removeprefix("v")] if asked else "1.0"
    if version != "1.0" or all(values[name] for name in _V1_VARIABLES):
        return version
    domains = ("OS_USER_DOMAIN_ID", "OS_USER_DOMAIN_NAME", "OS_PROJECT_DOMAIN_ID", "OS_PROJECT_DOMAIN_NAME")
    says_two = urlsplit(auth_url).path.rstrip("/").rpartition("/")[2].startswith("v2")
    return "2.0" if says_two and not any(values[name] for name in domains) else "3"


def is_token_left_over(given: AuthValues, values: AuthValues, has_storage_url: bool) -> bool:
    """Whether a token of the environment is not meant: there is a password too, or the type says so.

    Without a type it is used with a storage URL, as the ``swift`` command documents it.
    """
    if given["OS_AUTH_TOKEN"] and not given["OS_AUTH_TYPE"]:
        return False
    if values["OS_AUTH_TYPE"]:
        return values["OS_AUTH_TYPE"] in _TYPES_WITHOUT_TOKEN
    by_password = (values["ST_USER"] or values["OS_USERNAME"] or values["OS_USER_ID"]) and (
        values["ST_KEY"] or values["OS_PASSWORD"]
    )
    by_application = values["OS_APPLICATION_CREDENTIAL_ID"] and values["OS_APPLICATION_CREDENTIAL_SECRET"]
    return not has_storage_url and bool(by_password or by_application)


def check_auth_complete(version: AuthVersion, values: AuthValues) -> None:
    """Raise UsageError when something is missing that this version needs."""
    lacks = _list_lacking(version, values)
    if not lacks:
        return
    if not any(values.values()):
        raise UsageError(
            "no way to authenticate: set ST_AUTH, ST_USER and ST_KEY, or OS_AUTH_URL and the other OS_"
            " variables (see 'ssbench-master help auth'), or try run-scenario --local-swift, which starts a"
            " Swift on this machine"
        )
    ways = []
    if trio := _list_missing(values, *_V1_VARIABLES):
        ways.append(f"version 1 lacks {', '.join(trio)} (-A, -U, -K)")
    keystone: AuthVersion = version
    if version == "1.0":
        keystone = "3"
        lacks = _list_missing(
            values, "OS_AUTH_URL", "OS_USERNAME or OS_USER_ID", "OS_PASSWORD", "OS_PROJECT_NAME"
        )
        lacks += _list_missing_domains(values)
    # Offer the names of Keystone only, those of version 1 were named before.
    short = [
        names.removeprefix("ST_AUTH or ").removeprefix("ST_USER or ").removeprefix("ST_KEY or ")
        for names in lacks
    ]
    ways.append(f"version {keystone} lacks {', '.join(short)}")
    raise UsageError(
        f"no way to authenticate: {'; '.join(ways)}; each is a variable of the environment or an option (see"
        " 'ssbench-master help auth'); run-scenario --local-swift does without"
    )


def _list_lacking(version: AuthVersion, values: AuthValues) -> list[str]:
    """List what this version needs and is not given, each as "VARIABLE or ANOTHER"."""
    auth_url, user, key = "ST_AUTH or OS_AUTH_URL", "ST_USER or OS_USERNAME", "ST_KEY or OS_PASSWORD"
    if version == "1.0":
        return _list_missing(values, auth_url, user, key)
    auth_type = values["OS_AUTH_TYPE"]
    if values["OS_APPLICATION_CREDENTIAL_ID"] or auth_type == "v3applicationcredential":
        return _list_missing(
            values, auth_url, "OS_APPLICATION_CREDENTIAL_ID", "OS_APPLICATION_CREDENTIAL_SECRET"
        )
    if values["OS_AUTH_TOKEN"] or auth_type == "v3token":
        lacks = _list_missing(values, auth_url, "OS_AUTH_TOKEN")
    else:
        lacks = _list_missing(values, auth_url, f"{user} or OS_USER_ID", key)
        # Version 2.0 takes PROJECT:USER for a user, as the swift command does.
        if not (version == "2.0" and ":" in (values["ST_USER"] or values["OS_USERNAME"] or "")):
            lacks += _list_missing(
                values, "OS_PROJECT_NAME or OS_PROJECT_ID or OS_TENANT_NAME or OS_TENANT_ID"
            )
    return lacks + (_list_missing_domains(values) if version == "3" else [])


def _list_missing_domains(values: AuthValues) -> list[str]:
    """List the domains that version 3 needs beside a name; an id needs none."""
    by_token = values["OS_AUTH_TOKEN"] or values["OS_AUTH_TYPE"] == "v3token"
    by_name = values["OS_PROJECT_NAME"] or values["OS_TENANT_NAME"]
    by_id = values["OS_PROJECT_ID"] or values["OS_TENANT_ID"]
    lacks = []
    if not values["OS_USER_ID"] and not by_token:
        lacks += _list_missing(values, "OS_USER_DOMAIN_NAME or OS_USER_DOMAIN_ID")
    if not by_id and (by_name or not by_token):
        lacks += _list_missing(values, "OS_PROJECT_DOMAIN_NAME or OS_PROJECT_DOMAIN_ID")
    return lacks


def _list_missing(values: AuthValues, *needed: str) -> list[str]:
    """List those of the needed "VARIABLE or ANOTHER" of which no variable is given."""
    return [names for names in needed if not any(values[name] for name in names.split(" or "))]


# -- The options, and credentials from them --------------------------------------------------------


#: Values of SWIFTCLIENT_INSECURE that mean yes, in lower case.
_TRUE_WORDS = frozenset({"true", "1", "yes", "on", "t", "y"})


class AuthOption(NamedTuple):
    """An option of authentication, and the environment variable that has the same."""

    flags: tuple[str, ...]
    variable: str
    metavar: str
    help: str

    @property
    def destination(self) -> str:
        """The attribute of the namespace, with a prefix that keeps clear of the sub-commands' own."""
        return "auth_option_" + self.variable

    @property
    def key(self) -> str:
        """Its key in a list of credentials: ``user``, ``os_username``."""
        return self.flags[-1].removeprefix("--").replace("-", "_")


def _keystone_option(flag: str, metavar: str, text: str) -> AuthOption:
    return AuthOption((flag,), flag.removeprefix("--").upper().replace("-", "_"), metavar, text)


_HELP_INTRODUCTION = (
    "Each value can also be given in the environment variable in brackets, where other users of the machine "
    "cannot see it. Version 1 needs -A, -U and -K; without one of them version 2 or 3 (Keystone) is used."
)
_HELP_POINTER = (
    "-A, -U, -K, --os-username and the other options and variables of the 'swift' command; and -S, -T:"
    " see 'ssbench-master help auth'."
)

_SWIFT_OPTIONS = (
    AuthOption(("-A", "--auth-url"), "ST_AUTH", "URL", "URL to authenticate at"),
    AuthOption(("-U", "--user"), "ST_USER", "USER", "account and user, as ACCOUNT:USER"),
    AuthOption(("-K", "--key"), "ST_KEY", "KEY", "key of the user"),
    AuthOption(
        ("-V", "--auth-version"),
        "ST_AUTH_VERSION",
        "VERSION",
        "1, 2 or 3 (default: the version that the other values fit)",
    ),
)
_KEYSTONE_OPTIONS = (
    _keystone_option(
        "--os-cloud", "NAME", "cloud of a clouds.yaml, instead of the options below (needs openstacksdk)"
    ),
    _keystone_option("--os-auth-url", "URL", "URL to authenticate at"),
    _keystone_option("--os-username", "NAME", "user"),
    _keystone_option("--os-user-id", "ID", "user, by id"),
    _keystone_option("--os-password", "PASSWORD", "password of the user"),
    _keystone_option("--os-user-domain-id", "ID", "domain of the user, by id"),
    _keystone_option("--os-user-domain-name", "NAME", "domain of the user"),
    _keystone_option("--os-project-id", "ID", "project, by id"),
    _keystone_option("--os-project-name", "NAME", "project"),
    _keystone_option("--os-project-domain-id", "ID", "domain of the project, by id"),
    _keystone_option("--os-project-domain-name", "NAME", "domain of the project"),
    _keystone_option("--os-tenant-id", "ID", "project, by id (the name in version 2.0)"),
    _keystone_option("--os-tenant-name", "NAME", "project (the name in version 2.0)"),
    _keystone_option("--os-auth-type", "TYPE", "one of " + ", ".join(AUTH_TYPES)),
    _keystone_option("--os-application-credential-id", "ID", "application credential"),
    _keystone_option("--os-application-credential-secret", "SECRET", "secret of the application credential"),
    _keystone_option(
        "--os-auth-token", "TOKEN", "token to authenticate with, or with a storage URL, the token to use"
    ),
    _keystone_option("--os-storage-url", "URL", "same as --storage-url"),
    _keystone_option("--os-region-name", "NAME", "region of the object store"),
    _keystone_option(
        "--os-service-type", "TYPE", "type of the object store in the catalog (default: object-store)"
    ),
    _keystone_option("--os-endpoint-type", "TYPE", "public, internal or admin (default: public)"),
    _keystone_option("--os-interface", "TYPE", "same as --os-endpoint-type"),
    _keystone_option("--os-cacert", "FILE", "CA certificates to trust, in PEM format"),
    _keystone_option("--os-cert", "FILE", "client certificate for authentication, in PEM format"),
    _keystone_option("--os-key", "FILE", "private key of the client certificate"),
    _keystone_option("--os-identity-api-version", "VERSION", "same as --auth-version"),
)


#: What says that Keystone is to be asked.
_KEYSTONE_NAMES = ("OS_CLOUD", "OS_AUTH_URL", "OS_USERNAME", "OS_USER_ID", "OS_APPLICATION_CREDENTIAL_ID")

#: What says how to speak to any server, not which account is meant.
_TLS_VARIABLES = ("OS_CACERT", "OS_CERT", "OS_KEY")

#: Those that a list of credentials may have too.
AUTH_OPTIONS = (*_SWIFT_OPTIONS, *_KEYSTONE_OPTIONS)


#: Options with a token in place of what authenticates; a store that takes none does without.
_TOKEN_OPTIONS = (
    Argument(
        "-T --token",
        ValueKind("TOKEN"),
        "use this token instead of authenticating; needs -S",
        settings={"dest": "auth_token"},
    ),
)

#: Those besides :data:`AUTH_OPTIONS` that say which account it is.
_ACCOUNT_OPTIONS = (
    Argument(
        "-S --storage-url",
        ValueKind("URL", parse_urls),
        "use this storage URL instead of the one that authentication returns; may be repeated, or be"
        " several with spaces between them, and each request then uses one at random; s3+http://HOST[:PORT]"
        " or s3+https:// is for the S3 API, with the access key of AWS_ACCESS_KEY_ID and"
        " AWS_SECRET_ACCESS_KEY, of AWS_PROFILE, of -U and -K, or one that Keystone makes",
        settings={"dest": "auth_storage_urls", "action": "extend"},
    ),
    *_TOKEN_OPTIONS,
)

_SESSION_OPTIONS = (
    *_ACCOUNT_OPTIONS,
    Argument(
        "--credentials",
        FILE,
        "a list of credentials in YAML, one for each of several accounts; see doc/authentication.rst",
    ),
    Argument(
        "--insecure",
        None,
        "do not verify the certificates of servers [SWIFTCLIENT_INSECURE]",
        settings={"dest": "auth_insecure"},
    ),
)


def _read_given_values(parsed: Mapping[str, Any]) -> dict[str, str | None]:
    return {option.variable: parsed[option.destination] for option in AUTH_OPTIONS}


@dataclass(frozen=True, kw_only=True)
class AuthAsked(Asked):
    """Whom to authenticate as, as far as options say it."""

    auth_values: AuthValues = field(metadata={"read": _read_given_values}, repr=False)
    auth_storage_urls: Sequence[str] | None
    auth_token: str | None = field(repr=False)
    credentials: Path | None
    auth_insecure: bool

    def hide_secrets(self) -> None:
        """Hide the passwords, keys and tokens of the command line from other users of this machine."""
        from ssbench.base.own_processes import hide_arguments
        from ssbench.store.stores import SECRET_VARIABLES

        given = [
            (each.variable, self.auth_values[each.variable] or "")
            for each in AUTH_OPTIONS
            if each.variable in SECRET_VARIABLES and self.is_given(each.destination)
        ]
        if self.is_given("auth_token"):
            given.append(("OS_AUTH_TOKEN", self.auth_token or ""))
        if given and not hide_arguments([value for _, value in given]):
            _log.warning(
                "Other users of this machine can see the command line: set %s instead",
                " and ".join(sorted(name for name, _ in given)),
            )


def add_auth_arguments(parser: argparse.ArgumentParser, *, in_help: bool = False) -> None:
    """Add every option of authentication to a parser.

    They are left out of its help, which names their own page instead, unless ``in_help``.
    """
    group = parser.add_argument_group("authentication", _HELP_INTRODUCTION if in_help else _HELP_POINTER)
    keystone = parser.add_argument_group("authentication by Keystone" if in_help else None)
    for where, rows in (
        (group, [*map(_make_auth_argument, _SWIFT_OPTIONS), *_SESSION_OPTIONS]),
        (keystone, map(_make_auth_argument, _KEYSTONE_OPTIONS)),
    ):
        for row in rows:
            add_options(where, row if in_help else row._replace(help=argparse.SUPPRESS))


def _make_auth_argument(option: AuthOption) -> Argument:
    return Argument(
        " ".join(option.flags),
        ValueKind(option.metavar),
        f"{option.help} [{option.variable}]",
        settings={"dest": option.destination, "action": "store"},  # as the swift command: the last counts
    )


def format_auth_help() -> str:
    """Return the help of the options of authentication."""
    parser = Parser(
        prog="ssbench-master help auth",
        usage="ssbench-master run-scenario|cleanup-containers [option ...]",
        example="ssbench-master run-scenario -f small -A URL -U ACCOUNT:USER -K KEY",
        epilog="doc/authentication.rst tells more.",
        add_help=False,
    )
    add_auth_arguments(parser, in_help=True)
    return parser.format_help()


def forget_account(asked: _AnyAuthAsked) -> _AnyAuthAsked:
    """Return a record without the options that say which account it is; how servers are trusted stays.

    They win over variables: another account, of a file, would get the password or the token of this one.
    """
    kept = {name: value if name in _TLS_VARIABLES else None for name, value in asked.auth_values.items()}
    return replace(asked, auth_values=kept, auth_storage_urls=None, auth_token=None)


def _list_given_options(asked: AuthAsked, rows: Iterable[Argument]) -> list[str]:
    """Return the spellings of those that have a value: ``-T/--token``."""
    return [row.spelling.replace(" ", "/") for row in rows if getattr(asked, row.settings["dest"])]


def make_credentials(asked: AuthAsked, environ: Mapping[str, str]) -> Credentials:
    """Make credentials from the options and, where one is not given, from the environment.

    Raises UsageError, which names what is missing or wrong and never shows a password.
    """
    given = asked.auth_values
    values = {name: value or environ.get(name) or None for name, value in given.items()}
    common = _make_common_credentials(asked, given, values, environ)
    if not asked.auth_token and is_token_left_over(given, values, bool(common.storage_urls)):
        values["OS_AUTH_TOKEN"] = None
    token = asked.auth_token or values["OS_AUTH_TOKEN"]
    kinds = map(find_store_kind, common.storage_urls)
    kind = next((each for each in kinds if not each.takes_token), SWIFT)
    if find_key := _KEY_FINDERS.get(kind.name):
        common = find_key(asked, given, values, environ, common)
        if common.version != "cloud":
            return common
    _check_secrets(values["ST_KEY"], values["OS_PASSWORD"], values["OS_APPLICATION_CREDENTIAL_SECRET"], token)
    if asked.auth_token and not common.storage_urls:
        raise UsageError("-T/--token needs -S/--storage-url, which says where to use the token")
    if common.storage_urls and token and kind.takes_token:
        from ssbench.store.stores import Credentials

        return Credentials(
            version="none",
            token=token,
            storage_urls=common.storage_urls,
            insecure=common.insecure,
            ca_file=common.ca_file,
        )
    if cloud := choose_cloud(given, values):
        from ssbench.store.swift.auth import read_cloud_credentials

        return read_cloud_credentials(cloud, common)
    if kind.takes_token and not any(values.values()) and environ.get("AWS_ACCESS_KEY_ID"):
        raise UsageError(
            "AWS_ACCESS_KEY_ID is for the S3 API, whose storage URLs begin with s3+: -S s3+http://HOST[:PORT];"
            " for Swift's API set ST_AUTH, ST_USER and ST_KEY, or the OS_ variables"
        )
    auth_url = values["ST_AUTH"] or values["OS_AUTH_URL"]
    if auth_url:
        _check_url(auth_url, "authentication URL")
    version = choose_version(given, values, auth_url or "", environ)
    check_auth_complete(version, values)
    return replace(
        common,
        version=version,
        service_type=common.service_type or "object-store",
        endpoint_type=common.endpoint_type or "public",
        auth_url=auth_url or "",
        user=values["ST_USER"] or values["OS_USERNAME"],
        key=values["ST_KEY"] or values["OS_PASSWORD"],
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


def _find_s3_credentials(
    asked: AuthAsked, given: AuthValues, values: AuthValues, environ: Mapping[str, str], common: Credentials
) -> Credentials:
    """Return an access key for an S3 store, or what is known before Keystone makes one: version "cloud".

    Options win over variables, and the default profile of the shared files comes last. Raises UsageError
    where there is nothing.
    """
    from ssbench.store.s3.access_keys import find_profile_key, find_region_variable, find_variables_key

    if given_tokens := _list_given_options(asked, _TOKEN_OPTIONS):
        raise UsageError(f"{given_tokens[0]} is no credential of the S3 API (see 'ssbench-master help auth')")
    keystone = values["OS_AUTH_URL"] or choose_cloud(given, values)
    if any(given[name] for name in _KEYSTONE_NAMES) and keystone:
        return common if common.ca_file else _trust_s3_authorities(common, given, environ)
    found = None
    if not (given["ST_USER"] or given["ST_KEY"]):
        found = find_variables_key(environ)
        if found is None and environ.get("AWS_PROFILE"):
            found = find_profile_key(environ)
    if found is None and values["ST_USER"] and values["ST_KEY"]:
        _check_secrets(values["ST_KEY"])
        return replace(
            _trust_s3_authorities(common, given, environ),
            version="1.0",
            user=values["ST_USER"],
            key=values["ST_KEY"],
            region_name=find_region_variable(environ) or None,
        )
    if found is None and keystone:
        return common if common.ca_file else _trust_s3_authorities(common, given, environ)
    found = found or find_profile_key(environ)
    if found is None:
        raise UsageError(
            "no access key for the S3 API: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE,"
            " or ST_USER and ST_KEY, or the OS_ variables, with which Keystone makes one (see"
            " 'ssbench-master help auth')"
        )
    _check_secrets(found.secret, found.session)
    return replace(
        _trust_s3_authorities(common, given, environ, found.ca_bundle),
        version="s3",
        user=found.access,
        key=found.secret,
        token=found.session or None,
        region_name=found.region or None,
    )


def _trust_s3_authorities(
    common: Credentials, given: AuthValues, environ: Mapping[str, str], of_profile: str = ""
) -> Credentials:
    """Return credentials with the certificates that other S3 tools trust, in their order.

    An option comes first, then ``AWS_CA_BUNDLE``, then the ``ca_bundle`` of a profile. ``OS_CACERT`` is for
    other servers, unless there is nothing else.
    """
    if given["OS_CACERT"]:
        return common
    if path := environ.get("AWS_CA_BUNDLE"):
        return replace(common, ca_file=_check_readable(path, "AWS_CA_BUNDLE"))
    if of_profile:
        return replace(common, ca_file=_check_readable(of_profile, "ca_bundle of the profile"))
    return common


#: What finds the keys of stores that take no token, by the names of their kinds.
_KEY_FINDERS = {"s3": _find_s3_credentials}


def _make_common_credentials(
    asked: AuthAsked, given: AuthValues, values: AuthValues, environ: Mapping[str, str]
) -> Credentials:
    """Make credentials of what holds for every way to authenticate: endpoint, storage URLs and TLS."""
    storage_urls = tuple(asked.auth_storage_urls or filter(None, [values["OS_STORAGE_URL"]]))
    for url in storage_urls:
        _check_url(url, "storage URL")
    # An option wins over a variable, whichever of the two names it has.
    endpoint_types = [
        source[name] for source in (given, values) for name in ("OS_ENDPOINT_TYPE", "OS_INTERFACE")
    ]
    from ssbench.store.stores import Credentials

    return Credentials(
        version="cloud",
        region_name=values["OS_REGION_NAME"],
        service_type=values["OS_SERVICE_TYPE"] or "",
        endpoint_type=next(filter(None, endpoint_types), ""),
        storage_urls=tuple(url.rstrip("/") for url in storage_urls),
        insecure=asked.auth_insecure or environ.get("SWIFTCLIENT_INSECURE", "").lower() in _TRUE_WORDS,
        ca_file=_check_readable(values["OS_CACERT"], "--os-cacert"),
        certificate=_check_readable(values["OS_CERT"], "--os-cert"),
        certificate_key=_check_readable(values["OS_KEY"], "--os-key"),
    )


def _check_secrets(*secrets: str | None) -> None:
    """Raise UsageError where a secret cannot be part of a header field."""
    if not all(secret.isprintable() for secret in secrets if secret):
        raise UsageError("a key, password, secret or token has a line end or another control character in it")


def _check_url(url: str, what: str) -> None:
    refuse_user_info(url, what)
    if parse_http_url(strip_store_prefix(url)) is None:
        others = "".join(
            f", or {each.prefix}http://HOST[:PORT] for {each.api}"
            for each in STORE_KINDS.values()
            if each.prefix
        )
        raise UsageError(f"{what} {redact_url(url)}: expected http://HOST[:PORT]/PATH or https://...{others}")


def _check_readable(path: str | None, name: str) -> str | None:
    """Return the path of a file that can be read, None for none; ``name`` says where the path is from."""
    if path is not None:
        try:
            open_regular_file(Path(path)).close()
        except OSError as error:
            raise UsageError(f"{name} {path}: {error.strerror}") from None
        except TooMuchError as error:
            raise UsageError(f"{name} {path}: {error}") from None
    return path


# -- the file of --credentials -------------------------------------------------------------------


_log = logging.getLogger(__name__)

#: How the key of a value ends that is in an environment variable.
_VARIABLE_SUFFIX = "_env"

#: Under which name the same may come from the command line or the environment, where an entry wins over it.
_OTHER_NAMES = {
    "OS_AUTH_URL": "ST_AUTH",
    "OS_USERNAME": "ST_USER",
    "OS_USER_ID": "ST_USER",
    "OS_PASSWORD": "ST_KEY",
    "OS_IDENTITY_API_VERSION": "ST_AUTH_VERSION",
}

#: Keys of which a message shows the text: others may hold a value.
_SHOWN_KEY_PATTERN = re.compile(r"[a-z_]{1,40}\Z", re.ASCII)

#: What would hold for one account only.
_SINGLE_ACCOUNT_VARIABLES = ("OS_STORAGE_URL", "OS_AUTH_TOKEN", "OS_CLOUD")

_OTHERS_READ_BITS = stat.S_IRGRP | stat.S_IROTH

_MAX_BYTES = 1_000_000


def read_account_credentials(asked: AuthAsked, environ: Mapping[str, str]) -> list[Credentials]:
    """Return the credentials of each account, none without a file.

    Raises UsageError, with a line for each fault of the file.
    """
    if asked.credentials is None:
        return []
    from ssbench.scenario import parsed_text
    from ssbench.store.stores import SECRET_VARIABLES

    if _list_given_options(asked, _ACCOUNT_OPTIONS):
        names = " and ".join(row.spelling.replace(" ", "/") for row in _ACCOUNT_OPTIONS)
        raise UsageError(f"--credentials names the accounts: leave out {names}")
    path = asked.credentials
    document = parsed_text.parse_scenario_text(_read_entries(path))
    faults = list(document.faults)
    found: dict[int, Credentials] = {}
    entries = document.data
    if not faults and (not isinstance(entries, list) or not entries):
        faults.append(parsed_text.Fault(None, "expected a list of one entry or more, such as - {user: ...}"))
    options = {option.key: option for option in AUTH_OPTIONS}
    secret = False
    for number, entry in enumerate(entries if isinstance(entries, list) else []):
        line = document.lines.get((number,))
        wrong = [*_list_faults(entry, options, environ)]
        faults += [parsed_text.Fault(line, f"entry {number + 1}: {each}") for each in wrong]
        if wrong:
            continue
        secret |= any(key in options and options[key].variable in SECRET_VARIABLES for key in entry)
        try:
            made = _make_entry_credentials(entry, options, asked, environ)
        except UsageError as error:
            faults.append(parsed_text.Fault(line, f"entry {number + 1}: {error}"))
            continue
        if same := next((other for other, each in found.items() if each == made), 0):
            faults.append(parsed_text.Fault(line, f"entry {number + 1}: the same as entry {same}"))
        found[number + 1] = made
    if faults:
        raise UsageError(parsed_text.format_faults(str(path), faults))
    if secret and path.stat().st_mode & _OTHERS_READ_BITS:
        _log.warning("%s holds secrets, and other users of this machine can read it (chmod 600)", path)
    if environ is os.environ and isinstance(entries, list):
        _remove_variables(entries)
    if len(found) == 1:
        return [*found.values()]
    return [replace(each, name=f"credentials {number}") for number, each in found.items()]


def _make_entry_credentials(
    entry: Mapping[str, str], options: Mapping[str, AuthOption], asked: AuthAsked, environ: Mapping[str, str]
) -> Credentials:
    """Return the credentials of an entry; raises UsageError where something is missing."""
    names = {key: key if key in options else key.removesuffix(_VARIABLE_SUFFIX) for key in entry}
    meant = {options[name].variable for name in names.values()}
    hidden = {_OTHER_NAMES[variable] for variable in meant & _OTHER_NAMES.keys()}
    own = {name: None if name in hidden else value for name, value in asked.auth_values.items()}
    own |= {
        options[names[key]].variable: entry[key] if key in options else environ[entry[key]] for key in entry
    }
    unused = hidden.union(_SINGLE_ACCOUNT_VARIABLES)
    variables = {name: value for name, value in environ.items() if name not in unused}
    return make_credentials(replace(asked, auth_values=own), variables)


def _remove_variables(entries: Sequence[Mapping[str, str]]) -> None:
    """Remove the variables that entries name from the environment, which child processes inherit."""
    for entry in entries:
        for key, name in entry.items():
            if key.endswith(_VARIABLE_SUFFIX):
                os.environ.pop(name, None)


def _read_entries(path: Path) -> str:
    try:
        return read_small_file(path, _MAX_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"--credentials {path}: {error.strerror}") from None
    except TooMuchError as error:
        raise UsageError(f"--credentials {path}: expected a list of credentials: {error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"--credentials {path}: expected UTF-8 text") from None


def _list_faults(entry: object, options: Mapping[str, object], environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the faults of an entry."""
    if not isinstance(entry, dict) or not entry:
        yield "expected a mapping such as {user: ..., key_env: ...}"
        return
    for key, value in entry.items():
        name = str(key).removesuffix(_VARIABLE_SUFFIX)
        if key not in options and (name == key or name not in options):
            shown = (
                repr(key)
                if _SHOWN_KEY_PATTERN.match(str(key))
                else "that is not shown, as it may hold a value"
            )
            yield f"unknown key {shown}{did_you_mean(str(key), options)}"
        elif not isinstance(value, str) or not value:
            yield f"{key}: expected a text, in quotes where it is a number"
        elif key in options:
            if f"{key}{_VARIABLE_SUFFIX}" in entry:
                yield f"{key}: expected this or {key}{_VARIABLE_SUFFIX}, not both"
        elif not environ.get(value):
            yield f"{key}: the environment has no variable of the name that it gives"
