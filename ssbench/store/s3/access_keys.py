"""Access keys from where other S3 tools have them, or made by Keystone with the credentials of a user.

The tools have them in variables of the environment and in shared files. In Keystone they are EC2 credentials,
made for the time of a program (:class:`KeystoneKeys`). The secret is known to Swift for a minute after the
key was removed (s3token's cache), so that a removal is no test of anything.
"""

from __future__ import annotations

import configparser
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ssbench.base.errors import AuthenticationError, ClusterError, UsageError
from ssbench.base.untrusted import TooMuchError, read_small_file
from ssbench.store.credentials import Credentials

_MAX_BYTES = 1_000_000
_DEFAULT_PROFILE = "default"


class FoundKey(NamedTuple):
    """An access key that was found, and the region that is beside it."""

    access: str
    secret: str
    session: str = ""
    region: str = ""  # empty: none is named
    ca_bundle: str = ""  # the file of authorities that the profile names; empty: none is named


def find_variables_key(environ: Mapping[str, str]) -> FoundKey | None:
    """Return the key of the variables ``AWS_ACCESS_KEY_ID`` and so on, None where they are not set.

    Raises UsageError where one of the two is set without the other.
    """
    access, secret = environ.get("AWS_ACCESS_KEY_ID", ""), environ.get("AWS_SECRET_ACCESS_KEY", "")
    if not access and not secret:
        return None
    if not access or not secret:
        there, missing = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")[:: 1 if access else -1]
        raise UsageError(f"{there} without {missing}: expected both variables, or none")
    return FoundKey(access, secret, environ.get("AWS_SESSION_TOKEN", ""), find_region_variable(environ))


def find_region_variable(environ: Mapping[str, str]) -> str:
    """Return the region that variables name; empty where they name none."""
    return environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or ""


def find_profile_key(environ: Mapping[str, str]) -> FoundKey | None:
    """Return the key of a profile (``AWS_PROFILE``) in the shared files, None where there is none.

    Raises UsageError where a profile that is named is not there or has no key, or a file cannot be read.
    """
    asked = environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE") or ""
    profile = asked or _DEFAULT_PROFILE
    folder = Path(environ.get("HOME") or "~").expanduser() / ".aws"
    secrets = Path(environ.get("AWS_SHARED_CREDENTIALS_FILE") or folder / "credentials").expanduser()
    settings = Path(environ.get("AWS_CONFIG_FILE") or folder / "config").expanduser()
    in_settings = profile if profile == _DEFAULT_PROFILE else f"profile {profile}"
    found = _read_profile(settings, in_settings) | _read_profile(secrets, profile)
    if not found:
        if asked:
            raise UsageError(f"AWS_PROFILE: there is no profile {asked!r} in {secrets} or {settings}")
        return None
    access, secret = found.get("aws_access_key_id", ""), found.get("aws_secret_access_key", "")
    if not access or not secret:
        if asked:
            raise UsageError(
                f"AWS_PROFILE: the profile {asked!r} has no aws_access_key_id and aws_secret_access_key (keys"
                " of other kinds, such as roles and single sign-on, are not known here)"
            )
        return None
    region = find_region_variable(environ) or found.get("region", "")
    return FoundKey(access, secret, found.get("aws_session_token", ""), region, found.get("ca_bundle", ""))


def _read_profile(file: Path, section: str) -> dict[str, str]:
    """Return the values of a section of a file, nothing where there is none."""
    parser = configparser.RawConfigParser(default_section="no section has this name", strict=False)
    try:
        parser.read_string(read_small_file(file, _MAX_BYTES).decode())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, TooMuchError) as error:
        raise UsageError(f"{file}: {getattr(error, 'strerror', None) or error}") from None
    except (UnicodeDecodeError, configparser.Error):
        # Their texts quote the file.
        raise UsageError(f"{file}: expected sections with lines such as aws_access_key_id = ...") from None
    return dict(parser[section]) if parser.has_section(section) else {}


# -- made by Keystone ----------------------------------------------------------------------------


_log = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 10.0


class _MadeKey(NamedTuple):
    credentials: Credentials
    session: Any  # of keystoneauth, with which it is removed
    url: str
    access: str
    secret: str


class KeystoneKeys:
    """Keys by the credentials that they were made with; :meth:`end` removes them."""

    def __init__(self) -> None:
        self._made: list[_MadeKey] = []

    def find(self, credentials: Credentials) -> tuple[str, str]:
        """Return access key and secret, made where there are none yet.

        Raises AuthenticationError where Keystone refuses, ClusterError where it cannot be reached.
        """
        for each in self._made:
            if each.credentials == credentials:
                return each.access, each.secret
        made = _make_key(credentials)
        self._made.append(made)
        return made.access, made.secret

    def end(self) -> None:
        """Remove all keys; log a warning where that fails."""
        from ssbench.store.http.master_requests import CLIENT_ERRORS, describe_client_error  # noqa: PLC0415

        made, self._made = self._made, []
        for each in made:
            try:
                each.session.delete(f"{each.url}/{each.access}", authenticated=True)
            except CLIENT_ERRORS as error:
                _log.warning(
                    "The access key %s, which was made for this run, is still in Keystone (openstack ec2"
                    " credentials delete %s): %s",
                    each.access,
                    each.access,
                    describe_client_error(error),
                )


def _make_key(credentials: Credentials) -> _MadeKey:
    import keystoneauth1.exceptions  # noqa: PLC0415 - few runs need it

    from ssbench.store.http.master_requests import CLIENT_ERRORS, describe_client_error  # noqa: PLC0415
    from ssbench.store.swift.auth import open_keystone_session  # noqa: PLC0415

    where = credentials.auth_url
    try:
        session = open_keystone_session(credentials, _TIMEOUT_SECONDS)
        user, project = session.get_user_id(), session.get_project_id()
        if project is None:
            raise AuthenticationError(f"{where}: the token has no project, in which buckets would be")
        base = session.get_endpoint(service_type="identity", interface="public", version=(3, 0))
        base = (base or where).rstrip("/").removesuffix("/v3")
        url = f"{base}/v3/users/{user}/credentials/OS-EC2"
        answer = session.post(url, json={"tenant_id": project}, authenticated=True)
        found = answer.json()["credential"]
        return _MadeKey(credentials, session, url, str(found["access"]), str(found["secret"]))
    except keystoneauth1.exceptions.HttpError as error:
        raise AuthenticationError(
            f"{where}: no access key could be made (EC2 credentials): {describe_client_error(error)}"
        ) from None
    except CLIENT_ERRORS as error:
        raise ClusterError(
            f"{where}: no access key could be made (EC2 credentials): {describe_client_error(error)}"
        ) from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise AuthenticationError(
            f"{where}: the answer to making an access key was none of Keystone's"
        ) from None
