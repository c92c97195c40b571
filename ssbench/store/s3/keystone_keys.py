"""Access keys that Keystone makes with the credentials of a user, for the time of a program.

In Keystone they are EC2 credentials. The secret is known to Swift for a minute after the key was removed
(s3token's cache), so that a removal is no test of anything.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from ssbench.base.errors import AuthenticationError, ClusterError
from ssbench.store.credentials import Credentials

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
