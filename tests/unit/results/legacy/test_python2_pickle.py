"""Stat files of ssbench 0.0.1 to 0.2.13: pickles of any pickler, and those that were made to do harm."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from golden_words import GoldenWords
from old_files import read
from old_formats import Pickler, failure, pickle_file, state, success

from ssbench.base.errors import StatFileError
from ssbench.results.legacy import python2_pickle
from ssbench.results.reading import open_results

#: What is said of a damaged file of ssbench 0.x.
KEY_IS_NO_TEXT = "a key that is no text"


@pytest.mark.parametrize(
    "pickler",
    [
        Pickler(first=0),
        Pickler(share=True),
        Pickler(ordered="collections"),
        Pickler(ordered="ssbench.ordered_dict", share=True),
    ],
    ids=["counted from 0", "shared", "OrderedDict", "old OrderedDict, shared"],
)
def test_pickles_of_other_picklers(pickler: Pickler, tmp_path: Path) -> None:
    results = [success(completed=100.0 + i, size_str="tiny", noop=True) for i in range(5)]
    # The state of the scenario itself is always a plain dictionary.
    data = pickle_file(results, pickler) if not pickler._ordered else b"".join(pickler.file(results, state()))
    assert read(data, tmp_path).total.count == 5


@pytest.mark.parametrize("name", ["\\ ' \" \t \n \r \x00 \x7f \\n \\x41", "'", '"'])
def test_what_repr_escapes_comes_back(name: str, tmp_path: Path) -> None:
    assert read(pickle_file([success()], name=name), tmp_path).run.scenario.name == name


def test_a_pickle_runs_nothing(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    for module in ("os", "posix", "nt", "subprocess"):
        path = tmp_path / "evil"
        path.write_bytes(f"(lp1\nc{module}\nsystem\n(S'touch {witness}'\ntRa(lp2\na.".encode())
        with pytest.raises(StatFileError, match=f"names {module}.system"):
            open_results(path)
    assert not witness.exists()


def test_no_control_character_of_a_file_gets_into_a_message(tmp_path: Path) -> None:
    path = tmp_path / "evil"
    path.write_bytes(b"(lp1\ncos\x1b[2J\r\nsystem\np2\n(S'true'\ntR.")
    with pytest.raises(StatFileError) as caught:
        open_results(path)
    assert str(caught.value).isprintable()


def nested(kind: bytes, levels: int = 40) -> bytes:
    """Return instructions that make a list (l) or tuple (t) which holds the same one twice, and so on."""
    makes = b"(%bp900\n" % kind
    for level in range(levels):
        makes += b"0(g%d\ng%d\n%bp%d\n" % (900 + level, 900 + level, kind, 901 + level)
    return makes


CYCLE = b"(lp900\ng900\na"


def with_entry(entry: bytes, result: dict[str, object] | None = None) -> bytes:
    """Return a pickle with one more entry at the beginning of the scenario's content."""
    whole = pickle_file([result or success()])
    place = whole.index(b"\n", whole.index(b"(d", whole.index(b"S'_scenario_data'"))) + 1
    return whole[:place] + entry + b"s" + whole[place:]


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (nested(b"t") + b"I1\n", KEY_IS_NO_TEXT),
        (b"S'x'\n(d" + nested(b"t") + b"I1\ns", KEY_IS_NO_TEXT),
        (b"S'x'\n(" + nested(b"t") + b"I1\nd", KEY_IS_NO_TEXT),
        (b"S'x'\nccollections\nOrderedDict\n((l(l" + nested(b"t") + b"aI1\naatR", KEY_IS_NO_TEXT),
        (b"S'x'\n" + nested(b"t"), "more than 200,000 values"),
        (b"S'x'\n" + nested(b"l"), "more than 200,000 values"),
        (b"S'x'\n" + CYCLE, "nested deeper than 50 levels"),
        (b"S'x'\n(lS'" + b"x" * 500_000 + b"'\np900\na" + b"g900\na" * 9000, "8,388,608 characters"),
    ],
    ids=[
        "key",
        "key in another",
        "key of d",
        "ordered key",
        "tuples",
        "lists",
        "cycle",
        "text again and again",
    ],
)
def test_a_pickle_that_would_expand_without_end_is_refused(entry: bytes, reason: str, tmp_path: Path) -> None:
    with pytest.raises(StatFileError, match=reason):
        read(with_entry(entry), tmp_path)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("secret", [nested(b"l"), nested(b"t"), CYCLE], ids=["lists", "tuples", "cycle"])
def test_secrets_that_cannot_be_searched_leave_nothing_of_the_failure(
    secret: bytes, tmp_path: Path, golden_words: GoldenWords
) -> None:
    whole = pickle_file([failure(exception="no sesame", token="sesame")])
    assert whole.count(b"S'sesame'\n") == 1
    path = tmp_path / "file"
    path.write_bytes(re.sub(rb"S'sesame'\np\d+\n", secret, whole))
    (block,) = open_results(path).blocks()
    golden_words(block.failures[0].detail)


@pytest.mark.parametrize(
    "body",
    [
        b"N0" * 150_000,
        b"S'" + b"x" * 5_000_000 + b"'\n",
        (b"S'" + b"x" * 50_000 + b"'\n0") * 100,
    ],
    ids=["instructions", "line", "entry"],
)
def test_a_small_pickle_cannot_hold_much(
    body: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    monkeypatch.setattr(python2_pickle, "_FREE_INSTRUCTIONS", 20_000)
    with golden_words.raises(StatFileError):
        read(gzip.compress(b"(lp1\n" + body), tmp_path)
