"""Words that are kept for a test: none may change, come or go unseen."""

from __future__ import annotations

import ast
from pathlib import Path

import golden_words as subject
import pytest

TESTS = Path(__file__).parents[2]
TEXTS = ["", "a line", "- a list\n\n  and more\n", "TMP of /secret", "127.0.0.1:54321 or 80"]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> subject.GoldenWords:
    """Words that were renewed."""
    monkeypatch.setattr(subject, "FOLDER", tmp_path)
    words = make(renewed=True)
    for text in TEXTS:
        words(text)
    words.finish()
    subject.read_words.cache_clear()
    return make()


def make(*, renewed: bool = False) -> subject.GoldenWords:
    return subject.GoldenWords(TESTS / "unit" / "test_x.py", "test_y[z]", {"/secret": "TMP"}, renewed=renewed)


def test_the_same_words_are_as_kept(kept: subject.GoldenWords) -> None:
    for text in [*TEXTS[:-1], "127.0.0.1:12345 or 80"]:
        kept(text)
    kept.finish()


def test_others_are_refused(kept: subject.GoldenWords) -> None:
    kept(TEXTS[0])
    with pytest.raises(pytest.fail.Exception, match="a line"):
        kept("another line")
    with pytest.raises(AssertionError, match="a line"):
        kept.finish()
    for text in TEXTS[1:]:
        kept(text)
    with pytest.raises(pytest.fail.Exception):
        kept("one more")
    with pytest.raises(pytest.fail.Exception), kept.raises(ValueError):
        int("x")


def test_no_words_are_of_a_test_that_is_gone() -> None:
    folders = {"-".join(path.relative_to(TESTS).parts): path for path in TESTS.glob("unit/**/")}
    for path in subject.FOLDER.glob("*.txt"):
        for module, name in {tuple(each.split("[")[0].split("::")) for each in subject.read_words(path)}:
            tree = ast.parse((folders[path.stem] / module).read_text("utf-8"))
            assert name in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}
