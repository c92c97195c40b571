"""The elements of documents: records without any layout.

All texts are plain, and may come from files and other hosts: renderers escape them. Numbers are texts
already, written by the units of their figures (:mod:`ssbench.document.figures`), so that all renderers show
the same. Curves have one of a few colours.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec.structs import replace

from ssbench.base.errors import GateResult

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Tone(Enum):
    """How good something is; ``OPEN`` while it is running."""

    OPEN = "open"
    GOOD = "good"
    DOUBTFUL = "doubtful"
    BAD = "bad"


#: How good it is that a gate has ended so.
GATE_TONES = {GateResult.PASSED: Tone.GOOD, GateResult.FAILED: Tone.BAD, GateResult.UNDECIDED: Tone.DOUBTFUL}


class Detail(IntEnum):
    """Where an element is shown: everywhere, in text only if it is verbose, or on pages only."""

    BRIEF = 0
    VERBOSE = 1
    PAGE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a document is written for. Pages depend on none of these."""

    columns: int = 80  # those of text, 80 or more
    wide: bool = False  # tables of text are as wide as their cells
    encoding: str = "utf-8"  # that of the output, which text keeps to
    coloured: bool = False  # text shows tones by colours
    verbose: bool = False  # text and Markdown have more
    rows: int = 0  # those of the terminal on which text is shown; 0: it is shown on none, or not known

    @property
    def detail(self) -> Detail:
        """The most detail that text and Markdown have."""
        return Detail.VERBOSE if self.verbose else Detail.BRIEF


class Verdict(msgspec.Struct, frozen=True):
    """The conclusion: a line, and the sentences that support it. It comes first in all renderers."""

    tone: Tone
    title: str
    sentences: Sequence[str] = ()
    facts: Sequence[str] = ()  # short ones that belong to the title; pages show them as a row
    #: How it was found, or what tables say too. Pages show them behind everything else.
    details: Sequence[str] = ()

    @property
    def line(self) -> str:
        """Return the title with its facts in one line."""
        return f"{self.title}: {'; '.join(self.facts)}" if self.facts else self.title


class Note(msgspec.Struct, frozen=True):
    """A remark: a paragraph of its own, or a row of a table that goes over all columns."""

    text: str


class Warnings(msgspec.Struct, frozen=True):
    """What the reader should know before relying on figures."""

    texts: Sequence[str]


class Lines(msgspec.Struct, frozen=True):
    """Lines that stay as they are, on pages only; with a title they are folded away below it."""

    texts: Sequence[str]
    title: str = ""


class Item(msgspec.Struct, frozen=True):
    """A line of a list, with what belongs to it."""

    text: str
    items: Sequence[Item] = ()


class Items(msgspec.Struct, frozen=True):
    """A list."""

    items: Sequence[Item]


class DrawnInterval(msgspec.Struct, frozen=True):
    """The interval of a change to be drawn, with a value within it. 0.1 is 10 % more, a ratio of 1.1.

    The axis is one of ratios, where a half is as far from 1 as the double.
    """

    low: float
    middle: float
    high: float
    band: float  # what is within so much of 0 says nothing
    reach: float  # the axis ends at this change, and at its inverse ratio

    def place(self, value: float) -> float:
        """Return where a change is on the axis, from 0 to 1."""
        end = math.log1p(self.reach)
        ratio = math.log1p(value) if value > -1 else -end
        return (min(max(ratio, -end), end) / end + 1) / 2

    def is_below(self, value: float) -> bool:
        """Whether a change lies beyond the lower end of the axis."""
        return value < -self.reach / (1 + self.reach)

    def is_above(self, value: float) -> bool:
        """Whether a change lies beyond the upper end of the axis."""
        return value > self.reach


class Cell(msgspec.Struct, frozen=True):
    """A cell that is more than its text."""

    text: str = ""
    tone: Tone | None = None  # gives it a colour
    is_code: bool = False  # marks what is copied, such as transaction ids
    bar: float | None = None  # a share from 0 to 1, drawn instead of the text
    bars: Sequence[float] = ()  # several of them; NaN leaves a gap
    short: str = ""  # stands for the text where there is little room
    span: DrawnInterval | None = None  # drawn instead of the text, on pages
    page: str = ""  # another page that the text leads to, on pages; a name relative to this one


Row: TypeAlias = "Sequence[str | Cell] | Note"


class Column(msgspec.Struct, frozen=True):
    """A column of a table."""

    head: str
    is_number: bool = True
    short: str | None = None  # its head where there is little room; None: the usual one
    #: Its cells are sentences, which text puts below the table, a paragraph for each row.
    is_long: bool = False
    is_whole: bool = False  # its texts are not cut where there is little room
    detail: Detail = Detail.BRIEF


class Table(msgspec.Struct, frozen=True):
    """A table of figures."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    keys: int = 1  # so many columns at the beginning say what a row is about
    title: str = ""
    most: int | None = None  # rows that text shows at most; it says how many more there are
    has_sum: bool = False  # the last row is of all those above
    detail: Detail = Detail.BRIEF


def make_columns(*heads: str, texts: int = 1) -> list[Column]:
    """Return columns with these heads; the first ones are texts, the others numbers."""
    return [Column(head, is_number=place >= texts) for place, head in enumerate(heads)]


def drop_columns(table: Table, places: Collection[int]) -> Table:
    """Return a table without some columns, which have nothing to say."""
    left = [place for place in range(len(table.columns)) if place not in places]
    rows = [row if isinstance(row, Note) else [row[place] for place in left] for row in table.rows]
    keys = sum(place < table.keys for place in left)
    return replace(table, columns=[table.columns[place] for place in left], rows=rows, keys=keys)


class Bars(msgspec.Struct, frozen=True):
    """A small picture of values in a line of text; pages have charts instead."""

    title: str
    values: Sequence[float]
    note: str = ""


class Curve(msgspec.Struct, frozen=True):
    """A series of a chart; NaN leaves a gap. The line joins the points in the order that they have here."""

    name: str
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    colour: str
    width: float = 1.6
    dash: str = "solid"
    markers: bool = False  # draw points alone
    shown: npt.NDArray[np.int64] | None = None  # numbers to tell of the points instead of y
    pointed: bool = False  # draw points beside the line
    labels: Sequence[str] = ()  # a text at each of these points
    down_to: int | None = None  # fill the area down to the curve at this place of the chart
    hidden: bool = False  # draw it when the reader asks for it


class Heat(msgspec.Struct, frozen=True):
    """How often values were in the cells of a grid, drawn behind the curves of a chart."""

    x: npt.NDArray[np.float64]  # edges of cells
    y: npt.NDArray[np.float64]  # edges of cells
    counts: npt.NDArray[np.int64]  # a row for each step of x


class Chart(msgspec.Struct, frozen=True):
    """Curves in one frame, on pages only. Charts over time are zoomed together."""

    title: str
    unit: str  # that of y
    curves: Sequence[Curve]
    #: What x is: ``time`` (in seconds), ``percentile`` (as 1 / (1 - share)) or the unit of a logarithmic one.
    axis: str = "time"
    log: bool = False
    digits: int = 1  # decimals that are shown
    note: str = ""
    shaded: Sequence[tuple[float, float, str]] = ()  # (start, end, colour) in x
    marks: Sequence[tuple[float, str]] = ()  # (x, text)
    ticks: Sequence[float] = ()  # the values of x that have a tick if there is room; none: round numbers
    wider: bool = False  # it goes further than the others, and does not widen what they show at first
    heat: Heat | None = None


class Tile(msgspec.Struct, frozen=True):
    """A figure that is read at a glance."""

    title: str
    value: str
    unit: str = ""
    note: str = ""
    tone: Tone | None = None
    values: Sequence[float] = ()  # how it went over time; NaN: not known


class Tiles(msgspec.Struct, frozen=True):
    """The figures that a reader looks for first, on pages only."""

    tiles: Sequence[Tile]


class IntervalRow(msgspec.Struct, frozen=True):
    """A row of :class:`Intervals`: what it is about, its interval, and the same in words."""

    group: str
    name: str
    span: DrawnInterval
    text: str
    tone: Tone | None = None


class Intervals(msgspec.Struct, frozen=True):
    """Intervals below each other on one axis, on pages only."""

    title: str  # what the axis is
    rows: Sequence[IntervalRow]
    ticks: Sequence[tuple[float, str]]  # values that the axis shows, with their texts
    note: str = ""


class Section(msgspec.Struct, frozen=True):
    """Elements below a heading; without a title, only what belongs together."""

    title: str
    elements: Sequence[Element]
    detail: Detail = Detail.BRIEF
    is_folded: bool = False  # pages show only its title until the reader opens it


def make_section(
    title: str, elements: Iterable[Element], detail: Detail = Detail.BRIEF, *, is_folded: bool = False
) -> Iterator[Section]:
    """Yield a section with those of the elements that are not empty, unless there are none."""
    shown = [each for each in elements if not _is_empty(each)]
    if shown:
        yield Section(title, shown, detail, is_folded)


def _is_empty(each: Element) -> bool:
    match each:
        case Table(rows=parts) | Lines(texts=parts) | Items(items=parts) | Tiles(tiles=parts):
            return not parts
    return False


Element: TypeAlias = (
    Verdict | Note | Lines | Warnings | Items | Table | Bars | Chart | Tiles | Intervals | Section
)


class Document(msgspec.Struct, frozen=True):
    """A heading, a line of facts, the verdict where there is one, and elements."""

    title: str
    elements: Sequence[Element]
    verdict: Verdict | None = None
    facts: Sequence[str] = ()
    untitled: bool = False  # text has no line with the title, as a table that begins with its heads
    stamp: str = ""  # tells it in a tab from others with the same title: a label, a time

    @property
    def tab(self) -> str:
        """Return what the tab of a browser shows: the verdict, the title and the stamp."""
        said = ": ".join((self.verdict.title, *self.verdict.facts[:1])) if self.verdict else ""
        return " \u00b7 ".join(filter(None, (said, self.title, self.stamp)))


# -- Colours of curves -----------------------------------------------------------------------------


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
