"""``--credentials FILE``: a list of credentials, one for each of several accounts.

An entry has the names of the options of authentication (``user``, ``key``, ``os_password``, ...); what it
lacks comes from the command line and the environment. ``NAME_env`` is the variable that holds a value, so
that a file needs no secrets. Messages never show a value.
"""

from __future__ import annotations

import argparse
import copy
import logging
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench.base.errors import UsageError, did_you_mean
from ssbench.base.untrusted import TooMuchError, read_small_file
from ssbench.cli import auth_options
from ssbench.scenario import parsed_text as scenario_text

if TYPE_CHECKING:
    from ssbench.store.stores import Credentials

_log = logging.getLogger(__name__)

#: How the key of a value ends that is in an environment variable.
_VARIABLE_SUFFIX = "_env"

#: Under which name the same may come from the command line or the environment, where an entry wins over it.
_OTHER_NAMES = {
    "OS_AUTH_URL": "ST_AUTH",
    "OS_USERNAME": "ST_USER",
    "OS_USER_ID": "ST_USER",
    "OS_PASSWORD": "ST_KEY",
    "OS_IDENTITY_API_VERSION": "ST_AUTH_VERSION",
}

#: Keys of which a message shows the text: others may hold a value.
_SHOWN_KEY_PATTERN = re.compile(r"[a-z_]{1,40}\Z", re.ASCII)

#: What would hold for one account only.
_SINGLE_ACCOUNT_VARIABLES = ("OS_STORAGE_URL", "OS_AUTH_TOKEN", "OS_CLOUD")

_OTHERS_READ_BITS = stat.S_IRGRP | stat.S_IROTH

_MAX_BYTES = 1_000_000


def read_account_credentials(arguments: argparse.Namespace, environ: Mapping[str, str]) -> list[Credentials]:
    """Return the credentials of each account, none without a file.

    Raises UsageError, with a line for each fault of the file.
    """
    if arguments.credentials is None:
        return []
    from ssbench.store.stores import SECRET_VARIABLES

    if arguments.auth_storage_urls or arguments.auth_token:
        raise UsageError("--credentials names the accounts: leave out -S/--storage-url and -T/--token")
    path = arguments.credentials
    document = scenario_text.parse_scenario_text(_read_entries(path))
    faults = list(document.faults)
    found: dict[int, Credentials] = {}
    entries = document.data
    if not faults and (not isinstance(entries, list) or not entries):
        faults.append(
            scenario_text.Fault(None, "expected a list of one entry or more, such as - {user: ...}")
        )
    options = {option.key: option for option in auth_options.AUTH_OPTIONS}
    secret = False
    for number, entry in enumerate(entries if isinstance(entries, list) else []):
        line = document.lines.get((number,))
        wrong = [*_list_faults(entry, options, environ)]
        faults += [scenario_text.Fault(line, f"entry {number + 1}: {each}") for each in wrong]
        if wrong:
            continue
        secret |= any(key in options and options[key].variable in SECRET_VARIABLES for key in entry)
        try:
            made = _make_entry_credentials(entry, options, arguments, environ)
        except UsageError as error:
            faults.append(scenario_text.Fault(line, f"entry {number + 1}: {error}"))
            continue
        if same := next((other for other, each in found.items() if each == made), 0):
            faults.append(scenario_text.Fault(line, f"entry {number + 1}: the same as entry {same}"))
        found[number + 1] = made
    if faults:
        raise UsageError(scenario_text.format_faults(str(path), faults))
    if secret and path.stat().st_mode & _OTHERS_READ_BITS:
        _log.warning("%s holds secrets, and other users of this machine can read it (chmod 600)", path)
    if environ is os.environ and isinstance(entries, list):
        _remove_variables(entries)
    if len(found) == 1:
        return [*found.values()]
    return [replace(each, name=f"credentials {number}") for number, each in found.items()]


def _make_entry_credentials(
    entry: Mapping[str, str],
    options: Mapping[str, auth_options.AuthOption],
    arguments: argparse.Namespace,
    environ: Mapping[str, str],
) -> Credentials:
    """Return the credentials of an entry; raises UsageError where something is missing."""
    own = copy.copy(arguments)
    names = {key: key if key in options else key.removesuffix(_VARIABLE_SUFFIX) for key in entry}
    variables = {options[name].variable for name in names.values()}
    hidden = {_OTHER_NAMES[variable] for variable in variables & _OTHER_NAMES.keys()}
    for option in auth_options.AUTH_OPTIONS:
        if option.variable in hidden:
            setattr(own, option.destination, None)
    for key, value in entry.items():
        setattr(own, options[names[key]].destination, value if key in options else environ[value])
    unused = hidden.union(_SINGLE_ACCOUNT_VARIABLES)
    return auth_options.make_credentials(
        own, {name: value for name, value in environ.items() if name not in unused}
    )


def _remove_variables(entries: Sequence[Mapping[str, str]]) -> None:
    """Remove the variables that entries name from the environment, which child processes inherit."""
    for entry in entries:
        for key, name in entry.items():
            if key.endswith(_VARIABLE_SUFFIX):
                os.environ.pop(name, None)


def _read_entries(path: Path) -> str:
    try:
        return read_small_file(path, _MAX_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"--credentials {path}: {error.strerror}") from None
    except TooMuchError as error:
        raise UsageError(f"--credentials {path}: expected a list of credentials: {error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"--credentials {path}: expected UTF-8 text") from None


def _list_faults(entry: object, options: Mapping[str, object], environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the faults of an entry."""
    if not isinstance(entry, dict) or not entry:
        yield "expected a mapping such as {user: ..., key_env: ...}"
        return
    for key, value in entry.items():
        name = str(key).removesuffix(_VARIABLE_SUFFIX)
        if key not in options and (name == key or name not in options):
            shown = (
                repr(key)
                if _SHOWN_KEY_PATTERN.match(str(key))
                else "that is not shown, as it may hold a value"
            )
            yield f"unknown key {shown}{did_you_mean(str(key), options)}"
        elif not isinstance(value, str) or not value:
            yield f"{key}: expected a text, in quotes where it is a number"
        elif key in options:
            if f"{key}{_VARIABLE_SUFFIX}" in entry:
                yield f"{key}: expected this or {key}{_VARIABLE_SUFFIX}, not both"
        elif not environ.get(value):
            yield f"{key}: the environment has no variable of the name that it gives"
