"""A section of a report by itself, as text."""

from __future__ import annotations

from ssbench.document.elements import Document, Section, View
from ssbench.document.renderers import text


def section_lines(section: Section, view: View | None = None) -> list[str]:
    """Return the lines of a section."""
    return text.render(Document("", [section], untitled=True), view or View()).splitlines()
