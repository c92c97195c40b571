"""The report as JUnit XML, for CI: a test case for each condition under which a run fails.

Besides, one case tells whether the run went on to its end, and one whether all operations succeeded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from ssbench.printable import printable
from ssbench.reports.figures import utc
from ssbench.reports.options import ReportOptions
from ssbench.reports.verdict import rates, verdict
from ssbench.statistics import RunStatistics, judge_run

#: What XML 1.0 cannot hold, besides control characters, which are replaced anyway.
_NOT_XML = re.compile("[\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Case:
    """A test case; ``failure`` is None where it passed, else (its kind, one line).

    ``skipped`` says in one line why it neither passed nor failed.
    """

    name: str
    failure: tuple[str, str] | None
    output: str = ""
    skipped: str = ""


def report(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the report."""
    cases = [_ended(statistics), _succeeded(statistics), *_thresholds(statistics, options)]
    facts = {}
    if statistics.start is not None:
        facts["timestamp"] = utc(statistics.start).removesuffix(" UTC").replace(" ", "T")
    if statistics.run.host:
        facts["hostname"] = _text(statistics.run.host)
    return document(
        statistics.run.scenario.name, cases, _words(statistics), seconds=statistics.duration, facts=facts
    )


def document(
    name: str,
    cases: Sequence[Case],
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
    return _NOT_XML.sub("\ufffd", printable(text))


def _ended(statistics: RunStatistics) -> Case:
    why = None
    if not statistics.complete:
        why = "the run was killed, or its disk was full"
    elif statistics.interrupted:
        why = f"the run was interrupted after {statistics.duration:.0f} s"
    elif statistics.ended_early:
        why = f"the run ended itself after {statistics.duration:.0f} s, before its time"
    elif statistics.start is None:
        why = "there is no result"
    return Case("the run went on to its end", ("ended early", why) if why else None)


def _succeeded(statistics: RunStatistics) -> Case:
    total = statistics.total
    lines = [
        f"{cause.count:,} x {name}" + (f", first transaction id {cause.trans_id}" if cause.trans_id else "")
        for name, cause in statistics.errors.items()
    ]
    failure = None
    if total.failed:
        failure = (
            "failed operations",
            f"{total.failed:,} of {total.count + total.failed:,} operations failed",
        )
    return Case("all operations succeeded", failure, "; ".join(lines))


def _thresholds(statistics: RunStatistics, options: ReportOptions) -> Iterator[Case]:
    for judgment in judge_run(statistics, options.fail_if):
        failure = ("threshold", judgment.text) if judgment.failed else None
        yield Case(f"not {judgment.condition.text}", failure, judgment.text)


def _words(statistics: RunStatistics) -> Iterator[str]:
    yield f"{rates(statistics.total)}, ssbench {statistics.run.version}"
    yield from verdict(statistics).sentences
    yield from (f"Warning: {warning}" for warning in statistics.warnings)
