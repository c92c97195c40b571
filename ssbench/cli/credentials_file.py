"""``--credentials FILE``: a list of credentials, one for each of several accounts.

An entry has the names of the options of authentication (``user``, ``key``, ``os_password``, ...); what it
lacks comes from the command line and the environment. ``NAME_env`` is the variable that holds a value, so
that a file needs no secrets. Messages never show a value.
"""

from __future__ import annotations

import argparse
import copy
import logging
import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ssbench.cli import auth_options
from ssbench.errors import UsageError
from ssbench.scenario import text as scenario_text
from ssbench.suggestions import did_you_mean
from ssbench.swift.credentials import SECRET_VARIABLES, Credentials

_log = logging.getLogger(__name__)

#: How the key of a value ends that is in an environment variable.
_IN_VARIABLE = "_env"

#: What would hold for one account only.
_OF_ONE = ("OS_STORAGE_URL", "OS_AUTH_TOKEN", "OS_CLOUD")

_OTHERS_READ = stat.S_IRGRP | stat.S_IROTH

_MOST_BYTES = 1_000_000


def accounts_of(arguments: argparse.Namespace, environ: Mapping[str, str]) -> list[Credentials]:
    """Return the credentials of each account, none without a file.

    Raises UsageError, with a line for each fault of the file.
    """
    if arguments.credentials is None:
        return []
    if arguments.auth_storage_urls or arguments.auth_token:
        raise UsageError("--credentials names the accounts: leave out -S/--storage-url and -T/--token")
    path = arguments.credentials
    document = scenario_text.parse(_read(path))
    faults = list(document.faults)
    found: dict[int, Credentials] = {}
    entries = document.data
    if not faults and (not isinstance(entries, list) or not entries):
        faults.append(
            scenario_text.Fault(None, "expected a list of one entry or more, such as - {user: ...}")
        )
    options = {option.key: option for option in auth_options.OPTIONS}
    secret = False
    for number, entry in enumerate(entries if isinstance(entries, list) else []):
        line = document.lines.get((number,))
        wrong = [*_wrong(entry, options, environ)]
        faults += [scenario_text.Fault(line, f"entry {number + 1}: {each}") for each in wrong]
        if wrong:
            continue
        own = copy.copy(arguments)
        for key, value in entry.items():
            name = key.removesuffix(_IN_VARIABLE) if key not in options else key
            secret |= name == key and options[name].variable in SECRET_VARIABLES
            setattr(own, options[name].destination, value if name == key else environ[value])
        others = {name: value for name, value in environ.items() if name not in _OF_ONE}
        try:
            made = auth_options.from_arguments(own, others)
        except UsageError as error:
            faults.append(scenario_text.Fault(line, f"entry {number + 1}: {error}"))
            continue
        if same := next((other for other, each in found.items() if each == made), 0):
            faults.append(scenario_text.Fault(line, f"entry {number + 1}: the same as entry {same}"))
        found[number + 1] = made
    if faults:
        raise UsageError("\n".join(f"{path}{f':{line}' if line else ''}: {text}" for line, text in faults))
    if secret and path.stat().st_mode & _OTHERS_READ:
        _log.warning("%s holds secrets, and other users of this machine can read it (chmod 600)", path)
    if len(found) == 1:
        return [*found.values()]
    return [replace(each, name=f"credentials {number}") for number, each in found.items()]


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise UsageError(f"{path}: expected a list of credentials of at most {_MOST_BYTES} bytes")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"--credentials {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"--credentials {path}: expected UTF-8 text") from None


def _wrong(entry: object, options: Mapping[str, object], environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the faults of an entry."""
    if not isinstance(entry, dict) or not entry:
        yield "expected a mapping such as {user: ..., key_env: ...}"
        return
    for key, value in entry.items():
        name = str(key).removesuffix(_IN_VARIABLE)
        if key not in options and (name == key or name not in options):
            yield f"unknown key {key!r:.60}{did_you_mean(str(key), options)}"
        elif not isinstance(value, str) or not value:
            yield f"{key}: expected a text, in quotes where it is a number"
        elif key in options:
            if f"{key}{_IN_VARIABLE}" in entry:
                yield f"{key}: expected this or {key}{_IN_VARIABLE}, not both"
        elif not environ.get(value):
            yield f"{key}: the environment has no variable {value!r:.60}"
