"""Colours of curves."""

from __future__ import annotations

#: Colours that are told apart on white and on black, with most kinds of colour blindness too.
COLOURS = (
    "#3b82c4",
    "#2f9e6e",
    "#d9861a",
    "#a25bb5",
    "#c9514b",
    "#17a2b8",
    "#8a8d2b",
    "#8c6d5a",
    "#6c7ae0",
    "#d46a9f",
)
GREY = "#8b949e"
BLUE = COLOURS[0]
ORANGE = COLOURS[2]
RED = "#d64545"
