"""What doc/scenario-keys.rst says of all keys: ``python tests/helpers/scenario_table.py`` writes it anew."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

from ssbench.scenario.model import SCENARIO_KEYS, ScenarioKey

DOCUMENT = Path(__file__).parents[2] / "doc" / "scenario-keys.rst"

_BEFORE = "overrides its key.\n\n"
_AFTER = "\nA size class has these keys:"
_END = "\nA group of users has "


def kept_table() -> str:
    """Return the table as the documentation has it, with what it says last of all keys."""
    table, last = _find_kept(DOCUMENT.read_text("utf-8"))
    return table + last


def made_table() -> str:
    """Return the table that follows from the keys, with what is said last."""
    return _make_rows() + _make_end()


def _find_kept(text: str) -> tuple[str, str]:
    return text[text.index(_BEFORE) + len(_BEFORE) : text.index(_AFTER)], text[text.index(_END) :]


def _make_rows() -> str:
    return "".join(line for key in SCENARIO_KEYS for line in _row(key))


def _make_end() -> str:
    """Return which keys groups have, and which need a value."""
    own = _list_names(key.name for key in SCENARIO_KEYS if key.in_groups)
    needing = _list_names(key.name for key in SCENARIO_KEYS if not key.nullable)
    sentences = (
        f"A group of users has {own} of its own (`Groups of users <scenarios.rst#groups-of-users>`_).",
        f"All keys but {needing} may also be there with an empty value (``null``), as if they were absent.",
    )
    return "".join(f"\n{_fill(each)}" for each in sentences)


def _list_names(names: Iterable[str]) -> str:
    *others, last = (f"``{name}``" for name in names)
    return f"{', '.join(others)} and {last}"


def _fill(text: str, indent: str = "") -> str:
    return (
        textwrap.fill(
            text,
            115,
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
            break_long_words=False,
        )
        + "\n"
    )


def _row(key: ScenarioKey) -> Iterator[str]:
    older = f", or ``{key.older}``" if key.older else ""
    yield f"``{key.name}``{older} ({_describe_default(key)})\n"
    yield _fill(re.sub(r"`([A-Z][^`<]+)`_", _link, key.meaning), "  ")


def _describe_default(key: ScenarioKey) -> str:
    match key.required:
        case "no":
            return f"default: {_literal(key.default)}" if key.default else "optional"
        case "yes":
            return "required"
    return f"required{' ' if key.required.startswith('unless') else ': '}{key.required}"


def _link(title: re.Match[str]) -> str:
    """Return a link to a section of the guide."""
    return f"`{title[1]} <scenarios.rst#{re.sub('[^a-z0-9]+', '-', title[1].lower()).strip('-')}>`_"


def _literal(value: str) -> str:
    if value.isdecimal():
        return value
    return f'``"{value}"``' if "{" in value else f"``{value}``"  # a brace needs quotes in YAML


if __name__ == "__main__":
    text = DOCUMENT.read_text("utf-8")
    rows, last = _find_kept(text)
    DOCUMENT.write_text(text.replace(rows, _make_rows()).replace(last, _make_end()), "utf-8")
