"""The report as JUnit XML, for CI: a test case for each condition under which a run fails.

Besides, one case tells whether the run went on to its end, and one whether all operations succeeded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

from ssbench.reports.figures import printable, utc
from ssbench.reports.options import ReportOptions
from ssbench.reports.verdict import rates, verdict
from ssbench.statistics import RunStatistics, judge_run

#: What XML 1.0 cannot hold, besides control characters, which are replaced anyway.
_NOT_XML = re.compile("[\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class _Case:
    """A test case; ``failure`` is None where it passed, else (its kind, one line)."""

    name: str
    failure: tuple[str, str] | None
    output: str = ""


def report(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the report."""
    cases = [_ended(statistics), _succeeded(statistics), *_thresholds(statistics, options)]
    numbers = {
        "tests": str(len(cases)),
        "failures": str(sum(case.failure is not None for case in cases)),
        "errors": "0",
        "skipped": "0",
        "time": f"{statistics.duration:.3f}",
    }
    name = _text(statistics.run.scenario.name)
    root = ElementTree.Element("testsuites", {"name": "ssbench", **numbers})
    suite = ElementTree.SubElement(root, "testsuite", {"name": name, **numbers})
    if statistics.start is not None:
        suite.set("timestamp", utc(statistics.start).removesuffix(" UTC").replace(" ", "T"))
    if statistics.run.host:
        suite.set("hostname", _text(statistics.run.host))
    for case in cases:
        # The time of the run is in the first one, so that sums of all cases are right.
        seconds = numbers["time"] if case is cases[0] else "0"
        element = ElementTree.SubElement(
            suite, "testcase", {"classname": f"ssbench.{name}", "name": _text(case.name), "time": seconds}
        )
        if case.failure is not None:
            kind, message = case.failure
            failure = ElementTree.SubElement(element, "failure", {"type": kind, "message": _text(message)})
            failure.text = _text(message)
        if case.output:
            ElementTree.SubElement(element, "system-out").text = _text(case.output)
    out = ElementTree.SubElement(suite, "system-out")
    out.text = "\n".join(map(_text, _words(statistics)))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", printable(text))


def _ended(statistics: RunStatistics) -> _Case:
    why = None
    if not statistics.complete:
        why = "the run was killed, or its disk was full"
    elif statistics.interrupted:
        why = f"the run was interrupted after {statistics.duration:.0f} s"
    elif statistics.ended_early:
        why = f"the run ended itself after {statistics.duration:.0f} s, before its time"
    elif statistics.start is None:
        why = "there is no result"
    return _Case("the run went on to its end", ("ended early", why) if why else None)


def _succeeded(statistics: RunStatistics) -> _Case:
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
    return _Case("all operations succeeded", failure, "; ".join(lines))


def _thresholds(statistics: RunStatistics, options: ReportOptions) -> Iterator[_Case]:
    for judgment in judge_run(statistics, options.fail_if):
        failure = ("threshold", judgment.text) if judgment.failed else None
        yield _Case(f"not {judgment.condition.text}", failure, judgment.text)


def _words(statistics: RunStatistics) -> Iterator[str]:
    yield f"{rates(statistics.total)}, ssbench {statistics.run.version}"
    yield from verdict(statistics).sentences
    yield from (f"Warning: {warning}" for warning in statistics.warnings)
