"""An attribution in words, for people."""

from __future__ import annotations

from ssbench.attribution.records import Attribution
from ssbench.attribution.sentences import count, listed, sentence
from ssbench.attribution.tables import Coverage
from ssbench.figures.units import duration, share

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
    findings = sorted(attribution.findings, key=lambda finding: finding.kind == "inconclusive")
    sentences = [sentence(finding) for finding in findings]
    coverage = attribution.coverage
    if not coverage.compared:
        return [*sentences, "Inconclusive: no operation has all its object servers' lines."]
    good = coverage.operations - coverage.failed
    lack_proxy = good - coverage.with_proxy
    if lack_proxy > _FEW_INCOMPLETE * good:
        sentences.append(
            f"{share(lack_proxy, good)} of the operations lack a line of a proxy: what is slow in a proxy"
            " without a log, or on the way to it, cannot be told."
        )
    if coverage.incomplete > _FEW_INCOMPLETE * good:
        sentences.append(
            f"{share(coverage.incomplete, good)} of the operations lack a line of an object server: what is"
            " slow in a server without a log cannot be seen in its own times."
            + (f" No log is of {listed(attribution.unlogged)}." if attribution.unlogged else "")
        )
    if is_clear(attribution):
        sentences.insert(0, outcome(attribution))
        if _lacks_updates(attribution):
            sentences.append(
                "No line of a container server tells of an object: one that makes writes slow cannot be seen."
            )
        if sentences[0].startswith(_CLEAR) and attribution.in_writes > _MOST_OF_WRITES:
            sentences.append(
                f"A device takes part in {share(attribution.in_writes)} of the writes: two that are slow in"
                " writes alone, at once, hide each other."
            )
    return [*map(_overloaded, attribution.overload[:1]), *attribution.overload[1:], *sentences]


def _overloaded(sentence: str) -> str:
    return f"{sentence}. What clients and servers took is then partly its doing: all below is doubtful."


def is_clear(attribution: Attribution) -> bool:
    """Whether nothing stands out: nothing that could be compared is slow or broken."""
    return all(finding.kind == "inconclusive" for finding in attribution.findings)


def _lacks_updates(attribution: Attribution) -> bool:
    return attribution.in_writes > 0 and not attribution.coverage.updates


def outcome(attribution: Attribution) -> str:
    """Return the answer in few words where nothing stands out."""
    coverage = attribution.coverage
    good = coverage.operations - coverage.failed
    if max(coverage.incomplete, good - coverage.with_proxy) > _FEW_INCOMPLETE * good:
        return "Inconclusive: no outlier was found, but logs are missing."
    if attribution.overload:
        return "Inconclusive: no outlier was found, but the load generator was overloaded."
    if attribution.detectable is None or attribution.detectable > (attribution.request or 0):
        return "Inconclusive: no outlier was found, but these are too few requests for a slow device to show."
    is_part = attribution.findings or _lacks_updates(attribution)
    some = " among those that can be compared" if is_part else ""
    least, at_end = attribution.detectable, attribution.detectable_at_end
    or_writes = f", or whose writes ended {duration(at_end)} later," if at_end else ""
    too_few = not at_end and attribution.in_writes > 0
    return (
        f"{_CLEAR}{some}: no proxy, node, process or device makes requests slower"
        f" ({attribution.comparisons:,} comparisons). Any device whose reads and deletes took"
        f" {duration(least)} more ({share(least, attribution.request or least)} of a request){or_writes}"
        " would have been found, in 9 of 10 such runs."
        + (" One that is slow only at the end of writes would not, of so few." if too_few else "")
    )


def coverage_facts(coverage: Coverage) -> list[tuple[str, str]]:
    """Return what was counted, and how many."""
    good = coverage.operations - coverage.failed

    def of_good(number: int) -> str:
        return f"{number:,}" + (f" ({share(number, good)})" if good else "")

    return [
        ("operations", f"{coverage.operations:,}, {coverage.failed:,} failed"),
        ("successes with a proxy's line", of_good(coverage.with_proxy)),
        ("successes with all object server lines", of_good(coverage.complete)),
        ("compared with each other", of_good(coverage.compared)),
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
        (coverage.delayed, "operation", "delayed by a worker that stalled: not compared"),
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
