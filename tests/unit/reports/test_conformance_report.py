"""The report on a store: counts, and an exit code that tells whether anything is ignored."""

from __future__ import annotations

import pytest

from ssbench.base.errors import ExitCode
from ssbench.document.elements import Note, View
from ssbench.reports.conformance_report import make_conformance_document, make_conformance_report
from ssbench.store.conformance_checks import CHECKS, Finding, StoreVerdict

BASIC = next(each for each in CHECKS if each.basic)
OTHER = next(each for each in CHECKS if not each.basic)


@pytest.mark.parametrize(
    ("basic", "other", "code"),
    [
        (StoreVerdict.DONE, StoreVerdict.DONE, ExitCode.OK),
        (StoreVerdict.DONE, StoreVerdict.REFUSED, ExitCode.OK),
        (StoreVerdict.DONE, StoreVerdict.IGNORED, ExitCode.FAILED),
        (StoreVerdict.REFUSED, StoreVerdict.DONE, ExitCode.FAILED),
    ],
)
def test_the_exit_code_is_that_of_the_worst(basic: StoreVerdict, other: StoreVerdict, code: ExitCode) -> None:
    report = make_conformance_report(
        "http://store", [(BASIC, Finding(basic)), (OTHER, Finding(other, "why"))]
    )
    assert report.exit_code == code
    *_, note = make_conformance_document(report, View()).elements
    assert isinstance(note, Note)
    counts = {each: [basic, other].count(each) for each in StoreVerdict}
    assert note.text.startswith(", ".join(f"{counts[each]} {each.value}" for each in StoreVerdict))
