"""A comparison as JUnit XML, for CI: a test case for its verdict, and one for each condition."""

from __future__ import annotations

from ssbench.comparison.compare import Comparison
from ssbench.comparison.verdict import Verdict, verdict
from ssbench.document import View
from ssbench.gates import Result
from ssbench.reports.junit import Case, document
from ssbench.verdict import Outcome


def junit(comparison: Comparison, _view: View | None = None) -> str:
    """Return the document; what is undecided is a case that was skipped."""
    said = verdict(comparison)
    cases = [_of_verdict(said)]
    for judged in comparison.conditions:
        text = f"{judged.came}{f'; it needs {judged.needs}' if judged.needs else ''}"
        failed = judged.result is Result.FAILED
        cases.append(
            Case(
                f"not {judged.condition}",
                ("threshold", text) if failed else None,
                text,
                f"undecided: {text}" if judged.undecided else "",
            )
        )
    words = [said.headline, *said.reasons, *(f"Warning: {warning}" for warning in comparison.warnings)]
    return document(f"{comparison.before} to {comparison.after}", cases, words)


def _of_verdict(said: Verdict) -> Case:
    failed = said.outcome is Outcome.FAILED
    undecided = said.outcome is Outcome.UNDECIDED
    return Case(
        "the verdict",
        (said.word.value, said.headline) if failed else None,
        said.headline,
        said.headline if undecided else "",
    )
