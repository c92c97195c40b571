"""Runs as one table: rows, sides and rounds, whatever made them.

The steps of two sweeps, phases of two ways to run, the folders of two suites: each is a table with a side
before and others after. Of one suite any key that varies can be the sides (:func:`split_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ssbench.base.errors import UsageError, did_you_mean

_Run = TypeVar("_Run")
_Reduced = TypeVar("_Reduced")


@dataclass(frozen=True, slots=True)
class RunTable(Generic[_Run]):
    """Runs by row and side."""

    sides: tuple[str, ...]  # their names; all others are compared with the first
    #: By the names of rows: the runs of each side, which are rounds in their order.
    rows: Mapping[str, Sequence[Sequence[_Run]]]

    def list_rows_without(self, side: int) -> list[str]:
        """Return the rows of which a side has no run."""
        return [name for name, sides in self.rows.items() if not sides[side]]

    def reduced(self, reduce: Callable[[_Run], _Reduced]) -> RunTable[_Reduced]:
        """Return the same table with what a function returns for each run."""
        rows = {name: [[*map(reduce, runs)] for runs in sides] for name, sides in self.rows.items()}
        return RunTable(self.sides, rows)


def make_run_table(sides: Sequence[str], runs: Iterable[tuple[str, int, _Run]]) -> RunTable[_Run]:
    """Return the table of some runs, each with the name of its row and the place of its side, from 0."""
    rows: dict[str, list[list[_Run]]] = {}
    for row, side, run in runs:
        rows.setdefault(row, [[] for _ in sides])[side].append(run)
    return RunTable(tuple(sides), rows)


# -- A key that varies as sides --------------------------------------------------------------------


def name_row_without(name: str, words: Mapping[str, str], key: str) -> str:
    """Return the name of a row of a suite without what it says of a key."""
    head = name.removesuffix("".join(f" {word}" for word in words.values()))
    return " ".join([head, *(word for each, word in words.items() if each != key)])


def list_sides(rows: Iterable[Mapping[str, str]], key: str) -> list[str]:
    """Return the values of a key, by the words of each row; nothing if it does not vary."""
    return [*dict.fromkeys(_name_side(words[key]) for words in rows if key in words)]


def check_sides(rows: Sequence[Mapping[str, str]], key: str, same: str | None = None) -> None:
    """Raise UsageError if a key does not vary, by the words of each row.

    ``same`` is the value that all of them have of a key that is not in their words; None: it is no such key.
    """
    sides = list_sides(rows, key)
    if len(sides) < 2:
        known = [
            each
            for each in dict.fromkeys(each for words in rows for each in words)
            if len(list_sides(rows, each)) > 1
        ]
        same = sides[0] if sides else same
        hint = f"expected {' or '.join(known)}" if known else "no key of these rows varies"
        # A key that is known but does not differ is no misspelt one.
        hint = f"{hint}{did_you_mean(key, known)}" if same is None else f"all have {same or 'none'}; {hint}"
        raise UsageError(f"--between {key}: {hint}")


def split_rows(rows: Sequence[tuple[str, Mapping[str, str], Sequence[_Run]]], key: str) -> RunTable[_Run]:
    """Return the rows of a suite, each with its name, words and runs, with the values of a key as sides."""
    sides = list_sides([words for _, words, _ in rows], key)
    return make_run_table(
        sides,
        (
            (name_row_without(name, words, key), sides.index(_name_side(words[key])), run)
            for name, words, runs in rows
            if key in words
            for run in runs
        ),
    )


def _name_side(word: str) -> str:
    """Return a value without its key: values that have names stand without one."""
    return word.partition("=")[2] or word
