"""Credentials from a ``clouds.yaml``, read with openstacksdk, which is an optional dependency."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import keystoneauth1.exceptions

from ssbench.base.errors import UsageError
from ssbench.base.urls import refuse_user_info
from ssbench.store.swift.credentials import Credentials


def read_cloud_credentials(name: str, given: Credentials) -> Credentials:
    """Return the credentials of a cloud; region, endpoint and TLS options in ``given`` win.

    Raises UsageError when openstacksdk is not installed or the cloud cannot be used.
    """
    try:
        from openstack import exceptions  # noqa: PLC0415 - an extra
        from openstack.config import OpenStackConfig  # noqa: PLC0415
    except ImportError:
        raise UsageError(
            f"cloud {name!r} (--os-cloud, OS_CLOUD) needs openstacksdk: pip install openstacksdk"
            " (or '.[openstack]' in a clone of ssbench)"
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
    return replace(
        given,
        version="cloud",
        auth_url=auth_url or f"cloud {name}",
        plugin=cloud.get_auth(),
        region_name=given.region_name or cloud.get_region_name() or None,
        service_type=given.service_type or cloud.get_service_type("object-store"),
        endpoint_type=given.endpoint_type or (interface if isinstance(interface, str) else "public"),
        insecure=given.insecure or verify is False,
        ca_file=given.ca_file or (verify if isinstance(verify, str) else None),
        certificate=given.certificate or certificate,
        certificate_key=given.certificate_key or key,
    )


def _one_line(error: Any) -> str:
    return " ".join(str(error).split())
