"""The configuration files of the embedded Swift, as text.

The settings and their reasons: https://docs.openstack.org/swift/latest/config/ . One replica means
that a backend that is taken out for its errors has no stand-in, so the proxy never takes one out;
nothing is preallocated and no mount is checked, because the "devices" are plain folders.
"""

from __future__ import annotations

import configparser
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: Options of one paste section, by name.
Options = Mapping[str, str]

LISTINGS = "listings"  # the process of the account and the container server
PROXY = "proxy"


def object_role(index: int) -> str:
    """Name of the process of object server ``index``, which owns device ``d<index + 1>``."""
    return f"object-{index + 1}"


def tempauth(token_life: int) -> dict[str, Options]:
    """Swift's own v1 authentication, with the users that its documentation uses in examples."""
    users = {
        "user_admin_admin": "admin .admin .reseller_admin",
        "user_test_tester": "testing .admin",
        "user_test2_tester2": "testing2 .admin",
    }
    return {"tempauth": {"use": "egg:swift#tempauth", "token_life": str(token_life), **users}}


@dataclass(frozen=True, slots=True)
class Configuration:
    """What the servers are to be.

    ``ports`` maps each application (proxy, account, container, object-1, ...) to its port.
    ``filters`` are paste sections that stand in front of the authentication, ``authentication``
    those of it, each by name and in the order of the pipeline.
    """

    directory: Path
    bind_ip: str
    policies: Sequence[str]
    object_roles: Sequence[str]
    ports: Mapping[str, int]
    authentication: Mapping[str, Options]
    filters: Mapping[str, Options] = field(default_factory=dict)
    proxy_options: Options = field(default_factory=dict)
    object_options: Options = field(default_factory=dict)
    objects_in_memory: bool = False

    def write(self) -> None:
        """Write every file that the servers read; raises OSError."""
        for index in range(len(self.object_roles)):
            (self.directory / "node" / f"d{index + 1}").mkdir(parents=True, exist_ok=True)
        etc = self.directory / "etc"
        etc.mkdir(exist_ok=True)
        _write(etc / "swift.conf", self._swift())
        _write(etc / "proxy.conf", self._proxy())
        for kind in ("account", "container"):
            _write(etc / f"{kind}.conf", self._backend(kind, kind, {}))
        for role in self.object_roles:
            _write(etc / f"{role}.conf", self._backend("object", role, self.object_options))
        rings = {
            "account": ["account"],
            "container": ["container"],
            "object": list(self.object_roles),
        }
        devices = {
            kind: [{"ip": self.bind_ip, "port": self.ports[role]} for role in roles]
            for kind, roles in rings.items()
        }
        (etc / "devices.json").write_text(json.dumps({"policies": len(self.policies), "devices": devices}))

    def _swift(self) -> dict[str, Options]:
        sections: dict[str, Options] = {
            # A fixed salt: a folder that is served again must still find its objects.
            "swift-hash": {"swift_hash_path_suffix": "ssbench", "swift_hash_path_prefix": "ssbench"},
        }
        for index, name in enumerate(self.policies):
            sections[f"storage-policy:{index}"] = {"name": name, "default": "yes" if index == 0 else "no"}
        return sections

    def _default(self, role: str) -> dict[str, str]:
        return {
            "bind_ip": self.bind_ip,
            "bind_port": str(self.ports[role]),
            "swift_dir": str(self.directory / "etc"),
            "devices": str(self.directory / "node"),
            "mount_check": "false",
            "fallocate_reserve": "0",
            "disable_fallocate": "true",
            "workers": "0",
            "log_level": "WARNING",
            "log_custom_handlers": "ssbench.local_swift._log.log_to_stderr",
        }

    def _backend(self, kind: str, role: str, options: Options) -> dict[str, Options]:
        egg = "mem_object" if kind == "object" and self.objects_in_memory else kind
        app = {"use": f"egg:swift#{egg}", "log_requests": "false", **options}
        return {
            "DEFAULT": self._default(role),
            "pipeline:main": {"pipeline": f"{kind}-server"},
            f"app:{kind}-server": app,
        }

    def _proxy(self) -> dict[str, Options]:
        front = {
            "catch_errors": {"use": "egg:swift#catch_errors"},
            "gatekeeper": {"use": "egg:swift#gatekeeper"},
            "healthcheck": {"use": "egg:swift#healthcheck"},
            "dictionary_cache": {"paste.filter_factory": "ssbench.local_swift._cache:filter_factory"},
            "listing_formats": {"use": "egg:swift#listing_formats"},
            "bulk": {"use": "egg:swift#bulk"},
            "tempurl": {"use": "egg:swift#tempurl"},
        }
        back = {
            "copy": {"use": "egg:swift#copy"},
            "slo": {"use": "egg:swift#slo", "rate_limit_under_size": "0"},
            "dlo": {"use": "egg:swift#dlo"},
            "versioned_writes": {"use": "egg:swift#versioned_writes", "allow_versioned_writes": "true"},
            "symlink": {"use": "egg:swift#symlink"},
        }
        filters: dict[str, Options] = {**front, **self.filters, **self.authentication, **back}
        app = {
            "use": "egg:swift#proxy",
            "account_autocreate": "true",
            "conn_timeout": "5",
            "node_timeout": "20",
            "error_suppression_interval": "1",
            "error_suppression_limit": "1000000",
            **self.proxy_options,
        }
        return {
            "DEFAULT": self._default(PROXY),
            "pipeline:main": {"pipeline": " ".join([*filters, "proxy-server"])},
            "app:proxy-server": app,
            **{f"filter:{name}": options for name, options in filters.items()},
        }


def _write(path: Path, sections: Mapping[str, Options]) -> None:
    parser = configparser.RawConfigParser(default_section="no section has this name")
    parser.optionxform = str  # type: ignore[assignment,method-assign] # as its own documentation has it
    parser.read_dict(sections)
    text = io.StringIO()
    parser.write(text)
    path.write_text(text.getvalue())
