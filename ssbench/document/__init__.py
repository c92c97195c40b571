"""What there is to say of something, as a document of a few kinds of elements; renderers know how it looks.

A product (a run, a comparison, a sweep) makes one :class:`Document`. The renderers ``text``, ``markdown`` and
``html`` write any document; :mod:`ssbench.products` joins the two.
"""

from ssbench.document.elements import (
    Bars,
    Cell,
    Chart,
    Column,
    Curve,
    Detail,
    Document,
    Element,
    Item,
    Items,
    Lines,
    Note,
    Row,
    Section,
    Table,
    Tile,
    Tiles,
    Tone,
    Verdict,
    View,
    Warnings,
    columns_of,
    section_of,
    without,
)

__all__ = [
    "Bars",
    "Cell",
    "Chart",
    "Column",
    "Curve",
    "Detail",
    "Document",
    "Element",
    "Item",
    "Items",
    "Lines",
    "Note",
    "Row",
    "Section",
    "Table",
    "Tile",
    "Tiles",
    "Tone",
    "Verdict",
    "View",
    "Warnings",
    "columns_of",
    "section_of",
    "without",
]
