"""Names of objects by a template: what they are, which object they are of, and what is refused."""

from __future__ import annotations

import re
from hashlib import md5
from pathlib import Path
from textwrap import dedent

import pytest
from fault_server import FaultServer, Reply
from golden_words import GoldenWords
from hypothesis import given
from hypothesis import strategies as st
from sent_scenarios import make_sent

from ssbench.base.errors import ScenarioError
from ssbench.document.elements import View
from ssbench.document.renderers import text
from ssbench.fleet.wire import RunParameters
from ssbench.reports import scenario_outlook
from ssbench.results.run_description import RunDescription
from ssbench.run.group_run import GroupRun
from ssbench.run.ownership import digest_of_shared_reads
from ssbench.run.setup import FoundObjects
from ssbench.scenario.model import Scenario
from ssbench.scenario.names import (
    DEFAULT_TEMPLATE,
    explain_wrong_template,
    format_object_name,
    match_object_name,
)
from ssbench.scenario.operations import COPY, CREATE, READ
from ssbench.scenario.scenario_reading import check_scenario_text
from ssbench.scenario.value_rules import MAX_NUMBER
from ssbench.worker.worker_run import FastPath, WorkerRun

#: What is said of a template that repeats names.
NAMES_NOT_UNIQUE = "no two objects may have one name"
#: What is said of a separator that could not be told from a number.
NO_DIGIT = "expected a character that is no digit"

FILE = """
name: names
sizes: [{name: tiny, size: 100}, {name: a/b_1, size: 100}]
initial_files: {tiny: 205, a/b_1: 3}
profile: {read: 1}
operation_count: 1
user_count: 1
"""

DIGEST = md5(b"tiny_000012").hexdigest()


def scenario(keys: str) -> Scenario:
    return check_scenario_text(FILE + keys, "file")


@pytest.mark.parametrize(
    ("template", "name"),
    [
        (None, "tiny_000012"),
        (DEFAULT_TEMPLATE, "tiny_000012"),
        ("{name}", "tiny_000012"),
        ("{class}/{number}", "tiny/12"),
        ("{number:04d}-100%{class}.dat", "0012-100%tiny.dat"),
        ("{class} ü {number:02}", "tiny ü 12"),
        ("{hash}/{name}", f"{DIGEST[:4]}/tiny_000012"),
        ("{hash:1}/{hash:2}/{class}-{number:d}{hash:3}", f"{DIGEST[0]}/{DIGEST[1:3]}/tiny-12{DIGEST[3:6]}"),
    ],
)
def test_the_name_of_an_object(template: str | None, name: str) -> None:
    assert format_object_name(template, "tiny", 12) == name
    assert match_object_name(template, name) == ("tiny", 12)
    for other in (f"{name}x", name.replace("12", "x"), name[1:], ""):
        assert match_object_name(template, other) != ("tiny", 12)


_TEXTS = st.text("a_/-.x19{}%", max_size=3)
_WORDS = st.sampled_from(
    ["{class}", "{number}", "{number:03d}", "{hash:1}", "{hash:2}", "{name}", "{number:00d}"]
)
_CLASSES = st.text("a_/-.x19", min_size=1, max_size=5)
_NUMBERS = st.integers(1, 120)


@given(st.lists(st.one_of(_TEXTS, _WORDS), max_size=7), _CLASSES, _NUMBERS, _CLASSES, _NUMBERS)
def test_no_two_objects_have_one_name(
    parts: list[str], first: str, number: int, second: str, other: int
) -> None:
    template = "".join(parts)
    try:
        name = format_object_name(template, first, number)
    except ValueError:
        return
    assert match_object_name(template, name) == (first, number)
    assert (name == format_object_name(template, second, other)) == ((first, number) == (second, other))


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{class}", NAMES_NOT_UNIQUE),
        ("{number}", NAMES_NOT_UNIQUE),
        ("{name}/{number}", NAMES_NOT_UNIQUE),
        ("plain", NAMES_NOT_UNIQUE),
        ("{class}{number}", NO_DIGIT),
        ("{class}_1{number}", NO_DIGIT),
        ("{number}{hash}_{class}", NO_DIGIT),
        ("{class}_{number:6d}", "in braces, not {number:6d}"),
        ("{class}_{number:099d}", "in braces, not {number:099d}"),
        ("{sizes}/{name}", "in braces, not {sizes}"),
        ("{hash:20}{hash:20}/{name}", "expected at most 32 digits of {hash} in all, not 40"),
        ("{name", "not '{name'"),
        ("{{name}}", "not '{{name}}'"),
        ("x" * 200 + "{name}", "of at most 200 printable characters"),
        ("a\\tb/{name}", "of at most 200 printable characters"),
        ("ä" * 190 + "{name}", None),
        ("../{name}", "expected names without the parts . and .."),
        ("{class}/{number}/.", "expected names without the parts . and .."),
        (".ssbench-run-{class}/{number}", "as those of marks of runs do"),
    ],
)
def test_what_cannot_be_a_template_is_a_fault_among_the_others(template: str, reason: str | None) -> None:
    if reason is None:
        assert scenario(f'object_names: "{template}"').object_names == template
        return
    with pytest.raises(ScenarioError) as error:
        scenario(f'object_names: "{template}"\nwarmup: x')
    found, other = str(error.value).splitlines()
    assert found.startswith("file:8: object_names: expected ")
    assert reason in found
    assert other.startswith("file:9: warmup: ")


def test_the_longest_name_that_swift_takes() -> None:
    assert explain_wrong_template("{class}/{number}", "x" * 949) == ""
    assert "some have 961" in explain_wrong_template("{class}/{number}", "x" * 950)
    assert "some have 961" in explain_wrong_template("{class}/{number}", "ü" * 475)
    assert len(format_object_name("{class}/{number}", "x" * 949, MAX_NUMBER)) == 960


def test_groups_whose_objects_would_have_the_same_names(golden_words: GoldenWords) -> None:
    groups = """
sizes: [{name: c, size: 1}, {name: b-c, size: 1}]
initial_files: {c: 1, b-c: 1}
groups:
  - {name: a, users: 1, sizes: {%s: 1}, profile: {read: 1}}
  - {name: a-b, users: 1, sizes: {c: 1}, profile: {read: 1}}
"""
    head = "name: n\noperation_count: null\nrun_seconds: 1\n"
    assert len(check_scenario_text(head + groups % "c", "file").groups) == 2
    with golden_words.raises(ScenarioError):
        check_scenario_text(head + groups % "b-c", "file")


def test_the_objects_of_a_container() -> None:
    assert scenario("objects_per_container: 100").container_count == 3
    assert scenario("objects_per_container: 208").container_count == 1
    assert scenario("objects_per_container: 1000").container_count == 1
    said = text.render(
        scenario_outlook.make_outlook_document(scenario("objects_per_container: 100"), View()), View()
    )
    assert "containers: 3, ssbench_000000 to ssbench_000002" in said
    assert "initial objects in each: 69 or 70" in said
    with pytest.raises(
        ScenarioError, match="file:8: objects_per_container: expected this or container_count"
    ):
        scenario("objects_per_container: 1\ncontainer_count: 3")


def test_the_objects_of_a_container_of_groups() -> None:
    file = """
name: n
sizes: [{name: a, size: 1}, {name: b, size: 1}]
initial_files: {a: 100, b: 10}
run_seconds: 1
objects_per_container: 20
groups:
  - {name: one, users: 1, sizes: {a: 1}, profile: {read: 1}}
  - {name: two, users: 1, profile: {read: 1}, initial_files: {a: 3}}
  - {name: third, users: 1, sizes: {b: 1}, profile: {read: 1}, container_base: x, objects_per_container: 3}
"""
    assert [part.container_count for part in check_scenario_text(file, "file").parts] == [6, 6, 4]
    with pytest.raises(ScenarioError, match=r"groups\[2\]\.objects_per_container: expected this or cont"):
        check_scenario_text(file.replace("container_base: x", "container_count: 3"), "file")


def test_what_is_said_of_names() -> None:
    named = scenario('object_names: "{class}/{number}"')
    said = text.render(scenario_outlook.make_outlook_document(named, View()), View())
    assert "objects are named {class}/{number}\n    the first one: tiny/1\n" in said
    run = RunDescription(named, options={"object_tag": "abc"})
    assert run.name_object("tiny", 7) == "tiny-abc/7"
    # Runs that only read share objects of the same names.
    assert digest_of_shared_reads(named) != digest_of_shared_reads(scenario(""))


def test_prepared_objects_are_found_by_their_names() -> None:
    part = GroupRun(scenario('object_names: "{hash:2}/{class}/{number}"\ncontainer_count: 1'), 1, None)
    found = FoundObjects(part)
    for _, container, number, size in part.workload.initial_objects():
        found.add(container, format_object_name(part.scenario.object_names, "tiny", number), size)
        found.add(container, f"00/tiny/{number}", size)
        found.add(container, f"tiny_{number:06d}", size)
    reused = [task for task in found.tasks() if task[0] != CREATE.code]
    assert [(task[1], task[3]) for task in reused] == [(0, number) for number in range(1, 206)]


@pytest.mark.parametrize("template", ["{class}/{number:03d}", "{hash:2}/100%/{name}"])
def test_a_worker_asks_for_these_names_either_way(fault_server: FaultServer, template: str) -> None:
    fault_server.default = Reply(body=b"x" * 10)
    parameters = RunParameters(
        1,
        token="t",
        scenario=make_sent(container_base="c", object_names=template),
        size_classes=["ti ny"],
        storage_urls=[fault_server.url],
    )
    run = WorkerRun(parameters, 2)
    try:
        way = FastPath(run)
        for number in (1, 2):
            for operation in (READ, CREATE, COPY):
                job = (5, operation.code, 0, 2, number, 10)
                # The first read, which is looked at, and the first job of all go the careful way.
                while operation is not COPY and way.perform(job, None) is None:
                    run.perform(job, None)
                    way.begun = None
                run.perform(job, None)
        way.rest()
    finally:
        run.close()
    wanted = {format_object_name(template, "ti ny", number) for number in (1, 2)}
    asked = {
        re.sub(".*/c_000002/", "", each.target) for each in fault_server.requests if each.method != "COPY"
    }
    assert asked == {name.replace("%", "%25").replace(" ", "%20") for name in wanted}
    copied = [each for each in fault_server.requests if each.method == "COPY"]
    source = format_object_name(template, "ti ny", 10).replace("%", "%25").replace(" ", "%20")
    assert {re.sub(".*/c_000002/", "", each.target) for each in copied} == {source}


def test_the_examples_of_the_documentation() -> None:
    text_ = (Path(__file__).parents[3] / "doc" / "scenarios.rst").read_text("utf-8")
    section = text_.partition("Containers and names\n------")[2].partition("\nBodies\n------")[0]
    first, second = re.findall(r"(?:code-block:: yaml|prefixes::)\n\n((?:   .*\n|\n)+)", section)
    named = scenario(dedent(first))
    assert format_object_name(named.object_names, "tiny", 1) in {"d/tiny/000001", "db/tiny/000001"}
    assert "``d/b1/tiny_000001``" in section
    assert format_object_name("{hash:1}/{hash:2}/{name}", "tiny", 1) == "d/b1/tiny_000001"
    head = "name: n\nsizes: [{name: tiny, size: 1}]\noperation_count: 1\nuser_count: 1\n"
    large = check_scenario_text(head + dedent(second), "file")
    assert (large.container_count, large.operations[0].values["prefix"]) == (1, "7f/")
