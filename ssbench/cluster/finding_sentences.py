"""An attribution in words: the answer as a whole, and how much of a run the logs cover."""

from __future__ import annotations

from collections.abc import Sequence

from ssbench.cluster.attribution_records import Attribution, Coverage, Lead
from ssbench.cluster.finding_kinds import (
    IncomparableServers,
    OneOfSeveral,
    SlowServer,
    UnfeltServer,
    describe_incomparable,
    format_signed_duration,
    list_names,
    name_any_of,
)
from ssbench.cluster.suspect_search import MAX_SUSPECTS
from ssbench.document.columns import format_plural
from ssbench.document.units import format_latency, format_share

#: With more than this share of the operations incomplete, an all-clear would be false.
_MAX_INCOMPLETE_SHARE = 0.01

#: Where devices take part in more than this share of the writes, two are in all of them.
_MIN_SHARE_OF_WRITES = 0.5

#: What an all-clear begins with, and what follows where some could not be compared.
ALL_CLEAR = "No server is slower than its peers in all its requests"
_SOME_COMPARED = ", of those that can be compared,"
#: What those take longer who are nearest to being suspects.
_LEAD_PHRASES = {
    "own": "in reads and deletes",
    "reads": "in reads",
    "deletes": "in deletes",
    "updates": "in container updates",
    "lookups": "in proxies' requests to it",
    "own part": "of its own",
    "way": "on the way to it",
}

#: What the tables mean by longer.
LONGER_NOTE = (
    "own: by its own log; client: operations that it took part in; longer: the median difference of these to"
    " operations of the same kind without it, and of two the slower one's to the other's, significant or"
    " not: only what is listed above stands out"
)

#: How to read the slowest operations.
SLOWEST_NOTE = (
    "The slowest server of a write is often a healthy one, which waited for the others: the slow ones are"
    " named above, from all operations."
)


def describe_attribution(attribution: Attribution) -> list[str]:
    """Return the findings as sentences; never empty. What could not be compared is one sentence, the last."""
    untested = [each for each in attribution.findings if isinstance(each, IncomparableServers)]
    findings = [each for each in attribution.findings if each not in untested]
    certain = [each for each in findings if attribution.overload and each.is_certain]
    sentences = [finding.describe() for finding in findings if finding not in certain]
    if untested:
        sentences.append(describe_incomparable([name for each in untested for name in each.names]))
    if sum(isinstance(each, SlowServer | OneOfSeveral | UnfeltServer) for each in findings) >= MAX_SUSPECTS:
        sentences.append("Further ones were not looked for: look first for what these have in common.")
    coverage = attribution.coverage
    if attribution.merged and not is_all_clear(attribution):
        sentences.append(_describe_merged(attribution.merged))
    if not coverage.compared:
        return [*sentences, "Inconclusive: no operation has all its object servers' lines."]
    good = coverage.operations - coverage.failed
    lack_proxy = good - coverage.with_proxy
    if lack_proxy > _MAX_INCOMPLETE_SHARE * good:
        sentences.append(
            f"{format_share(lack_proxy, good)} of the operations lack a line of a proxy: what is slow in a "
            "proxy without a log, or on the way to it, cannot be told."
        )
    if coverage.incomplete > _MAX_INCOMPLETE_SHARE * good:
        sentences.append(
            f"{format_share(coverage.incomplete, good)} of the operations lack a line of an object server: "
            "what is slow in a server without a log cannot be seen in its own times."
            + (f" No log is of {list_names(attribution.unlogged)}." if attribution.unlogged else "")
        )
    if is_all_clear(attribution):
        sentences.insert(0, describe_all_clear(attribution))
        if _lacks_updates(attribution):
            sentences.append(
                "No line of a container server tells of an object: one that makes writes slow cannot be seen."
            )
        if sentences[0].startswith(ALL_CLEAR) and attribution.in_writes > _MIN_SHARE_OF_WRITES:
            sentences.append(
                f"Each device takes part in {format_share(attribution.in_writes)} of the"
                f" writes: two devices slow only in writes would hide each other."
            )
    if not attribution.overload:
        return sentences
    held = "The servers' own clocks show this, so it holds in spite of what follows. " if certain else ""
    if is_all_clear(attribution):
        return [
            sentences[0],
            *(f"{each}." for each in attribution.overload[:1]),
            *attribution.overload[1:],
            *sentences[1:],
        ]
    first, *more = attribution.overload
    doubt = f"{held}{first}. This affects the times of clients and servers: all below is doubtful."
    return [*(each.describe() for each in certain), doubt, *more, *sentences]


def is_all_clear(attribution: Attribution) -> bool:
    """Whether nothing stands out: nothing that could be compared is slow or broken."""
    return all(finding.is_minor for finding in attribution.findings)


def _lacks_updates(attribution: Attribution) -> bool:
    return attribution.in_writes > 0 and not attribution.coverage.updates


def describe_all_clear(attribution: Attribution) -> str:
    """Return the answer in few words where nothing stands out."""
    coverage = attribution.coverage
    good = coverage.operations - coverage.failed
    if attribution.merged:
        return _describe_merged(attribution.merged)
    if max(coverage.incomplete, good - coverage.with_proxy) > _MAX_INCOMPLETE_SHARE * good:
        return "Inconclusive: no outlier was found, but logs are missing."
    if attribution.overload:
        return (
            "Inconclusive: no slow server was found, but the load generator was too busy for a test: repeat"
            " with fewer users, or from an idle machine."
        )
    if attribution.detectable is None or attribution.detectable > (attribution.request or 0):
        return "Inconclusive: no outlier was found, but these are too few requests for a slow device to show."
    if attribution.has_queues:
        return (
            "Inconclusive: no outlier was found, but requests waited for each other at the servers, which"
            " hides who is slow: repeat with fewer users, or a lower rate."
        )
    is_part = _lacks_updates(attribution) or any(
        isinstance(finding, IncomparableServers) for finding in attribution.findings
    )
    at_end, proxies = attribution.detectable_at_end, attribution.detectable_of_proxies
    limits = [
        f"{format_latency(least)} ({of})"
        for least, of in (
            (attribution.detectable, "reads and deletes"),
            (at_end, "end of writes"),
            (attribution.detectable_of_updates, "container updates"),
            (proxies, "proxies"),
        )
        if least and least <= (attribution.request or 0)
    ]
    not_told = []
    if not at_end and attribution.in_writes > 0:
        not_told.append("only at the end of writes")
    if not proxies and len(attribution.proxies) > 1:
        not_told.append("in a proxy")
    failed = ""
    if coverage.failed:
        number = format_plural(coverage.failed, "operation")
        failed = f"{number} failed, and the logs do not show which server's fault that is. "
    return (
        f"{failed}{ALL_CLEAR}{_SOME_COMPARED if is_part else ''} by more than {name_any_of(limits)}: a "
        f"server that much slower is found in 9 of 10 such runs ({attribution.comparisons:,} comparisons)."
        + (f" Slowness {name_any_of(not_told)} would not be found with so few requests." if not_told else "")
        + " These limits do not hold for delays of few requests, of large objects or of one container alone."
        " Not detectable: bodies of reads; delays before a server's clock starts; causes that slow all"
        " servers alike (memcached, network, all disks)." + _describe_lead(attribution.lead)
    )


def _describe_merged(nodes: Sequence[str]) -> str:
    return (
        f"Devices of {list_names(nodes)} cannot be judged: it is several nodes, as devices have two lines"
        " of one write. Give the lines of each node in a file of its own, or as NODE=FILE."
    )


def _describe_lead(lead: Lead | None) -> str:
    """Return who is nearest to being slow, as what is to be looked at in a longer run."""
    if lead is None:
        return ""
    longer = format_signed_duration(max(lead.difference.median, lead.difference.mean))
    where = _LEAD_PHRASES.get(lead.part, f"in {lead.group or 'requests'} with it")
    if lead.is_of_few:
        where = where.replace("in ", "in a few ", 1)
    return f" Nearest to being one: {lead.name}, {longer} {where}; a longer run would tell."


def list_coverage_facts(coverage: Coverage) -> list[tuple[str, str]]:
    """Return what was counted, and how many."""
    good = coverage.operations - coverage.failed

    def of_good(number: int) -> str:
        return f"{number:,}" + (f" ({format_share(number, good)})" if good else "")

    return [
        ("operations", f"{coverage.operations:,}, {coverage.failed:,} failed"),
        ("successes with a proxy's line", of_good(coverage.with_proxy)),
        ("successes with all object server lines", of_good(coverage.complete)),
        ("compared with each other", of_good(coverage.compared)),
        ("lines of the run", f"{coverage.lines_of_run:,} of {coverage.lines:,}"),
    ]


def list_coverage_notes(coverage: Coverage) -> list[str]:
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
            "answered by several servers (concurrent_gets, or a first one that failed): not compared, slow"
            " ones among them",
        ),
        (coverage.cut, "line", "cut or of an unknown layout: not used"),
        (coverage.duplicates, "line", "more than once: used once"),
    )
    notes = [f"{format_plural(number, noun)} {what}" for number, noun, what in counts if number]
    if sentence := coverage.describe_taken():
        notes.insert(0, sentence)
    return [*notes, *coverage.reasons]
