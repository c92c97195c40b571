"""The report as JUnit XML, for CI: a test case for each condition under which a run fails.

Besides, one case says whether the run went on to its end, one whether operations succeeded, and in an open
loop one whether the rate was delivered. A case fails where the verdict has a reason of its kind with an exit
code; it is skipped where the reason is a warning, or was allowed, or a condition is undecided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from ssbench.base.errors import ExitCode
from ssbench.base.printable import make_printable
from ssbench.reports.key_figures import format_utc
from ssbench.reports.verdict_words import format_section_rates, judge_for_reports, make_verdict_words
from ssbench.reports.writing import ReportOptions
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.run_verdict import Kind, RunVerdict

#: What XML 1.0 cannot hold, besides control characters, which are replaced anyway.
_NOT_XML_CHARACTERS = re.compile("[\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class JUnitCase:
    """A test case."""

    name: str
    failure: tuple[str, str] | None  # (its kind, one line); None: it passed
    output: str = ""
    skipped: str = ""  # why it neither passed nor failed, in one line


def make_run_junit(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the report."""
    found = judge_for_reports(statistics, options)
    cases = [
        _case("the run went on to its end", found, Kind.ENDING),
        _case("all operations succeeded", found, Kind.OPERATIONS, _causes(statistics)),
        *([_case("few requests were retried", found, Kind.RETRIES)] if _has(found, Kind.RETRIES) else []),
        *([_case("the mix was as asked", found, Kind.MIX)] if statistics.current else []),
        *([_case("the rate was delivered", found, Kind.DELIVERY)] if statistics.delivery else []),
        *([_case("the store answered all along", found, Kind.STALL)] if _has(found, Kind.STALL) else []),
        *([_case("no limit that is set was met", found, Kind.LIMIT)] if _has(found, Kind.LIMIT) else []),
        *_thresholds(found),
    ]
    facts = {}
    if statistics.start is not None:
        facts["timestamp"] = format_utc(statistics.start).removesuffix(" UTC").replace(" ", "T")
    if statistics.run.host:
        facts["hostname"] = _text(statistics.run.host)
    return make_junit_suite(
        statistics.run.scenario.name,
        cases,
        _words(statistics, options),
        seconds=statistics.duration,
        facts=facts,
    )


def make_junit_suite(
    name: str,
    cases: Sequence[JUnitCase],
    words: Iterable[str],
    *,
    seconds: float = 0.0,
    facts: Mapping[str, str] | None = None,
) -> str:
    """Return a document with one suite; ``words`` are its output, ``facts`` more attributes of it."""
    numbers = {
        "tests": str(len(cases)),
        "failures": str(sum(case.failure is not None for case in cases)),
        "errors": "0",
        "skipped": str(sum(bool(case.skipped) for case in cases)),
        "time": f"{seconds:.3f}",
    }
    name = _text(name)
    root = ElementTree.Element("testsuites", {"name": "ssbench", **numbers})
    suite = ElementTree.SubElement(root, "testsuite", {"name": name, **numbers, **(facts or {})})
    for case in cases:
        # The time of the run is in the first one, so that sums of all cases are right.
        time = numbers["time"] if case is cases[0] else "0"
        element = ElementTree.SubElement(
            suite, "testcase", {"classname": f"ssbench.{name}", "name": _text(case.name), "time": time}
        )
        if case.failure is not None:
            kind, message = case.failure
            failure = ElementTree.SubElement(element, "failure", {"type": kind, "message": _text(message)})
            failure.text = _text(message)
        if case.skipped:
            ElementTree.SubElement(element, "skipped", {"message": _text(case.skipped)})
        if case.output:
            ElementTree.SubElement(element, "system-out").text = _text(case.output)
    out = ElementTree.SubElement(suite, "system-out")
    out.text = "\n".join(map(_text, words))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _text(text: str) -> str:
    return _NOT_XML_CHARACTERS.sub("\ufffd", make_printable(text))


def _case(name: str, found: RunVerdict, kind: Kind, output: str = "") -> JUnitCase:
    """Return the case that the reasons of a kind decide."""
    reasons = [reason for reason in found.reasons if reason.kind is kind]
    failed = next((reason for reason in reasons if reason.exit_code is not ExitCode.OK), None)
    texts = "; ".join(reason.text for reason in reasons)
    # What was allowed, or is a warning only, is neither a failure nor simply well.
    return JUnitCase(name, (kind.value, failed.text) if failed else None, output, "" if failed else texts)


def _has(found: RunVerdict, kind: Kind) -> bool:
    return any(reason.kind is kind for reason in found.reasons)


def _causes(statistics: RunStatistics) -> str:
    return "; ".join(
        f"{cause.count:,} x {name}" + (f", first transaction id {cause.trans_id}" if cause.trans_id else "")
        for name, cause in statistics.errors.items()
    )


def _thresholds(found: RunVerdict) -> Iterator[JUnitCase]:
    codes = {reason.text: reason.exit_code for reason in found.reasons if reason.kind is Kind.CONDITION}
    for judgment in found.judgments:
        failed = codes.get(f"fail-if {judgment.text}") is ExitCode.THRESHOLD
        yield JUnitCase(
            f"not {judgment.condition.text}",
            ("threshold", judgment.text) if failed else None,
            judgment.text,
            judgment.text if judgment.undecided and not failed else "",
        )


def _words(statistics: RunStatistics, options: ReportOptions) -> Iterator[str]:
    found = make_verdict_words(statistics, options)
    yield found.title
    yield f"{format_section_rates(statistics.total)}, ssbench {statistics.run.version}"
    yield from found.sentences
    yield from (f"Warning: {warning}" for warning in statistics.warnings)
