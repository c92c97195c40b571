"""Colours of curves."""

from __future__ import annotations

#: Colours that are told apart on white and on black, with most kinds of colour blindness too. None is red,
#: which is for what failed, or grey, which is for what is not of one operation.
COLOURS = (
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
BLUE = COLOURS[0]
ORANGE = COLOURS[2]
RED = "#d64545"
BLACK = "#4a4f57"
