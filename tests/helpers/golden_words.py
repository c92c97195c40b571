"""What the program says in tests: ``python tests/helpers/golden.py`` renews it.

A test calls the fixture ``golden_words`` with a text, which has to be what is kept for it in
``tests/data/golden/words``, in the file of its folder. So a better sentence costs no test, and the commit
that changes it shows what else reads differently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import pytest

_Error = TypeVar("_Error", bound=BaseException)

_TESTS = Path(__file__).parents[1]
FOLDER = _TESTS / "data" / "golden" / "words"
#: The port that a test's own server was given.
_PORT = re.compile(r"(?<=127\.0\.0\.1:)\d{5}")


@lru_cache
def read_words(path: Path) -> dict[str, list[str]]:
    """Return the texts of each test: its name is a line, each text follows with ``- `` before it."""
    words: dict[str, list[str]] = {}
    texts: list[str] = []
    for line in path.read_text("utf-8").split("\n")[:-1] if path.exists() else ():
        if not line.startswith(("- ", "  ")):
            texts = words.setdefault(line, [])
        elif line.startswith("- "):
            texts.append(line[2:])
        else:
            texts[-1] += "\n" + line[2:]
    return words


def _write_words(path: Path, words: dict[str, list[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, texts in sorted(words.items()):
        lines += [name, *("- " + text.replace("\n", "\n  ") for text in texts)]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


class GoldenWords:
    """Compares what is said in a test with what was; where words are renewed, writes them."""

    def __init__(self, module: Path, test: str, folders: dict[str, str], *, renewed: bool):
        place = module.relative_to(_TESTS)
        self._path = FOLDER / f"{'-'.join(place.parts[:-1])}.txt"
        self._name = f"{place.name}::{test}"
        self._hidden, self._renewed = {**folders, str(_TESTS): "TESTS"}, renewed
        self._said: list[str] = []

    def __call__(self, said: object) -> None:
        """Compare a text, or the lines of several."""
        lines = [said] if isinstance(said, str) or not isinstance(said, Iterable) else said
        text = "\n".join(map(str, lines))
        for changing, name in self._hidden.items():
            text = text.replace(changing, name)
        text = _PORT.sub("PORT", text)
        kept = self._kept()[len(self._said) :][:1]
        if not self._renewed and kept != [text]:
            pytest.fail(f"it says\n{text}\nand not\n{kept[0] if kept else 'nothing'}")
        self._said.append(text)

    @contextmanager
    def raises(self, kind: type[_Error]) -> Iterator[pytest.ExceptionInfo[_Error]]:
        """Expect an exception, and compare its text."""
        with pytest.raises(kind) as caught:
            yield caught
        self(caught.value)

    def finish(self) -> None:
        """Find what is not said any more; write what is renewed."""
        if self._renewed:
            read_words(self._path)[self._name] = self._said
            _write_words(self._path, read_words(self._path))
        unsaid = self._kept()[len(self._said) :]
        assert not unsaid, unsaid

    def _kept(self) -> list[str]:
        return read_words(self._path).get(self._name, [])
