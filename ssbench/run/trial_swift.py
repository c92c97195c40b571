"""How a Swift that runs start on this machine is configured, as the stat file and comparisons have it.

The package that starts it reads the texts; here they only get the names by which reports call them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: The text for cores that servers and load share.
SHARED_CORES = "all"

#: What the value of a key like this is replaced by in stat files and reports.
_HIDDEN_VALUE = "(hidden)"
_SECRET_PATTERN = re.compile(r"secret|passw|passphrase|\Auser_|\Auser64_|(\A|_)(key|token)\Z")

_VERSION_PATTERN = re.compile(r"\d{1,3}(\.\d{1,3}){1,3}((a|b|rc)\d{1,3})?\Z")


def is_release(text: str) -> bool:
    """Tell whether a text is the number of a release, and not the path of a Python or of a checkout."""
    return _VERSION_PATTERN.match(text) is not None


def names_settings_file(text: str) -> bool:
    """Tell whether a text is the name of a file with the settings of a Swift."""
    return text.endswith((".yaml", ".yml"))


def hide_secret_setting(text: str) -> str:
    """Return what ``--swift-config`` says, without the value of a secret."""
    place, equals, _ = text.partition("=")
    return f"{place}={_HIDDEN_VALUE}" if equals and _SECRET_PATTERN.search(place.rpartition(":")[2]) else text


def names_swift(text: str) -> bool:
    """Tell whether a text stands for a Swift to be started: a release, a path, or a file with its settings.

    None is the name of a storage policy, in which Swift allows letters, digits and hyphens only.
    """
    if "://" in text or text.startswith("@"):
        return False
    return is_release(text) or names_settings_file(text) or "/" in text


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSwift:
    """A Swift that is started on this machine: what is asked for, besides what it has anyway."""

    settings: tuple[str, ...] = ()  # FILE:SECTION:KEY=VALUE, of which a later one replaces an earlier one
    filters: tuple[str, ...] = ()  # names of filters in the pipeline of its proxies
    #: A version of PyPI, the path of a Python or a checkout; empty: the Swift that is installed here.
    release: str = ""
    policies: tuple[str, ...] = ()  # NAME or NAME:ec:DATA+PARITY, the default one first; empty: gold, silver
    replicas: int = 1
    version: str = ""  # the version that it has, known once it runs
    access_logs: bool = False  # its servers log each request
    #: The cores that its servers have to themselves, as 0-1,3; "all": they share all with the load; empty: as
    #: the machine has cores.
    cores: str = ""

    def __str__(self) -> str:
        return self.version or self.release or "the Swift that is installed here"

    @property
    def has_own_cores(self) -> bool:
        """Whether its servers are kept from the cores of the load."""
        return self.cores not in {"", SHARED_CORES}

    def describe(self) -> dict[str, str]:
        """Return what is set, by the names that reports have; the values of secrets are hidden."""
        version = {"version": self.version} if self.version else {}
        filters = {f"filter {name}": "added" for name in self.filters}
        policies = {"policies": ", ".join(self.policies)} if self.policies else {}
        replicas = {"replicas": str(self.replicas)} if self.replicas > 1 else {}
        cores = {"cores": self.cores} if self.has_own_cores else {}
        settings = dict(_describe_setting(each) for each in self.settings)
        return {**version, **policies, **replicas, **cores, **filters, **settings}


def _describe_setting(text: str) -> tuple[str, str]:
    """Return ``slo.concurrency``, ``object-server.splice`` or ``object-server.DEFAULT.x``, and the value."""
    place, _, value = text.partition("=")
    file, _, rest = place.partition(":")
    section, _, key = rest.rpartition(":")
    kind, _, name = section.partition(":")
    if kind == "filter":
        title = name if file == "proxy-server" else f"{file}.{name}"
    else:
        title = file if kind in {"app", "swift-constraints"} else f"{file}.{section}"
    return f"{title}.{key}", _HIDDEN_VALUE if _SECRET_PATTERN.search(key) else value
