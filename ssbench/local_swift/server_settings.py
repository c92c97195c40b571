"""Settings and filters of the embedded Swift's servers, by the names that Swift's documentation uses.

A setting names the file, the section and the key: ``proxy-server:filter:slo:concurrency=8``. A filter is
placed where Swift's documentation says that it belongs, with the settings that it cannot work without. What
would have no effect, or is decided by who starts the servers, is refused.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ssbench.base.errors import UsageError, did_you_mean
from ssbench.base.untrusted import TooMuchError, read_small_file

#: Options of one paste section, by name.
SectionOptions = Mapping[str, str]

#: Sections of one configuration file, by name.
FileSections = dict[str, dict[str, str]]

#: The configuration files that settings may be for, by what Swift calls them.
SERVER_FILES = ("proxy-server", "account-server", "container-server", "object-server")
CONSTRAINTS_FILE = "swift"
_ALL_SERVERS = "*"

_CONSTRAINTS_SECTION = "swift-constraints"
_PIPELINE = "pipeline:main"

#: Sections that the embedded Swift has for itself, besides its pipelines.
_OWN_SECTIONS = {_PIPELINE, "filter:faults", "filter:local_cache", "filter:recon"}

#: Keys that decide where servers are and who starts them, and what is said instead of a value.
_OWN_KEYS = {
    "bind_ip": "--bind-ip says where the proxies listen",
    "bind_port": "--port says where the first proxy listens",
    "workers": "each server is one process; --proxies and --object-servers have more of them",
    "devices": "--devices says how many there are",
    "servers_per_port": "--object-servers says how many processes there are",
    **dict.fromkeys(("use", "paste.filter_factory", "paste.app_factory"), "--swift-config +NAME adds one"),
    **dict.fromkeys(
        (
            *("swift_dir", "user", "log_address", "log_custom_handlers", "log_name", "bind_timeout"),
            *("cert_file", "key_file", "nice_priority", "ionice_class", "ionice_priority", "keep_idle"),
            *("mount_check", "fallocate_reserve", "disable_fallocate"),
        ),
        "the embedded Swift decides that",
    ),
}

_SETTING_PATTERN = re.compile(r"([^:=\s]+):([^=]+):([^:=\s]+)=(.*)\Z", re.DOTALL)
_EXPECTED_SETTING = "expected FILE:SECTION:KEY=VALUE, as in proxy-server:filter:slo:concurrency=8"


@dataclass(frozen=True, slots=True)
class ServerSetting:
    """A value of one key in one section of the configuration of servers."""

    file: str  # one of SERVER_FILES, CONSTRAINTS_FILE, or * for all servers
    section: str  # "app" is the section of the server itself
    key: str
    value: str

    @classmethod
    def parse(cls, text: str) -> ServerSetting:
        """Read ``FILE:SECTION:KEY=VALUE``; raises UsageError for what no Swift can be told."""
        found = _SETTING_PATTERN.match(text)
        if found is None:
            raise UsageError(f"setting {text[:200]!r}: {_EXPECTED_SETTING}")
        file, section, key, value = found.groups()
        file = file.removesuffix(".conf")
        made = cls(file, section, key, value)
        files = (*SERVER_FILES, CONSTRAINTS_FILE, _ALL_SERVERS)
        if file not in files:
            hint = did_you_mean(file, files)
            raise UsageError(f"{made.place}: expected one of {', '.join(files)}, not {file!r}{hint}")
        if "\n" in text or "\r" in text:
            raise UsageError(f"{made.place}: a value is one line")
        if reason := _OWN_KEYS.get(key):
            raise UsageError(f"{made.place}: cannot be set: {reason}")
        return made

    @property
    def place(self) -> str:
        """``FILE:SECTION:KEY``."""
        return f"{self.file}:{self.section}:{self.key}"

    def __str__(self) -> str:
        return f"{self.place}={self.value}"


# -- Filters ---------------------------------------------------------------------------------------


#: A fixed key, so that a folder which is served again can be read: 32 bytes, as base64.
_ROOT_SECRET = base64.b64encode(b"the embedded Swift of ssbench".ljust(32, b".")).decode()


@dataclass(frozen=True, slots=True)
class FilterRow:
    """What is known of a filter that can be added to the pipeline of proxies."""

    before: str  # the first of the embedded Swift's filters that it stands before
    section: str  # what Swift's documentation calls its section
    settings: SectionOptions = field(default_factory=dict)  # what it cannot work without
    needs: str = ""  # a key that only the user can know
    companion: str = ""  # a filter that it cannot work without, and which stands right before it


#: By the names of entry points, in the order of the pipeline in Swift's proxy-server.conf-sample and, where
#: that is silent, in the documentation of the filter.
FILTERS: Mapping[str, FilterRow] = {
    "xprofile": FilterRow("local_cache", "xprofile"),
    "name_check": FilterRow("local_cache", "name_check"),
    "crossdomain": FilterRow("local_cache", "crossdomain"),
    "cname_lookup": FilterRow("local_cache", "cname_lookup"),
    "domain_remap": FilterRow("local_cache", "domain_remap"),
    "memcache": FilterRow("local_cache", "cache", needs="memcache_servers"),
    "etag_quoter": FilterRow("listing_formats", "etag-quoter"),
    "list_endpoints": FilterRow("listing_formats", "list-endpoints"),
    "container_sync": FilterRow("bulk", "container_sync"),
    "read_only": FilterRow("authentication", "read_only"),
    "ratelimit": FilterRow("authentication", "ratelimit"),
    "formpost": FilterRow("authentication", "formpost"),
    "s3token": FilterRow("authentication", "s3token", needs="auth_uri"),
    "staticweb": FilterRow("copy", "staticweb"),
    "container_quotas": FilterRow("slo", "container-quotas"),
    "account_quotas": FilterRow("slo", "account-quotas"),
    "keymaster": FilterRow("", "keymaster", {"encryption_root_secret": _ROOT_SECRET}),
    "kms_keymaster": FilterRow("", "kms_keymaster", needs="keymaster_config_path"),
    "kmip_keymaster": FilterRow("", "kmip_keymaster", needs="keymaster_config_path"),
    "encryption": FilterRow("", "encryption", companion="keymaster"),
}

_KEYMASTERS = ("keymaster", "kms_keymaster", "kmip_keymaster")
_OTHER_AUTHENTICATION = ("keystoneauth", "authtoken")

_OTHER_FILTER_PATTERN = re.compile(r"(egg|paste):([A-Za-z0-9_.-]+)([#:])([A-Za-z0-9_.-]+)\Z")


@dataclass(frozen=True, slots=True)
class ServerFilter:
    """A filter in the pipeline of proxies."""

    name: str  # of its section
    options: SectionOptions
    before: str  # a filter of the pipeline, "authentication", or "" for the end
    needs: str = ""  # a key that has to be set
    entry_point: str = ""  # the name that a release of Swift has it by; empty: it is not Swift's

    @classmethod
    def parse(cls, text: str) -> ServerFilter:
        """Read the name of a filter of Swift's, ``egg:PACKAGE#NAME`` or ``paste:MODULE:FACTORY``.

        Raises UsageError.
        """
        name = text.replace("-", "_")
        name = "memcache" if name == "cache" else name
        if row := FILTERS.get(name):
            options = {"use": f"egg:swift#{name}", **row.settings}
            return cls(row.section, options, row.before, row.needs, name)
        if name in _OTHER_AUTHENTICATION:
            raise UsageError(f"filter {text}: the embedded Swift authenticates with tempauth")
        other = _OTHER_FILTER_PATTERN.match(text)
        if other and (other[1] == "egg") == (other[3] == "#"):
            use = {"use": text} if other[1] == "egg" else {"paste.filter_factory": f"{other[2]}:{other[4]}"}
            return cls(other[4], use, "authentication")
        raise UsageError(
            f"filter {text[:200]!r}: expected one of {', '.join(FILTERS)}, egg:PACKAGE#NAME or"
            f" paste:MODULE:FACTORY{did_you_mean(name, FILTERS)}"
        )


def make_filters(texts: Iterable[str]) -> list[ServerFilter]:
    """Return the filters of these names, with those that they cannot work without; raises UsageError."""
    names = [text.replace("-", "_") for text in texts]
    wanted = dict.fromkeys(texts)
    for row in [FILTERS[name] for name in names if name in FILTERS]:
        if row.companion and not any(name in _KEYMASTERS for name in names):
            wanted[row.companion] = None
    found = {each.name: each for each in map(ServerFilter.parse, wanted)}
    order = [row.section for row in FILTERS.values()]
    # Those of others come first, in the order that was asked for.
    return sorted(found.values(), key=lambda each: order.index(each.name) if each.name in order else -1)


def refuse_missing_filters(added: Iterable[ServerFilter], known: Collection[str], release: str) -> None:
    """Raise UsageError for a filter that is none of those of a release of Swift."""
    for each in added:
        if each.entry_point and each.entry_point not in known:
            raise UsageError(f"filter {each.name}: Swift {release} has none of this name")


def place_filters(
    pipeline: Mapping[str, SectionOptions], added: Sequence[ServerFilter], authentication: Collection[str]
) -> dict[str, SectionOptions]:
    """Return the filters of a pipeline with others ``added``; Swift's memcache replaces the cache of ours.

    ``pipeline`` are sections by the name of the filter, ``authentication`` those that know who somebody is.
    """
    found = dict(pipeline)
    for each in added:
        if each.name in found:
            raise UsageError(f"filter {each.name}: is in the pipeline already")
        names = [*found]
        first = {"authentication": min((names.index(name) for name in authentication), default=len(names))}
        place = first.get(each.before, names.index(each.before) if each.before in found else len(names))
        found = dict([*[*found.items()][:place], (each.name, each.options), *[*found.items()][place:]])
        if each.entry_point == "memcache":
            del found["local_cache"]
    return found


# -- Settings in the files -------------------------------------------------------------------------


def write_settings(
    file: str, sections: FileSections, settings: Iterable[ServerSetting], added: Iterable[ServerFilter] = ()
) -> None:
    """Write settings into the sections of a file; raises UsageError for a section that it does not have."""
    for each in settings:
        if each.file not in {file, _ALL_SERVERS}:
            continue
        app = f"app:{file}"
        section = app if each.section == "app" else each.section
        if section not in sections or section in _OWN_SECTIONS:
            if each.file == _ALL_SERVERS and section.startswith(("app:", "filter:")):
                raise UsageError(f"{each.place}: only app and DEFAULT are in all files")
            known = ["app", *(name for name in sections if name not in _OWN_SECTIONS and name != app)]
            hint = "" if file != "proxy-server" else "; --swift-config +NAME adds filters"
            if re.match(r"(account|container|object)-[a-z]+\Z", each.section):
                hint = "; Swift's daemons do not run here"
            raise UsageError(
                f"{each.place}: {file} has no section {each.section}, but {', '.join(known)}{hint}"
            )
        sections[section][each.key] = each.value
    # Paste takes the value of DEFAULT for a key that both have, but for one that is "set".
    for name, options in sections.items():
        if name != "DEFAULT":
            for key in [key for key in options if key in sections["DEFAULT"]]:
                options[f"set {key}"] = options.pop(key)
    for one in added:
        if one.needs and not {one.needs, f"set {one.needs}"} & sections[f"filter:{one.name}"].keys():
            raise UsageError(
                f"filter {one.name}: needs --swift-config {file}:filter:{one.name}:{one.needs}=VALUE"
            )


def apply_constraints(sections: FileSections, settings: Iterable[ServerSetting]) -> None:
    """Write settings into the sections of ``swift.conf``; raises UsageError for others than constraints."""
    for each in settings:
        if each.file != CONSTRAINTS_FILE:
            continue
        if each.section != _CONSTRAINTS_SECTION:
            raise UsageError(f"{each.place}: only {_CONSTRAINTS_SECTION} of swift.conf can be set")
        sections.setdefault(_CONSTRAINTS_SECTION, {})[each.key] = each.value


def find_unknown_keys(settings: Iterable[ServerSetting], package: Path) -> list[ServerSetting]:
    """Return those whose keys no module of a Swift in a folder has: it ignores them without a word.

    Filters of others may have any keys, and are left out. Raises OSError.
    """
    own = {f"filter:{row.section}" for row in FILTERS.values()} | {"app", "DEFAULT", _CONSTRAINTS_SECTION}
    left = [each for each in settings if each.section in own or each.section.startswith("app:")]
    if left:
        text = "".join(file.read_text(errors="replace") for file in package.rglob("*.py"))
        left = [each for each in left if not _is_known_key(each.key, text)]
    return left


def _is_known_key(key: str, code: str) -> bool:
    """Whether it is a text of the code, or begins with one that others are made of (``user_``)."""
    beginnings = [key[: place.end()] for place in re.finditer("_", key)]
    texts = [f"{each}{end}" for each in beginnings for end in ("'", '"', "%", "{")]
    # Of one word alone many other texts are made: "client", "log".
    words = [key, *(each[:-1] for each in beginnings[1:])]
    texts += [f"{each}{quote}" for each in words for quote in "'\""]
    return any(f"{quote}{text}" in code for text in texts for quote in "'\"")


# -- The file of --swift-config --------------------------------------------------------------------


_MAX_CONFIG_BYTES = 1_000_000
_CONFIG_KEYS = ("filters", "policies", "replicas", "release")
_EXPECTED_CONFIG = (
    "expected filters: [NAME, ...], policies: [NAME, ...], replicas, release and, by file and section,"
    " KEY: VALUE"
)


@dataclass(frozen=True, slots=True)
class SwiftConfig:
    """What a file says: settings and filters, as the options have them, and what there is one of."""

    settings: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    release: str = ""  # as in --local-swift=RELEASE
    policies: tuple[str, ...] = ()  # as in --policy, the default one first; empty: gold and silver
    replicas: int | None = None  # None: one


def read_swift_config(path: Path) -> SwiftConfig:
    """Read a file in YAML; raises UsageError."""
    import yaml  # noqa: PLC0415 - only where there is a file

    try:
        # Texts as they are written: Swift reads "yes" by itself.
        found = yaml.load(read_small_file(path, _MAX_CONFIG_BYTES), Loader=yaml.BaseLoader)  # noqa: S506 - makes texts, lists and mappings alone
    except (OSError, TooMuchError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise UsageError(f"{path}{where}: is not YAML: {getattr(error, 'problem', None) or error}") from None
    return parse_swift_config(found, str(path))


def parse_swift_config(found: object, path: str) -> SwiftConfig:
    """Return what such a file says, whose values are texts; raises UsageError, which begins with ``path``."""
    if not isinstance(found, dict):
        raise UsageError(f"{path}: {_EXPECTED_CONFIG}")
    files = dict(found)
    lists: list[tuple[str, ...]] = []
    for key in ("filters", "policies"):
        names = files.pop(key, [])
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise UsageError(f"{path}: {key}: expected a list of names")
        lists.append(tuple(names))
    release, replicas = files.pop("release", ""), files.pop("replicas", None)
    if not isinstance(release, str):
        raise UsageError(f"{path}: release: expected a version such as 2.37.4")
    if replicas is not None and not re.fullmatch("[1-9]", str(replicas)):
        raise UsageError(f"{path}: replicas: expected 1 to 9")
    number = None if replicas is None else int(str(replicas))
    return SwiftConfig(tuple(_list_settings(path, files)), lists[0], release, lists[1], number)


def _list_settings(path: str, files: Mapping[str, object]) -> Iterator[str]:
    for file, sections in files.items():
        for section, keys in _entries(path, file, sections):
            for key, value in _entries(path, f"{file}: {section}", keys):
                if not isinstance(value, str):
                    raise UsageError(f"{path}: {file}: {section}: {key}: expected a value")
                try:
                    yield str(ServerSetting.parse(f"{file}:{section}:{key}={value}"))
                except UsageError as error:
                    raise UsageError(f"{path}: {error}") from None


def _entries(path: str, where: str, found: object) -> Iterable[tuple[str, object]]:
    if not isinstance(found, dict):
        raise UsageError(f"{path}: {where}: {_EXPECTED_CONFIG}{did_you_mean(where, _CONFIG_KEYS)}")
    return found.items()
