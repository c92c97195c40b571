"""Which version of authentication the options and variables mean, and what it lacks.

Values are by the name of their environment variable. "Given" values come from options, all others from
options and, where one is not given, from the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from ssbench.base.errors import UsageError
from ssbench.store.swift.credentials import AuthVersion

AuthValues = Mapping[str, str | None]

#: The version that each ``--os-auth-type`` means; None where other values decide.
AUTH_TYPES: dict[str, AuthVersion | None] = {
    "password": None,
    "v1password": "1.0",
    "v2password": "2.0",
    "v3password": "3",
    "v3token": "3",
    "v3applicationcredential": "3",
}
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


def check_auth_complete(version: AuthVersion, values: AuthValues) -> None:
    """Raise UsageError when something is missing that this version needs."""
    lacks = _list_lacking(version, values)
    if not lacks:
        return
    if not any(values.values()):
        raise UsageError(
            "no way to authenticate: set ST_AUTH, ST_USER and ST_KEY, or OS_AUTH_URL and its siblings (see"
            " 'ssbench-master help auth'), or try run-scenario --local-swift, which starts a Swift on this"
            " machine"
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
