"""Options that do not fit the others: refused, or ignored where only a file or a variable sets them.

What is set elsewhere is for many commands, so that no user can leave it out of one of them.
"""

from __future__ import annotations

import argparse
import logging
import re

from ssbench.base.errors import UsageError

_log = logging.getLogger(__name__)


def ignore_options(arguments: argparse.Namespace, why: str, *flags: str) -> None:
    """Give options (``--html``) their defaults again that only a file or a variable sets, and say so."""
    for flag in flags:
        field = _field_name(flag)
        default, source = _find_set_elsewhere(arguments).get(field, (None, ""))
        if source and getattr(arguments, field) != default:
            _log.info("%s: %s is ignored: %s", source, flag, why)
            setattr(arguments, field, default)


def refuse_options(arguments: argparse.Namespace, why: str, *flags: str) -> None:
    """Raise UsageError where the command line has one of the options; :func:`ignore_options` those set elsewhere.

    ``why`` begins the message, as in ``--repeat prints a summary of all runs``.
    """
    ignore_options(arguments, why, *flags)
    for flag in flags:
        value = getattr(arguments, _field_name(flag))
        if value is not None and value != [] and value is not False:
            raise UsageError(f"{why}: leave out {flag}")


def describe_option_sources(arguments: argparse.Namespace, message: str) -> str:
    """Return where the options that an error message names are set, to come after it; empty where nowhere."""
    found = []
    for field, (_, source) in _find_set_elsewhere(arguments).items():
        name = re.escape(field).replace("_", "[-_]")
        if re.search(rf"--{name}(?![\w-])|^{name}: ", message):
            found.append(f"--{field.replace('_', '-')} is set by {source}")
    if not found:
        return ""
    return f" ({'; '.join(found)}; the command line, or SSBENCH_CONFIG= for no file, overrides that)"


def _field_name(flag: str) -> str:
    return flag[2:].replace("-", "_")


def _find_set_elsewhere(arguments: argparse.Namespace) -> dict[str, tuple[object, str]]:
    found: dict[str, tuple[object, str]] = getattr(arguments, "set_elsewhere", {})
    return found
