"""The character of each result."""

from __future__ import annotations

import result_rows

from ssbench.results.block import Failure, ResultRow
from ssbench.results.result_fields import NOT_MEASURED
from ssbench.run.progress import make_result_characters


def row(operation: int, first: float, last: float) -> ResultRow:
    return result_rows.row(operation=operation, first_byte=first, last_byte=last)


def test_reads_and_deletes_are_shown_by_their_first_byte_the_others_by_their_last() -> None:
    seconds = (0.0, 0.999, 1.0, 2.999, 3.0, 9.999, 10.0, 1e6)
    reads = [row(1, each, each + 5) for each in seconds]
    assert make_result_characters(result_rows.block(reads)) == "..ooOO**"
    creates = [row(0, NOT_MEASURED, each) for each in seconds]
    assert make_result_characters(result_rows.block(creates)) == "__||^^@@"
    mixed = [row(code, 0.1, 0.2) for code in (0, 1, 2, 3)]
    assert make_result_characters(result_rows.block(mixed)) == "_._."


def test_failures_are_crosses_and_what_was_not_measured_counts_as_fast() -> None:
    rows = [row(1, 0.1, 0.2), row(1, NOT_MEASURED, NOT_MEASURED), row(3, NOT_MEASURED, 20.0), row(0, 0, 30.0)]
    failures = {1: Failure("HTTP 500", "", {}), 3: Failure(None, "", {"HTTP 503": 1})}
    assert make_result_characters(result_rows.block(rows, failures=failures)) == ".X.@"
