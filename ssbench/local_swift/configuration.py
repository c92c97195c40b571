"""What an embedded Swift consists of, and its configuration files as text.

It has replicas, devices, servers and policies, of which some may be slow or failed. The settings and their
reasons: https://docs.openstack.org/swift/latest/config/ . One replica means that a backend that is taken out
for its errors has no stand-in, so the proxy takes one out for a second at most; nothing is preallocated,
because the "devices" are plain folders.
"""

from __future__ import annotations

import configparser
import io
import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from ssbench.base.errors import UsageError
from ssbench.local_swift import server_settings
from ssbench.local_swift.server_settings import SectionOptions, ServerFilter, ServerSetting

LISTINGS_SERVER = "listings"  # the process of the account and the container server
PROXY_SERVER = "proxy"

#: Before the server's application sees the request; where the object is opened (by every method), for this
#: request alone or for the whole process; and where a written object is put in its place.
DELAY_POINTS = ("request", "open", "block", "commit")

_UNIT_SECONDS = {"ms": 0.001, "s": 1.0}


@dataclass(frozen=True, slots=True)
class Policy:
    """A storage policy."""

    name: str
    data: int = 0  # data fragments; 0: it has replicas
    parity: int = 0  # parity fragments besides

    @classmethod
    def parse(cls, text: str) -> Policy:
        """Read ``NAME`` or ``NAME:ec:DATA+PARITY``; raises UsageError."""
        name, colon, kind = text.partition(":")
        if not re.fullmatch(r"[A-Za-z0-9-]+", name):
            raise UsageError(f"storage policy {name!r}: expected letters, digits and hyphens")
        if not colon:
            return cls(name)
        fragments = re.fullmatch(r"ec:([1-9]\d?)\+([1-9]\d?)", kind)
        if not fragments:
            raise UsageError(
                f"storage policy {text!r}: expected NAME or NAME:ec:DATA+PARITY, as in slim:ec:2+1"
            )
        return cls(name, int(fragments[1]), int(fragments[2]))


@dataclass(frozen=True, slots=True)
class Layout:
    """How many servers and devices there are, and whether the servers log every request.

    Device ``d1`` belongs to the first object server, ``d2`` to the second, and so on, round about.
    """

    replicas: int = 1
    devices: int | None = None  # None: as many as the servers and policies need
    object_servers: int = 1
    proxies: int = 1
    access_logs: bool = False

    def resolved(self, policies: Sequence[Policy]) -> Layout:
        """Return it with the number of devices; raises UsageError where they are too few."""
        needs = {
            f"{self.object_servers} object servers need": self.object_servers,
            f"{self.replicas} replicas need": self.replicas,
        }
        needs |= {
            f"storage policy {policy.name!r} ({policy.data}+{policy.parity}) needs": policy.data
            + policy.parity
            for policy in policies
            if policy.data
        }
        if self.devices is None:
            return replace(self, devices=max(needs.values()))
        for who, number in needs.items():
            if number > self.devices:
                raise UsageError(f"{who} at least {number} devices, not {self.devices}")
        return self

    @property
    def proxy_names(self) -> list[str]:
        """Names of the proxies' processes: ``proxy``, or ``proxy-1`` on where there are several."""
        return (
            [PROXY_SERVER]
            if self.proxies == 1
            else [f"{PROXY_SERVER}-{index + 1}" for index in range(self.proxies)]
        )

    @property
    def object_names(self) -> list[str]:
        """Names of the object servers' processes: ``object-1`` on."""
        return [f"object-{index + 1}" for index in range(self.object_servers)]

    @property
    def device_owners(self) -> dict[str, str]:
        """The object server of each device, both by name."""
        names = self.object_names
        return {f"d{index + 1}": names[index % len(names)] for index in range(self.devices or 0)}


@dataclass(frozen=True, slots=True)
class SlowTarget:
    """Delay a share of the requests to a device, a server or a proxy."""

    target: str
    delay: float  # seconds
    share: float = 1.0
    where: str | None = None  # None: ``request`` for a proxy, ``open`` for anything else

    @classmethod
    def parse(cls, text: str) -> SlowTarget:
        """Read ``TARGET:DELAY[:SHARE[:WHERE]]``, as in ``d3:30ms:0.33:open``; raises UsageError."""
        shape = r"([a-z0-9-]+):(\d+\.?\d*)(ms|s)(?::(\d*\.?\d+)(?::([a-z]+))?)?"
        found = re.fullmatch(shape, text)
        if not found:
            raise UsageError(
                f"slow {text!r}: expected TARGET:DELAY[:SHARE[:WHERE]], as in d3:30ms:0.33 or d3:1s:1:commit"
            )
        target, delay, unit, share, where = found.groups()
        slow = cls(target, float(delay) * _UNIT_SECONDS[unit], float(share or 1), where)
        if not 0 < slow.share <= 1:
            raise UsageError(f"slow {text!r}: the share of requests is above 0 and at most 1")
        return slow


def write_slow_targets(path: Path, slow: Iterable[SlowTarget]) -> None:
    """Have the servers that read ``path`` be slow from their next request on; raises OSError."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps([asdict(each) for each in slow]))
    # Servers must not read half of it, and know by the new inode that it has changed.
    new.replace(path)


def set_mounted(device: Path, mounted: bool) -> None:
    """Let Swift take the device's folder for mounted or not; raises OSError."""
    stub = device / ".ismount"
    if mounted:
        stub.touch()
    else:
        stub.unlink(missing_ok=True)


# -- The configuration files -----------------------------------------------------------------------


_LISTINGS_KINDS = ("account", "container")
_RECON_FILES = ("account.recon", "container.recon", "object.recon", "drive.recon")

#: How long servers wait for the account or container that they tell of a change, which is less than proxies
#: wait for them.
_UPDATE_TIMEOUTS = {"conn_timeout": "5", "node_timeout": "15"}
_OBJECT_UPDATE_TIMEOUTS = {**_UPDATE_TIMEOUTS, "container_update_timeout": "15"}


def make_tempauth_options(token_life: int) -> dict[str, SectionOptions]:
    """Swift's own v1 authentication, with the users that its documentation uses in examples."""
    users = {
        "user_admin_admin": "admin .admin .reseller_admin",
        "user_test_tester": "testing .admin",
        "user_test2_tester2": "testing2 .admin",
    }
    return {"tempauth": {"use": "egg:swift#tempauth", "token_life": str(token_life), **users}}


@dataclass(frozen=True, slots=True)
class SwiftConfiguration:
    """What the servers are to be."""

    directory: Path
    proxy_ip: str  # where the proxies listen
    storage_ip: str  # where the other servers listen
    policies: Sequence[Policy]
    layout: Layout
    ports: Mapping[str, int]  # port of each application: the proxies, account, container, object-1, ...
    #: Paste sections of the authentication, by name and in the order of the pipeline.
    authentication: Mapping[str, SectionOptions]
    #: Paste sections in front of the authentication, likewise.
    filters: Mapping[str, SectionOptions] = field(default_factory=dict)
    proxy_options: SectionOptions = field(default_factory=dict)
    object_options: SectionOptions = field(default_factory=dict)
    objects_in_memory: bool = False
    statsd_port: int | None = None
    settings: Sequence[ServerSetting] = ()
    added_filters: Sequence[ServerFilter] = ()  # in the pipeline of proxies

    @property
    def slow_file(self) -> Path:
        """The file in which the servers look for what is to be slow."""
        return self.directory / "etc" / "slow.json"

    def device(self, name: str) -> Path:
        """Return the folder in which an object server keeps device ``name``."""
        return self._devices(self.layout.device_owners[name]) / name

    def write(self) -> None:
        """Write every file that the servers read, with nothing slow or failed.

        Raises OSError, and UsageError where the directory has data of another layout.
        """
        owners = self.layout.device_owners
        self._check_layout()
        shutil.rmtree(self._cache_folder, ignore_errors=True)
        self._cache_folder.mkdir()
        for name in owners:
            for folder in (self._devices(LISTINGS_SERVER) / name, self.device(name)):
                folder.mkdir(parents=True, exist_ok=True)
                set_mounted(folder, True)
        etc = self.directory / "etc"
        etc.mkdir(exist_ok=True)
        write_slow_targets(self.slow_file, [])
        for role in (LISTINGS_SERVER, *self.layout.object_names):
            self._write_recon(role)
        for name, sections in self.make_files().items():
            _write_sections(etc / f"{name}.conf", sections)
        (etc / "rings.json").write_text(json.dumps(self._rings()))

    def make_files(self) -> dict[str, Mapping[str, SectionOptions]]:
        """Return the sections of each configuration file; raises UsageError for settings that do not fit."""
        object_options = {**_OBJECT_UPDATE_TIMEOUTS, **self.object_options}
        made = {
            **{role: ("proxy", self._proxy(role)) for role in self.layout.proxy_names},
            **{
                kind: (kind, self._backend(kind, kind, LISTINGS_SERVER, _UPDATE_TIMEOUTS))
                for kind in _LISTINGS_KINDS
            },
            **{
                role: ("object", self._backend("object", role, role, object_options))
                for role in self.layout.object_names
            },
        }
        files: dict[str, Mapping[str, SectionOptions]] = {}
        for name, (kind, sections) in made.items():
            own = {section: dict(options) for section, options in sections.items()}
            added = self.added_filters if kind == "proxy" else ()
            server_settings.write_settings(f"{kind}-server", own, self.settings, added)
            files[name] = own
        constraints = {section: dict(options) for section, options in self._swift().items()}
        server_settings.apply_constraints(constraints, self.settings)
        return {"swift": constraints, **files}

    @property
    def _cache_folder(self) -> Path:
        return self.directory / "cache"

    def _check_layout(self) -> None:
        """Note where the data are to be, or compare with what was noted when they were written."""
        path = self.directory / "layout.json"
        layout = {"replicas": self.layout.replicas, "devices": self.layout.device_owners}
        if path.exists() and (there := json.loads(path.read_text())) != layout:
            raise UsageError(
                f"{self.directory}: holds the data of a Swift with {there['replicas']} replicas and"
                f" {len(there['devices'])} devices of {len(set(there['devices'].values()))} object servers,"
                " whose objects another one would not find: use the same numbers, or another directory"
            )
        path.write_text(json.dumps(layout))

    def _devices(self, process: str) -> Path:
        return self.directory / "node" / process

    def _write_recon(self, process: str) -> None:
        """Make the files in which Swift's daemons leave what they have found: nothing, none of them runs."""
        folder = self.directory / "recon" / process
        folder.mkdir(parents=True, exist_ok=True)
        for name in _RECON_FILES:
            (folder / name).write_text("{}")

    def _rings(self) -> dict[str, object]:
        """Describe the rings by name; devices have no zones, so replicas go to any of them."""
        # Partitions enough that every choice of three of four devices occurs; one device needs no choice. Of
        # six or more a new ring makes few choices: two sets of three of six devices.
        part_power = 2 if len(self.layout.device_owners) == 1 else 8

        def ring(replicas: int, app_of: Mapping[str, str]) -> dict[str, object]:
            devices = [
                {"device": device, "ip": self.storage_ip, "port": self.ports[app]}
                for device, app in app_of.items()
            ]
            return {"part_power": part_power, "replicas": replicas, "devices": devices}

        owners = self.layout.device_owners
        rings: dict[str, object] = {
            kind: ring(self.layout.replicas, dict.fromkeys(owners, kind)) for kind in _LISTINGS_KINDS
        }
        for index, policy in enumerate(self.policies):
            replicas = policy.data + policy.parity or self.layout.replicas
            rings[f"object-{index}" if index else "object"] = ring(replicas, owners)
        return rings

    def _swift(self) -> dict[str, SectionOptions]:
        sections: dict[str, SectionOptions] = {
            # A fixed salt: a folder that is served again must still find its objects.
            "swift-hash": {"swift_hash_path_suffix": "ssbench", "swift_hash_path_prefix": "ssbench"},
        }
        for index, policy in enumerate(self.policies):
            options = {"name": policy.name, "default": "yes" if index == 0 else "no"}
            if policy.data:
                options |= {
                    "policy_type": "erasure_coding",
                    "ec_type": "liberasurecode_rs_vand",
                    "ec_num_data_fragments": str(policy.data),
                    "ec_num_parity_fragments": str(policy.parity),
                }
            sections[f"storage-policy:{index}"] = options
        return sections

    def _default(self, kind: str, role: str) -> dict[str, str]:
        statsd = {}
        if self.statsd_port is not None:
            statsd = {
                "log_statsd_host": "127.0.0.1",
                "log_statsd_port": str(self.statsd_port),
                "log_statsd_metric_prefix": role,
            }
        return {
            "bind_ip": self.proxy_ip if kind == "proxy" else self.storage_ip,
            "bind_port": str(self.ports.get(role, 0)),  # 0: it is not chosen yet
            "swift_dir": str(self.directory / "etc"),
            "mount_check": "true",
            "fallocate_reserve": "0",
            "disable_fallocate": "true",
            "workers": "0",
            "log_name": f"{kind}-server",
            "log_level": "INFO" if self.layout.access_logs else "WARNING",
            "log_custom_handlers": "ssbench.local_swift._serve.log_to_stderr",
            **statsd,
        }

    def _backend(
        self, kind: str, role: str, process: str, options: SectionOptions
    ) -> dict[str, SectionOptions]:
        egg = "mem_object" if kind == "object" and self.objects_in_memory else kind
        filters = {
            "recon": {
                "use": "egg:swift#recon",
                "recon_cache_path": str(self.directory / "recon" / process),
            },
            "faults": self._faults(process),
        }
        if kind != "object":
            del filters["faults"]
        app = {
            "use": f"egg:swift#{egg}",
            "log_requests": "true" if self.layout.access_logs else "false",
            **options,
        }
        return {
            "DEFAULT": self._default(kind, role) | {"devices": str(self._devices(process))},
            "pipeline:main": {"pipeline": " ".join([*filters, f"{kind}-server"])},
            f"app:{kind}-server": app,
            **{f"filter:{name}": options for name, options in filters.items()},
        }

    def _faults(self, process: str) -> dict[str, str]:
        return {
            "paste.filter_factory": "ssbench.local_swift._serve:make_faults_filter",
            "path": str(self.slow_file),
            "server": process,
        }

    def _proxy(self, role: str) -> dict[str, SectionOptions]:
        logging: dict[str, SectionOptions] = (
            {"proxy-logging": {"use": "egg:swift#proxy_logging"}} if self.layout.access_logs else {}
        )
        front = {
            "catch_errors": {"use": "egg:swift#catch_errors"},
            "gatekeeper": {"use": "egg:swift#gatekeeper"},
            "healthcheck": {"use": "egg:swift#healthcheck"},
            **logging,
            "faults": self._faults(role),
            "local_cache": self._cache(),
            "listing_formats": {"use": "egg:swift#listing_formats"},
            "bulk": {"use": "egg:swift#bulk"},
            "tempurl": {"use": "egg:swift#tempurl"},
        }
        back = {
            "copy": {"use": "egg:swift#copy"},
            # s3api would leave the parts of a deleted object to the expirer, and none runs here.
            "slo": {
                "use": "egg:swift#slo",
                "rate_limit_under_size": "0",
                "allow_async_delete": "false",
            },
            "dlo": {"use": "egg:swift#dlo"},
            "versioned_writes": {
                "use": "egg:swift#versioned_writes",
                "allow_versioned_writes": "true",
                "allow_object_versioning": "true",
            },
            "symlink": {"use": "egg:swift#symlink"},
        }
        # Before what knows tokens only. Where Keystone authenticates, it has a place of its own.
        s3api: dict[str, SectionOptions] = {}
        if "tempauth" in self.authentication:
            # Filters of one's own are no reason to refuse the pipeline.
            s3api["s3api"] = {"use": "egg:swift#s3api", "auth_pipeline_check": "false"}
        filters: dict[str, SectionOptions] = {
            **front,
            **self.filters,
            **s3api,
            **self.authentication,
            **back,
        }
        filters = server_settings.place_filters(filters, self.added_filters, self.authentication)
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
            "DEFAULT": self._default("proxy", role),
            # The second proxy-logging is for requests that middleware makes by itself.
            "pipeline:main": {"pipeline": " ".join([*filters, *logging, "proxy-server"])},
            "app:proxy-server": app,
            **{f"filter:{name}": options for name, options in filters.items()},
        }

    def _cache(self) -> dict[str, str]:
        options = {"paste.filter_factory": "ssbench.local_swift._cache:make_cache_filter"}
        if self.layout.proxies > 1:
            options["folder"] = str(self._cache_folder)
        return options


def _write_sections(path: Path, sections: Mapping[str, SectionOptions]) -> None:
    parser = configparser.RawConfigParser(default_section="no section has this name")
    parser.optionxform = str  # type: ignore[assignment,method-assign] # as its own documentation has it
    parser.read_dict(sections)
    text = io.StringIO()
    parser.write(text)
    path.write_text(text.getvalue())
