"""Colours of curves."""

from __future__ import annotations

#: Colours that can be distinguished on white and on black, with most kinds of colour blindness too. None is
#: red, which is for what failed, grey or slate, which are for what is not of one operation. On a page of a
#: run each is one operation; size classes, sides, nodes and workers are distinguished by the kind of line.
CURVE_COLOURS = (
    "#3b82c4",
    "#2f9e6e",
    "#d9861a",
    "#a25bb5",
    "#b8517d",
    "#17a2b8",
    "#8a8d2b",
    "#8c6d5a",
    "#6c7ae0",
    "#d46a9f",
)
GREY = "#8b949e"
#: What is of all operations together.
SLATE = "#6b7f99"
BLUE = CURVE_COLOURS[0]
#: That of texts, light or dark: a variable of the page.
INK = "--ink"
RED = "#d64545"
BLACK = "#4a4f57"
