"""An attribution in words, for people."""

from __future__ import annotations

from ssbench.attribution.records import Attribution
from ssbench.attribution.sentences import count, listed, seconds, sentence
from ssbench.attribution.tables import Coverage

#: With more than this share of the operations incomplete, an all-clear would be false.
_FEW_INCOMPLETE = 0.01

#: Where devices take part in more than this share of the writes, two are in all of them.
_MOST_OF_WRITES = 0.5

_CLEAR = "No outlier found"

#: What the tables mean by longer.
LONGER = (
    "own: by its own log; client: operations that it took part in; longer: the median difference of these to"
    " operations of the same kind without it, and of two the slower one's to the other's, significant or"
    " not: only what is listed above stands out"
)

#: How to read the slowest operations.
SLOWEST = (
    "The slowest server of a write is often a healthy one, which waited for the others: the slow ones are"
    " named above, from all operations."
)


def answer(attribution: Attribution) -> list[str]:
    """Return the findings as sentences; never empty. What could not be compared comes last."""
    findings = sorted(attribution.findings, key=lambda finding: finding.kind == "untold")
    sentences = [sentence(finding) for finding in findings]
    coverage = attribution.coverage
    if not coverage.compared:
        return [*sentences, "Inconclusive: no operation has all its object servers' lines."]
    good = coverage.operations - coverage.failed
    if coverage.incomplete > _FEW_INCOMPLETE * good:
        sentences.append(
            f"{coverage.incomplete / good:.0%} of the operations lack a line of an object server: what is"
            " slow in a server without a log cannot be seen in its own times."
            + (f" No log is of {listed(attribution.unlogged)}." if attribution.unlogged else "")
        )
    if is_clear(attribution):
        sentences.insert(0, outcome(attribution))
        if sentences[0].startswith(_CLEAR) and attribution.in_writes > _MOST_OF_WRITES:
            sentences.append(
                f"A device takes part in {attribution.in_writes:.0%} of the writes: two that are slow in"
                " writes alone, at once, hide each other."
            )
    return [*map(_overloaded, attribution.overload[:1]), *attribution.overload[1:], *sentences]


def _overloaded(sentence: str) -> str:
    return f"{sentence}. What clients and servers took is then partly its doing: all below is doubtful."


def is_clear(attribution: Attribution) -> bool:
    """Whether nothing stands out: nothing that could be compared is slow or broken."""
    return all(finding.kind == "untold" for finding in attribution.findings)


def outcome(attribution: Attribution) -> str:
    """Return the answer in few words where nothing stands out."""
    coverage = attribution.coverage
    good = coverage.operations - coverage.failed
    if coverage.incomplete > _FEW_INCOMPLETE * good:
        return "Inconclusive: no outlier was found, but logs are missing."
    if attribution.overload:
        return "Inconclusive: no outlier was found, but the load generator was overloaded."
    if attribution.detectable is None or attribution.detectable > (attribution.request or 0):
        return "Inconclusive: no outlier was found, but these are too few requests for a slow device to show."
    some = " among those that can be compared" if attribution.findings else ""
    least = attribution.detectable
    return (
        f"{_CLEAR}{some}: no proxy, node, process or device makes requests slower"
        f" ({attribution.comparisons:,} comparisons). Any device whose reads and deletes took"
        f" {seconds(least)} more ({least / (attribution.request or least):.0%} of a request) would have been"
        " found, in 9 of 10 such runs."
    )


def coverage_facts(coverage: Coverage) -> list[tuple[str, str]]:
    """Return what was counted, and how many."""
    good = coverage.operations - coverage.failed

    def share(number: int) -> str:
        return f"{number:,}" + (f" ({number / good:.1%})" if good else "")

    return [
        ("operations", f"{coverage.operations:,}, {coverage.failed:,} failed"),
        ("successes with a proxy's line", share(coverage.with_proxy)),
        ("successes with all object server lines", share(coverage.complete)),
        ("compared with each other", share(coverage.compared)),
        ("lines of the run", f"{coverage.lines_of_run:,} of {coverage.lines:,}"),
    ]


def sampled(operations: int, results: int) -> str | None:
    """Say that the operations are a sample of the results of a run; None where they are all of them."""
    if operations == results:
        return None
    return (
        f"this is about a random sample of {operations:,} of {results:,} results; only errors of proxies and"
        " lines of the run are counted in full (--sample all takes every result)"
    )


def coverage_notes(coverage: Coverage) -> list[str]:
    """Return what is missing or left out, and likely reasons."""
    counts = (
        (
            coverage.without_id,
            "operation",
            "without a transaction id: timed out or cut off, or not from Swift",
        ),
        (coverage.retried, "operation", "tried more than once: not compared"),
        (
            coverage.concurrent,
            "read",
            "answered by several servers (concurrent_gets): not compared, slow ones among them",
        ),
        (coverage.cut, "line", "cut or of an unknown layout: not used"),
        (coverage.duplicates, "line", "more than once: used once"),
    )
    notes = [f"{count(number, noun)} {what}" for number, noun, what in counts if number]
    if sentence := sampled(coverage.operations, coverage.results):
        notes.insert(0, sentence)
    return [*notes, *coverage.reasons]
