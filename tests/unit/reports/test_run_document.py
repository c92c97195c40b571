"""What a run says has one order in all reports, and one text for each thing that is counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from golden import closed_loop, groups, open_loop, sides, stages

from ssbench.document.elements import Element, Note, Section, Table, Warnings
from ssbench.reports import run_facts
from ssbench.reports.run_document import (
    RUN_STATEMENTS,
    make_full_document,
    make_run_report_document,
    make_summary_document,
)
from ssbench.reports.run_facts import COUNTER_TEXTS
from ssbench.reports.writing import ReportOptions

ORDER = [each.title for each in RUN_STATEMENTS]


def titles(elements: Sequence[Element]) -> list[str]:
    return [each.title for each in elements if isinstance(each, Section) and each.title]


@pytest.mark.parametrize("make", [closed_loop, open_loop, stages, groups, sides])
def test_all_reports_have_one_order(make) -> None:
    numbers = make()
    for document in (
        make_run_report_document(numbers, ReportOptions()),
        make_full_document(numbers, ReportOptions(more=(90.0,))),
    ):
        found = titles(document.elements)
        assert len(found) >= 5
        assert found == [each for each in ORDER if each in found]


def test_the_summary_says_it_in_the_same_order() -> None:
    numbers = groups()
    brief, long = (
        [*map(str, make_summary_document(numbers, ReportOptions(verbose=verbose)).elements)]
        for verbose in (False, True)
    )
    for texts, words in (
        (brief, ("title='READ'", "by size:", "Bars(", "Groups of users:", "accounts:", "Wait:", "errors:")),
        (long, ("By size class", "Bars(", "Groups of users:", "stalled: worker", "Wait:", "slowest READ")),
    ):
        places = [
            next((place for place, text in enumerate(texts) if word in text), None)
            for word in words
            if word != "title='READ'"
        ]
        assert None not in places
        assert places == sorted(places)
    assert not any("by size:" in text for text in long)  # the table has it


def test_warnings_of_a_page_stand_in_no_section() -> None:
    elements = make_run_report_document(groups(), ReportOptions()).elements
    assert [each for each in elements if isinstance(each, Warnings)]
    assert "Warnings" not in titles(elements)


@pytest.mark.parametrize("name", COUNTER_TEXTS)
def test_a_counter_is_told_in_the_words_of_its_row(name: str) -> None:
    numbers = replace(closed_loop(), counters={name: 4711.0})
    told = [each.text for each in run_facts.make_count_notes(numbers) if isinstance(each, Note)]
    text = COUNTER_TEXTS[name]
    if not name.startswith("initial_"):
        assert told == ([text.sentence.format(4711)] if text.sentence else [])
    tables = [each for each in run_facts.make_parameter_elements(numbers) if isinstance(each, Table)]
    assert [text.name, "4,711"] in [[*row] for table in tables for row in table.rows]


def test_a_counter_of_another_version_has_its_name() -> None:
    numbers = replace(closed_loop(), counters={"from_the_future": 3.0})
    tables = [each for each in run_facts.make_parameter_elements(numbers) if isinstance(each, Table)]
    assert ["from the future", "3"] in [[*row] for table in tables for row in table.rows]


def test_old_files_have_hardly_any_details() -> None:
    numbers = replace(closed_loop(), current=False)
    found = titles(make_full_document(numbers, ReportOptions(more=(90.0,))).elements)
    assert found == ["Further percentiles", "Warnings"]
