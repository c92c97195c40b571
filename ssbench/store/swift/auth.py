"""From credentials to a storage URL and a token, by way of python-swiftclient.

Version 1 is Swift's own (TempAuth and its kind); versions 2.0 and 3 are Keystone's, for which
python-swiftclient takes a session of keystoneauth. With a token and a storage URL there is no authentication.
Credentials from a ``clouds.yaml`` are read with openstacksdk, which is an optional dependency.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import re
import threading
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import keystoneauth1.exceptions
import keystoneauth1.session
import requests
import swiftclient
import urllib3
from keystoneauth1.identity import v2, v3

from ssbench.base import interruption
from ssbench.base.errors import (
    AuthenticationBusyError,
    AuthenticationError,
    ClusterError,
    SsbenchError,
    UsageError,
)
from ssbench.base.text_values import parse_http_url, redact_url, refuse_user_info
from ssbench.base.version import describe_install
from ssbench.store.contract import parse_retry_after
from ssbench.store.credentials import Credentials, Session
from ssbench.store.http.master_requests import (
    CLIENT_ERRORS,
    describe_client_error,
    field_of_error,
    status_of_error,
)
from ssbench.store.http.redirects import OriginSession
from ssbench.store.swift.containers import SwiftConnection

_log = logging.getLogger(__name__)

#: Statuses by which a service says that it is to be asked later, the second with a Retry-After.
_BUSY_STATUS = 429
_UNAVAILABLE_STATUS = 503

#: How many names of a catalogue a message has.
_MOST_NAMES = 12

#: Name resolution and several addresses of a host may each take their time; seconds on top of the time-out.
_EXTRA_SECONDS = 4.0

# When someone turns on its logging, it would show the first half of tokens and keys.
swiftclient.client.logger_settings["reveal_sensitive_prefix"] = 0


def authenticate_swift(credentials: Credentials, timeout: float = 10.0) -> Session:
    """Get a storage URL and a token.

    ``timeout`` bounds connecting and each wait for bytes, in seconds; the whole takes no more than 4 s
    longer. Raises AuthenticationError when the service refuses or has no storage URL for us, ClusterError
    when it cannot be reached, and UsageError when it cannot be asked for what was given.
    """
    try:
        return _authenticate(credentials, timeout)
    except SsbenchError as error:
        if not credentials.name:
            raise
        # Several may be for one URL, which the text names.
        error.args = (f"{credentials.name}: {error}",)
        raise


def _authenticate(credentials: Credentials, timeout: float) -> Session:
    if credentials.insecure:
        # Which was asked for; urllib3 would say so again with each connection.
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    if credentials.version == "none":
        storage_url, token = credentials.storage_urls[0], credentials.token
    else:
        storage_url, token = _call_within(
            timeout + _EXTRA_SECONDS, credentials.auth_url, lambda: _get_auth(credentials, timeout)
        )
        if not credentials.storage_urls:
            refuse_user_info(storage_url, f"{credentials.auth_url}: gave the storage URL")
            parts = parse_http_url(storage_url)
            # As a worker takes it: each of its jobs would fail.
            if parts is None or not storage_url.isascii() or parts.query or parts.fragment:
                raise AuthenticationError(
                    f"{credentials.auth_url}: gave {redact_url(storage_url)} for a storage URL"
                )
    urls = credentials.storage_urls or (storage_url.rstrip("/"),)
    return Session(urls, token, credentials.insecure, credentials.ca_file)


def is_proxied(url: str) -> bool:
    """Whether the libraries go through a proxy of the environment to get there."""
    return bool(requests.utils.select_proxy(url, requests.utils.get_environ_proxies(url)))


def warn_of_auth_route(credentials: Credentials, session: Session) -> None:
    """Log a warning where workers do not use the environment's proxy as the master does, or TLS ends."""
    url = session.storage_url
    if credentials.auth_url.startswith("https:") and url.startswith("http:") and not credentials.storage_urls:
        _log.warning(
            "%s: authentication over https gave a storage URL without TLS, so that tokens and objects can be"
            " read on the way; if the store has TLS: -S %s",
            url,
            url.replace("http:", "https:", 1),
        )
    uses = []
    # The authentication URL of a cloud may be no more than its name.
    if parse_http_url(credentials.auth_url) is not None and is_proxied(credentials.auth_url):
        uses.append("to authenticate")
    if any(map(is_proxied, session.storage_urls)):
        uses.append("to make and list containers")
    if uses:
        _log.warning(
            "The proxy of the environment (http_proxy, https_proxy, all_proxy) is used %s; requests for"
            " objects do not use it (no_proxy=HOST keeps the others from it)",
            " and ".join(uses),
        )


def _name_proxy(url: str) -> str:
    """Say that it may be the environment's proxy that did not answer, or answered in place of the URL."""
    if parse_http_url(url) is None or not is_proxied(url):
        return ""
    return " (through the proxy of http_proxy, https_proxy or all_proxy; no_proxy=HOST goes without it)"


def _get_auth(credentials: Credentials, timeout: float) -> tuple[str, str]:
    url = credentials.auth_url
    storage_url: str | None
    token: str | None
    there = ""
    try:
        if credentials.version == "1.0":
            storage_url, token = _get_version_1(credentials, timeout)
        else:
            storage_url, token, there = _get_keystone(credentials, timeout)
        if not isinstance(storage_url, str | None) or not isinstance(token, str | None):
            raise TypeError("JSON may hold anything")
    except CLIENT_ERRORS as error:
        code, what = status_of_error(error), f"{describe_client_error(error)}{_name_proxy(url)}"
        if code in {401, 403}:
            raise AuthenticationError(
                f"{url}: authentication refused: {what}; what was sent: {_describe_sent(credentials)}"
            ) from None
        if code is not None:
            text = f"{url}: authentication failed, the answer was {what}"
            asked = field_of_error(error, "retry-after")
            if code == _BUSY_STATUS or (code == _UNAVAILABLE_STATUS and asked is not None):
                seconds = None if asked is None else parse_retry_after(asked)
                raise AuthenticationBusyError(text, seconds) from None
            raise AuthenticationError(text) from None
        raise ClusterError(f"{url}: cannot authenticate: {what}") from None
    # The libraries take what they are sent for what it should be.
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
        raise AuthenticationError(
            f"{url}: that was not the answer of an authentication service ({type(error).__name__})"
        ) from None
    if not storage_url and not credentials.storage_urls:
        region = f", region {credentials.region_name}" if credentials.region_name else ""
        kind = f" ({credentials.service_type}, {credentials.endpoint_type}{region})"
        raise AuthenticationError(
            f"{url}: authentication gave no storage URL{'' if credentials.version == '1.0' else kind + there}"
        )
    if not token:
        raise AuthenticationError(f"{url}: authentication gave no token")
    return storage_url or "", token


def _get_version_1(credentials: Credentials, timeout: float) -> tuple[str | None, str | None]:
    """Return storage URL and token as python-swiftclient does, which would follow redirects to anywhere."""
    with contextlib.closing(
        SwiftConnection(
            credentials.auth_url,
            within_origin=True,
            insecure=credentials.insecure,
            cacert=credentials.ca_file,
            cert=credentials.certificate,
            cert_key=credentials.certificate_key,
            timeout=timeout,
        )
    ) as connection:
        fields = {"X-Auth-User": credentials.user, "X-Auth-Key": credentials.key}
        connection.request("GET", connection.parsed_url.path, "", fields)
        answer = connection.getresponse()
        body = answer.read()
        url = answer.getheader("x-storage-url")
        # A page of something else is a success too.
        if not 200 <= answer.status < 300 or (body and not url):
            raise swiftclient.ClientException.from_response(answer, "authentication", body)
        return url, answer.getheader("x-storage-token", answer.getheader("x-auth-token"))


def open_keystone_session(credentials: Credentials, timeout: float) -> Any:
    """Return a session of keystoneauth, which authenticates with its first request."""
    certificate = credentials.certificate
    return keystoneauth1.session.Session(
        auth=_keystone_plugin(credentials),
        session=OriginSession(),
        verify=False if credentials.insecure else credentials.ca_file or True,
        cert=(certificate, credentials.certificate_key)
        if certificate and credentials.certificate_key
        else certificate,
        timeout=timeout,
    )


def _get_keystone(credentials: Credentials, timeout: float) -> tuple[str | None, str | None, str]:
    """Return storage URL and token, and without the former what the catalogue has in its place."""
    session = open_keystone_session(credentials, timeout)
    url = None
    with contextlib.suppress(keystoneauth1.exceptions.CatalogException):
        url = session.get_endpoint(
            service_type=credentials.service_type,
            interface=credentials.endpoint_type,
            region_name=credentials.region_name,
        )
    there = "" if url else _describe_catalog(session.auth.get_access(session).service_catalog, credentials)
    return url, session.get_token(), there


def _describe_catalog(catalog: Any, credentials: Credentials) -> str:
    """Say which regions, interfaces or services the catalogue has in place of what was looked for."""
    services: dict[str, list[Any]] = catalog.get_endpoints_data()
    kind, region = credentials.service_type, credentials.region_name
    there = services.get(kind, [])
    regions = {str(each.region_name) for each in there}
    if not there:
        return f"; the catalogue has {_list_names(services) or 'nothing'}"
    if region and region not in regions:
        return f"; the catalogue has {kind} in {_list_names(regions)}"
    interfaces = {str(each.interface) for each in there if not region or each.region_name == region}
    return f"; the catalogue has {kind} for the interface {_list_names(interfaces)}"


def _list_names(names: Iterable[str]) -> str:
    """Return names in order, some of very many."""
    first, *others = sorted(names, reverse=True)[-_MOST_NAMES:] or [""]
    return f"{', '.join(reversed(others))} and {first}" if others else first


def _describe_sent(credentials: Credentials) -> str:
    """Name what was sent to authenticate, for the user to see where that is from."""
    if credentials.version == "cloud":
        return f"what clouds.yaml has ({type(credentials.plugin).__name__})"
    if credentials.application_credential_id and credentials.version == "3":
        return f"the application credential {credentials.application_credential_id}"
    if credentials.token and credentials.version != "1.0":
        return "the token of OS_AUTH_TOKEN (--os-auth-token)"
    secret = "key" if credentials.version == "1.0" else "password"
    return f"the {secret} of user {credentials.user or credentials.user_id}"


def _keystone_plugin(credentials: Credentials) -> Any:
    if credentials.version == "cloud":
        # It keeps its token, which may be the one that was refused.
        credentials.plugin.invalidate()
        return credentials.plugin
    url, user = credentials.auth_url.rstrip("/"), credentials.user
    if not re.fullmatch(r"v\d+(\.\d+)?", url.rpartition("/")[2]):
        url += "/v2.0" if credentials.version == "2.0" else "/v3"
    if credentials.version == "2.0":
        project: dict[str, Any] = {
            "tenant_id": credentials.project_id,
            "tenant_name": credentials.project_name,
        }
        if credentials.token:
            return v2.Token(url, credentials.token, **project)
        # One way to name both, as the swift command has it.
        if user and ":" in user and not any(project.values()):
            project["tenant_name"], user = user.split(":", 1)
        name: dict[str, Any] = {"user_id": credentials.user_id} if credentials.user_id else {"username": user}
        return v2.Password(url, password=credentials.key, **name, **project)
    if credentials.application_credential_id:
        return v3.ApplicationCredential(
            url, credentials.application_credential_secret or "", credentials.application_credential_id
        )
    project = {
        "project_id": credentials.project_id,
        "project_name": credentials.project_name,
        "project_domain_id": credentials.project_domain_id,
        "project_domain_name": credentials.project_domain_name,
    }
    if credentials.token:
        return v3.Token(url, credentials.token, **project)
    return v3.Password(
        url,
        credentials.key or "",
        user_id=credentials.user_id,
        username=user,
        user_domain_id=credentials.user_domain_id,
        user_domain_name=credentials.user_domain_name,
        **project,
    )


def _call_within(seconds: float, url: str, call: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    """Return what ``call`` does, or raise what it raises; wait at most ``seconds`` for it.

    No time-out of a library covers the whole: each address of a host and each read has its own.
    """
    answers: queue.SimpleQueue[tuple[str, str] | BaseException] = queue.SimpleQueue()

    def put_answer() -> None:
        try:
            answers.put(call())
        except BaseException as error:  # noqa: BLE001 - it is raised again below, whatever it is
            answers.put(error)

    threading.Thread(target=put_answer, name="authenticate", daemon=True).start()
    try:
        answer = interruption.take_from_queue(answers, seconds)
    except queue.Empty:
        raise ClusterError(f"{url}: cannot authenticate: no answer within {seconds:g} s") from None
    if isinstance(answer, BaseException):
        raise answer
    return answer


def read_cloud_credentials(name: str, given: Credentials) -> Credentials:
    """Return the credentials of a cloud; region, endpoint and TLS options in ``given`` win.

    Raises UsageError when openstacksdk is not installed or the cloud cannot be used.
    """
    try:
        from openstack import exceptions  # noqa: PLC0415 - an extra
        from openstack.config import OpenStackConfig  # noqa: PLC0415
    except ImportError:
        raise UsageError(
            f"cloud {name!r} (--os-cloud, OS_CLOUD) needs openstacksdk:"
            f" {describe_install('openstacksdk', 'openstack')}"
        ) from None
    region: dict[str, Any] = {"region_name": given.region_name} if given.region_name else {}
    try:
        with warnings.catch_warnings():
            # They are for developers: it warns of its own arguments, whatever it is asked.
            warnings.simplefilter("ignore")
            cloud = OpenStackConfig().get_one(cloud=name, **region)
            verify, certificate = cloud.get_requests_verify_args()
    except (exceptions.SDKException, keystoneauth1.exceptions.ClientException, OSError) as error:
        raise UsageError(f"cloud {name!r}: {_one_line(error)}") from None
    except Exception as error:  # noqa: BLE001 - a file of the user's, read by PyYAML, jsonschema and others
        # Their texts may quote the file, with the password in it.
        raise UsageError(f"cloud {name!r}: clouds.yaml cannot be used ({type(error).__name__})") from None
    auth_url = cloud.config.get("auth", {}).get("auth_url")
    if auth_url:
        refuse_user_info(str(auth_url), f"cloud {name!r}: authentication URL")
    certificate, key = certificate if isinstance(certificate, tuple) else (certificate, None)
    interface = cloud.get_interface("object-store")
    own_urls = given.storage_urls or _read_override(name, cloud)
    return replace(
        given,
        version="cloud",
        auth_url=auth_url or f"cloud {name}",
        plugin=cloud.get_auth(),
        region_name=given.region_name or cloud.get_region_name() or None,
        service_type=given.service_type or cloud.get_service_type("object-store"),
        endpoint_type=given.endpoint_type or (interface if isinstance(interface, str) else "public"),
        storage_urls=own_urls,
        insecure=given.insecure or verify is False,
        ca_file=given.ca_file or (verify if isinstance(verify, str) else None),
        certificate=given.certificate or certificate,
        certificate_key=given.certificate_key or key,
    )


def _read_override(name: str, cloud: Any) -> tuple[str, ...]:
    """Return the storage URL that a cloud has in place of that of the catalogue, if it has one."""
    url = cloud.get_endpoint("object-store")
    if not url:
        return ()
    where = f"cloud {name!r}: object_store_endpoint_override"
    refuse_user_info(url, where)
    if parse_http_url(url) is None or "%(" in url:
        raise UsageError(
            f"{where}: expected a whole storage URL, not {redact_url(url)} (-S URL is taken instead)"
        )
    return (url.rstrip("/"),)


def _one_line(error: Any) -> str:
    return " ".join(str(error).split())
