"""The table of keys in doc/scenario-keys.rst: ``python tests/helpers/scenario_table.py`` writes it anew."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from ssbench.scenario.model import SCENARIO_KEYS, ScenarioKey

DOCUMENT = Path(__file__).parents[2] / "doc" / "scenario-keys.rst"

_BEFORE = "overrides its key.\n\n"
_AFTER = "\nA size class has these keys:"


def kept_table() -> str:
    """Return the table as the documentation has it."""
    text = DOCUMENT.read_text("utf-8")
    return text[text.index(_BEFORE) + len(_BEFORE) : text.index(_AFTER)]


def made_table() -> str:
    """Return the table that follows from the keys."""
    return "".join(line for key in SCENARIO_KEYS for line in _row(key))


def _row(key: ScenarioKey) -> Iterator[str]:
    older = f", or ``{key.older}``" if key.older else ""
    yield f"``{key.name}``{older} ({_describe_default(key)})\n"
    yield (
        textwrap.fill(
            re.sub(r"`([A-Z][^`<]+)`_", _link, key.meaning),
            115,
            initial_indent="  ",
            subsequent_indent="  ",
            break_on_hyphens=False,
            break_long_words=False,
        )
        + "\n"
    )


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
    before, after = DOCUMENT.read_text("utf-8").split(kept_table())
    DOCUMENT.write_text(before + made_table() + after, "utf-8")
