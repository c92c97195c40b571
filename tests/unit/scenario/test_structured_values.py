"""What scenarios may say of bodies, and what a compressor makes of these."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from textwrap import dedent

import pytest

from ssbench.base.errors import ScenarioError
from ssbench.document.elements import View
from ssbench.document.renderers import text
from ssbench.reports import scenario_outlook
from ssbench.scenario.model import Scenario, make_owner
from ssbench.scenario.scenario_reading import check_scenario_text
from ssbench.scenario.structured_values import Body, Metadata
from ssbench.store.http.bodies import BLOCK_BYTES, BodySource, BodyVerifier

FILE = """
name: bodies
sizes: [{name: a, size: 1MB}]
initial_files: {a: 1}
profile: {create: 1}
operation_count: 1
user_count: 1
"""


def scenario(body: str) -> Scenario:
    return check_scenario_text(f"{FILE}body: {body}\n", "file")


def body(payload: BodySource, size: int) -> bytes:
    data, offset, _ = payload.begin(size)
    while len(data) < size:
        data += (piece := bytes(payload.piece(offset, size - len(data))))
        offset = (offset + len(piece)) % BLOCK_BYTES
    return data


@pytest.mark.parametrize("size", [3000, 100_000, 5_000_000])
@pytest.mark.parametrize("zeros", [0.0, 0.25, 0.6, 0.9, 1.0])
def test_a_compressor_saves_the_share_that_is_zeros(zeros: float, size: int) -> None:
    payload = BodySource(7, zeros)
    first, second = body(payload, size), body(payload, size)
    assert len(first) == size
    assert 1 - len(zlib.compress(first)) / size == pytest.approx(zeros, abs=0.04 + 100 / size)
    assert (first == second) == (zeros == 1)
    assert any(first) != (zeros == 1)
    # Such bodies can be checked.
    verifier = BodyVerifier(payload, 7)
    stamp, offset, _ = verifier.begin(b"c/o", size)
    sent = stamp + bytes(payload.piece(offset, min(size - len(stamp), BLOCK_BYTES - offset)))
    right, wrong = verifier.check(b"c/o"), verifier.check(b"c/o")
    right.feed(sent)
    wrong.feed(sent[:-1] + bytes([sent[-1] ^ 1]))
    assert (right.wrong, wrong.wrong) == (None, len(sent) - 1)


def test_random_bodies_are_those_of_before() -> None:
    assert body(BodySource(7), 1000)[:-8] == body(BodySource(7, 0.0), 1000)[:-8]


def test_metadata_of_uploads() -> None:
    found = check_scenario_text(f"{FILE}metadata: {{number: 2, size: 1kB}}\n", "file")
    assert found.metadata == Metadata(2, 1000)
    plain = scenario("null")
    assert plain.metadata is None
    assert make_owner(found, found.size_classes[0]) != make_owner(plain, plain.size_classes[0])
    view = View(columns=100)
    said = text.render(scenario_outlook.make_outlook_document(found, view), view)
    assert "each upload has metadata: 2 items of 1,000 bytes" in said
    for wrong in (
        "5",
        "{number: 2}",
        "{number: 0, size: 1}",
        "{number: 1, size: 0}",
        "{number: true, size: 1}",
    ):
        with pytest.raises(ScenarioError, match=r"file:8: metadata: expected a mapping with number, a whole"):
            check_scenario_text(f"{FILE}metadata: {wrong}\n", "file")


def test_the_example_of_metadata_in_the_documentation() -> None:
    doc = (Path(__file__).parents[3] / "doc" / "scenarios.rst").read_text("utf-8")
    example = doc.partition("\nMetadata\n---")[2].partition("yaml\n")[2].partition("\nEach")[0]
    assert check_scenario_text(FILE + dedent(example), "file").metadata == Metadata(5, 100)


def test_what_a_scenario_says() -> None:
    assert [scenario(each).body for each in ("random", "zero", "{compressible: 0.6}", "null")] == [
        Body(0.0),
        Body(1.0),
        Body(0.6),
        None,
    ]
    owners = {
        each: make_owner(found := scenario(each), found.size_classes[0])
        for each in ("random", "zero", "{compressible: 0.6}", "null")
    }
    assert owners["random"] == owners["null"]
    assert len(set(owners.values())) == 3
    for wrong in (
        "zeros",
        "{compressible: 1}",
        "{compressible: true}",
        "{compressible: 0.5, zero: 1}",
        "[zero]",
    ):
        with pytest.raises(
            ScenarioError, match=re.escape("body: expected random, zero, {compressible: 0.6}")
        ):
            scenario(wrong)
    said = text.render(
        scenario_outlook.make_outlook_document(scenario("{compressible: 0.6}"), View(columns=100)),
        View(columns=100),
    )
    assert "bodies are random bytes and zeros, of which a compressor saves about 60.0 %" in said
