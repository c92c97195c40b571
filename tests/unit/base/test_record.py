"""Records as JSON: what is not defined, texts that UTF-8 lacks, long lists, and the schema."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import jsonschema
import msgspec
import numpy as np
import pytest

from ssbench.base import record
from ssbench.base.record import Count, PerhapsSeconds, Seconds


@dataclass(frozen=True, slots=True)
class Inner:
    """A dataclass, with what None is."""

    seconds: PerhapsSeconds
    count: Count | None = None


class Sparse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Leaves out what has its default."""

    name: str = ""


class Outer(record.JsonRecord, frozen=True, kw_only=True, rename={"moved": "bytes"}):
    """A document."""

    moved: Count = 0
    took: Seconds = 0.5
    inner: Sequence[Inner] = ()
    names: tuple[str, ...] = ()
    sparse: Sparse = Sparse()


def test_what_is_not_defined_is_null() -> None:
    found = json.loads(record.format_json(Outer(inner=[Inner(math.nan), Inner(math.inf, 2)])))
    assert found["inner"] == [{"seconds": None, "count": None}, {"seconds": None, "count": 2}]
    assert (found["bytes"], found["took"], found["sparse"]) == (0, 0.5, {})


def test_what_utf8_lacks_is_replaced_in_keys_too() -> None:
    assert json.loads(record.format_json({"a\ud800": ["b\udfff", "ü"]})) == {"a?": ["b?", "ü"]}


@pytest.mark.parametrize("count", [0, 1, 100, 101, 10_000, 10_001, 20_000, 25_001])
def test_parts_are_the_same_text(count: int) -> None:
    one = Outer(moved=7, inner=[Inner(place / 7) for place in range(count)], names=("a\nb", "c"))
    made = list(record.iterate_json(one))
    text = "".join(made)
    assert json.loads(text) == json.loads(record.format_json(one))
    if count <= 100:
        assert text == record.format_json(one)
    else:  # an item on a line
        assert text.count('\n  {"seconds":') == count
    assert max(map(len, made)) < 1_000_000


def test_a_sequence_that_is_made_as_it_is_asked_for() -> None:
    class Squares(Sequence):
        def __len__(self) -> int:
            return 30_000

        def __getitem__(self, place):
            if isinstance(place, slice):
                return [Inner(float(each * each)) for each in range(*place.indices(len(self)))]
            return Inner(float(place * place))

    for count, made in ((30_000, Squares()), (3, Squares()[:3])):
        found = json.loads("".join(record.iterate_json(Outer(inner=made))))["inner"]
        assert [each["seconds"] for each in found] == [float(place * place) for place in range(count)]


def test_the_schema_has_what_is_written() -> None:
    schema = record.make_json_schema(Outer)
    outer, inner = schema["$defs"]["Outer"], schema["$defs"]["Inner"]
    assert set(outer["required"]) == {"bytes", "took", "inner", "names", "sparse"}
    assert outer["properties"]["took"] == {"type": "number", "description": "seconds"}
    assert set(inner["required"]) == {"seconds", "count"}
    assert inner["description"] == "A dataclass, with what null is."
    assert schema["$defs"]["Sparse"]["required"] == []
    jsonschema.Draft202012Validator.check_schema(schema)
    made = json.loads(record.format_json(Outer(inner=[Inner(math.inf)])))
    jsonschema.validate(made, schema)
    del made["took"]
    with pytest.raises(jsonschema.ValidationError, match="'took' is a required property"):
        jsonschema.validate(made, schema)
    with pytest.raises(jsonschema.ValidationError, match="-1 is less than"):
        jsonschema.validate({**made, "took": 1, "bytes": -1}, schema)


class Both(record.JsonRecord, frozen=True, kw_only=True):
    """Fields of another record, and more."""

    name: str
    count: Count | None
    seconds: PerhapsSeconds
    version: int = 1


def test_fields_are_taken_by_their_names_but_for_those_that_are_given() -> None:
    made = record.make_record_from(Both, Inner(math.inf, 3), name="x", count=None)
    assert made == Both(name="x", count=None, seconds=math.inf, version=1)
    assert json.loads(record.format_json(made)) == {"name": "x", "count": None, "seconds": None, "version": 1}


@pytest.mark.parametrize("own", [{}, {"name": "x", "more": 1}])
def test_no_field_is_left_out_and_none_is_too_many(own: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        record.make_record_from(Both, Inner(0.5), **own)


def test_arrays_are_lists() -> None:
    arrays = {"whole": np.arange(3), "seconds": np.array([0.5, math.nan])}
    assert json.loads(record.format_json(arrays)) == {"whole": [0, 1, 2], "seconds": [0.5, None]}
    assert json.loads(record.format_json([np.array([1.5]), "\ud800"])) == [[1.5], "?"]


@dataclass(frozen=True)
class Described:
    """Fields with comments of each kind."""

    count: Count  # how many there are, :data:`None` of them where there are none
    #: A sentence that
    #: has two lines.
    seconds: PerhapsSeconds
    name: str = "# no comment"


class MoreDescribed(record.JsonRecord, frozen=True, kw_only=True, rename={"own": "public"}):
    """A record of which a field has another name."""

    own: str  # whose it is
    parts: list[Described]


def test_the_schema_has_what_comments_say_of_fields() -> None:
    found = record.make_json_schema(MoreDescribed)["$defs"]
    assert found["MoreDescribed"]["properties"]["public"]["description"] == "whose it is"
    fields = found["Described"]["properties"]
    assert {name: each.get("description") for name, each in fields.items()} == {
        "count": "how many there are, ``null`` of them where there are none; number",
        "seconds": "A sentence that has two lines",
        "name": None,
    }


def test_a_schema_without_the_source_of_the_program_has_units_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_kind: type) -> str:
        raise OSError("could not get source code")

    monkeypatch.setattr(record, "getsource", fail)
    monkeypatch.setattr(record, "_read_field_comments", record._read_field_comments.__wrapped__)
    assert (
        record.make_json_schema(Described)["$defs"]["Described"]["properties"]["count"]["description"]
        == "number"
    )
