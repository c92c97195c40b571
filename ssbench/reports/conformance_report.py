"""What a store does of what ssbench can ask of it: a table, and the same as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

from ssbench.base import record
from ssbench.base.errors import ExitCode
from ssbench.base.record import JsonHead, JsonRecord
from ssbench.document.elements import Cell, Column, Document, Note, Table, Tone, View
from ssbench.store.conformance_checks import Check, Finding, StoreVerdict

_COLUMNS = (
    Column("operation", is_number=False, is_whole=True),
    Column("request", is_number=False),
    Column("store", is_number=False, is_whole=True),
    Column("detail", is_number=False, is_long=True),
)
_TONES = {StoreVerdict.DONE: Tone.GOOD, StoreVerdict.REFUSED: Tone.DOUBTFUL, StoreVerdict.IGNORED: Tone.BAD}


class CheckRecord(JsonRecord, frozen=True, kw_only=True):
    """What became of one request; ``detail`` has a few words where there is more to say."""

    name: str
    request: str
    verdict: Literal["done", "refused", "ignored"]
    detail: str


class ConformanceReport(JsonHead, frozen=True, kw_only=True):
    """What a store does of what ssbench can ask of it. ``server`` is what it says it is, if anything."""

    format: Literal["ssbench conformance"] = "ssbench conformance"
    version: Literal[1] = 1
    storage_url: str
    checks: tuple[CheckRecord, ...]


def make_conformance_report(storage_url: str, found: Iterable[tuple[Check, Finding]]) -> ConformanceReport:
    """Return the report on a store. Its exit code is 1 if something is ignored, or a basic one not done."""
    rows = list(found)
    wrong = any(
        finding.verdict is StoreVerdict.IGNORED or (check.basic and finding.verdict is not StoreVerdict.DONE)
        for check, finding in rows
    )
    return ConformanceReport(
        exit_code=ExitCode.FAILED if wrong else ExitCode.OK,
        storage_url=storage_url,
        checks=tuple(
            CheckRecord(
                name=check.name, request=check.what, verdict=finding.verdict.value, detail=finding.detail
            )
            for check, finding in rows
        ),
    )


def make_conformance_document(report: ConformanceReport, _view: View) -> Document:
    """Return the table of a report."""
    rows = [
        (each.name, each.request, Cell(each.verdict, tone=_TONES[StoreVerdict(each.verdict)]), each.detail)
        for each in report.checks
    ]
    counts = Counter(each.verdict for each in report.checks)
    summary = ", ".join(f"{counts[each.value]} {each.value}" for each in StoreVerdict)
    notes = [
        f"{summary}.",
        "refused: the answer says so. ignored: the answer is a success, and the effect is missing.",
    ]
    return Document(f"What {report.storage_url} does", (Table(_COLUMNS, rows), Note(" ".join(notes))))


def make_conformance_json(report: ConformanceReport, *_: Any) -> str:
    """Return a report as JSON."""
    return record.format_json(report)
