"""An attribution in words: a finding in sentences, and the answer as a whole.

The sentences of a finding say who, by how much, in which share of the requests; then how sure, and what next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ssbench.cluster.attribution_records import (
    LONG_WAIT_SECONDS,
    Attribution,
    Coverage,
    Lead,
    LogFinding,
    Work,
)
from ssbench.cluster.rank_tests import PeerDifference
from ssbench.cluster.suspect_search import MAX_SUSPECTS
from ssbench.document.columns import format_plural
from ssbench.document.units import (
    format_change,
    format_latency,
    format_moment,
    format_number,
    format_probability,
    format_share,
)

#: A server's own time shows a delay if it shows this share of it.
_SHOWN_SHARE = 0.25

#: What takes longer, by the part that shows it.
_PART_PHRASES = {
    "own": "its requests take {} by its own log",
    "reads": "its reads take {} by its own log",
    "deletes": "its deletes take {} by its own log",
    "updates": "container updates with it take {} by its own log",
    "lookups": "proxies' requests to it take {} by its own log",
    "account updates": "the updates of new containers take {} by its own log",
    "own part": "its own part of requests takes {}",
    "way": "the way to it takes {}",
    "last": "writes wait for it: its replica takes {} than the others of the same write, by their own logs",
    "told": "an object server that tells it of a new object takes {} than the others of the same write",
}
#: The same of a container of the run.
_CONTAINER_PHRASES = {"updates": "its updates take {} by the container servers' logs"}
#: What is slow where few of them are.
_RARE_PHRASES = {
    "own": "its requests (by its own log)",
    "updates": "container updates with it (by its own log)",
}
_PART_NAMES = {
    "reads": "reads",
    "deletes": "deletes",
    "updates": "container updates",
    "lookups": "look-ups",
    "own part": "own part",
    "way": "way to it",
}
_DISK_STEPS = "iostat -x on its node, the kernel's log, swift-drive-audit"
_BEFORE_STEPS = "network, CPU and workers of the node, ss -lt for a queue of connections"
_NEXT_STEPS = {
    "own": _DISK_STEPS,
    "reads": _DISK_STEPS,
    "deletes": _DISK_STEPS,
    "last": _DISK_STEPS,
    "told": _BEFORE_STEPS,
    "updates": "iostat -x of the device with the container's database, and how many objects it lists",
    "lookups": "iostat -x of the device with the databases",
    "account updates": "iostat -x of the device with the databases",
    "own part": "CPU and workers of the proxy, its middleware, memcached",
    "way": "the network and the load balancer before the proxy, its CPU and backlog",
}
_ANSWER_STEPS = "the log of its server, ss -lt for a queue of connections, iostat -x on its node"
_NO_LINE_NOTE = "proxies had no answer, or the log given has no line of the run."
_BUSY_STEPS = "load, CPU and network of the node, workers of the server, iostat -x"


#: A device's own time of requests, which should be most of what they cost.
_OWN_PARTS = ("own", "reads", "deletes")

#: A larger probability, in a part of the run, is little evidence.
_WEAK_PROBABILITY = 0.002
#: Less than so many times as many requests are not said.
_MIN_TIMES_AS_BUSY = 1.2

#: What is said where the time that clients felt is not in the suspect's own log.
_UNSHOWN_NOTE = (
    "Its own log does not show it: the time passes before its clock starts (network, queue, a busy"
    " process) or while the body of a read is sent."
)
#: The same of a container server, by its updates.
_NOT_IN_UPDATES_NOTE = (
    "Its own log does not show it: the time passes before its clock starts (network, queue, a busy process)."
)
_UNCLEAR_NOTE = "Its own log has too few of its requests to tell whether it shows that."


def describe_finding(finding: LogFinding) -> str:
    """Return what a finding says."""
    return _SENTENCES[finding.kind](finding)


def _describe_slow(finding: LogFinding) -> str:
    if finding.waited is None or finding.difference is None:
        perhaps = "perhaps slow (repeat the run)" if _is_weak(finding) else "slow"
        return _join_sentences(finding, f"{describe_suspect(finding)} is {perhaps}")
    size = _size_of(finding.difference)
    sentences = (
        f"Writes wait {format_latency(finding.waited)} for {describe_suspect(finding)}: it"
        f" takes {format_latency(size)} longer than"
        " others to note a new object, and proxies wait as long as that, or post_quorum_timeout.",
        _describe_certainty(finding),
        _describe_other_measure(finding) if finding.part == "told" else "",
        _describe_recon(finding),
        _describe_all_work(finding),
        f"Next: {_describe_next_steps(finding)}.",
    )
    return " ".join(filter(None, sentences))


def _is_weak(finding: LogFinding) -> bool:
    """Whether the evidence is little, and of a part of the run alone."""
    of_part = finding.course is not None and finding.course.begins is not None
    return of_part and (finding.probability or 0.0) > _WEAK_PROBABILITY


def _not_updated(finding: LogFinding) -> str:
    updates = f"did not take {format_plural(finding.requests, 'container update')}"
    of_writes = f"{format_share(finding.share or 0.0)} of the writes"
    head = f"{finding.name} {updates} ({of_writes})"
    if finding.waited is not None and finding.waited >= LONG_WAIT_SECONDS:
        head = f"{of_writes} wait {format_latency(finding.waited)} for {finding.name}, which {updates}"
    recon = f" {said}" if (said := _describe_recon(finding)) else ""
    return (
        f"{head}, by the object servers' logs"
        f"{_describe_stretch(finding)}. They wait for it up to container_update_timeout, proxies up to"
        f" post_quorum_timeout, and send the updates again later.{recon} Next: {_ANSWER_STEPS}"
    )


def _called_slow(finding: LogFinding) -> str:
    most = f", most of it in {finding.detail}" if finding.detail else ""
    return (
        f"{finding.name} calls {format_plural(finding.requests, 'request')} slow by its own log:"
        f" {format_latency(finding.seconds or 0.0)} together{most}. Next: {_DISK_STEPS}"
    )


def _no_memcached(finding: LogFinding) -> str:
    servers = list_names([finding.name, *finding.same])
    return (
        f"{f'memcached at {servers} did not answer' if servers else 'No memcached answered'} proxies"
        f" {_format_times(finding.requests)}{_describe_stretch(finding)}:"
        f" {format_share(finding.share or 0.0)} of all requests asked account or container"
        f" servers for what it"
        " knows. Next: memcached there, memcache_servers of the proxies"
    )


def _format_times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _one_of(finding: LogFinding) -> str:
    names = [finding.name, *finding.same]
    text = _join_sentences(finding, f"One of {list_names(names)} is slow")
    if finding.part in ("total", "last", "told") and finding.group != "reads":
        return f"{text} The ring puts them together: no evidence of their own tells which"
    return f"{text} Of each there are too few requests to tell which, or whether all are"


def _describe_unfelt(finding: LogFinding) -> str:
    text = _join_sentences(
        finding, f"{describe_suspect(finding)} is slow, though proxies did not wait for it"
    )
    return f"{text} It is the one to look at before clients feel it"


def _join_sentences(finding: LogFinding, head: str) -> str:
    pattern = _PART_PHRASES.get(finding.part, f"{finding.group or 'requests'} with it take {{}}")
    if finding.level == "container":
        pattern = _CONTAINER_PHRASES.get(finding.part, "requests for its objects take {}")
    if finding.rare is not None:
        pattern = (
            f"{format_share(finding.rare)} of {_RARE_PHRASES.get(finding.part, 'requests with it')} take {{}}"
        )
    if finding.sizes:
        pattern = f"with objects of {finding.sizes} {pattern}"
    text = f"{head}: {pattern.format(_describe_longer(finding))}{_in_share(finding)}."
    for more in (
        _describe_certainty(finding),
        _describe_other_measure(finding),
        _ruled_out(finding),
        _describe_recon(finding),
        _describe_all_work(finding),
        f"Next: {_describe_next_steps(finding)}.",
    ):
        text += f" {more}" if more else ""
    return text


def _in_share(finding: LogFinding) -> str:
    if finding.share is None or math.isnan(finding.share):
        return ""
    if finding.part == "lookups":
        return f"; proxies asked it in {format_share(finding.share)} of all requests"
    return (
        f", in {format_share(finding.share)} of"
        f" {'them' if finding.part == 'account updates' else 'all requests'}"
    )


def _describe_longer(finding: LogFinding) -> str:
    measured = finding.difference
    if measured is None:
        return "longer"
    by_mean = _by_mean(finding)
    value = measured.mean if by_mean else measured.median
    return f"{format_latency(value)} longer{' (mean: not all of them)' if by_mean else ''}"


def _describe_certainty(finding: LogFinding) -> str:
    """Return when it was so, how much that is beside a request, and how sure."""
    measured = finding.difference
    said = [_describe_when(finding)]
    if measured is not None:
        by_mean = _by_mean(finding)
        if finding.request:
            value = measured.mean if by_mean else measured.median
            said.append(f"{format_change(value / finding.request)} % of a request")
        if finding.interval and not by_mean and not math.isnan(finding.interval[0]):
            low, high = finding.interval
            said.append(f"95%: {format_latency(low)} to {format_latency(high)}")
    said.append(_format_probability(finding.probability))
    text = "; ".join(filter(None, said))
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _describe_when(finding: LogFinding) -> str:
    course = finding.course
    if course is None:
        return ""
    length = course.slices[-1].ends
    if course.begins is None or course.ends is None:
        when = "in no part of the run more than in others" if _by_mean(finding) else "throughout the run"
        return f"{when} ({format_moment(length)} s)"
    return (
        f"from {format_moment(course.begins)} s to {format_moment(course.ends)} s of"
        f" {format_moment(length)} s"
    )


def _describe_stretch(finding: LogFinding) -> str:
    """Return when there were requests of a finding: from the first to the last of them."""
    when = finding.stretch
    if when is None:
        return ""
    if when.ends - when.begins < 0.05:
        return f", at {format_moment(when.begins)} s of {format_moment(when.length)} s"
    return (
        f", from {format_moment(when.begins)} s to {format_moment(when.ends)} s of"
        f" {format_moment(when.length)} s"
    )


def list_finding_facts(finding: LogFinding) -> list[str]:
    """Return how much, in which share of the requests and since when, each in a few words."""
    measured = finding.difference
    found = []
    if finding.waited is not None:
        found.append(f"writes wait {format_latency(finding.waited)}")
    elif measured is not None:
        found.append(f"{format_latency(measured.mean if _by_mean(finding) else measured.median)} longer")
    elif finding.kind == "stall":
        found.append(f"{format_moment(finding.seconds or 0.0)} s")
    elif finding.seconds is not None:
        found.append(format_latency(finding.seconds))
    if finding.share is not None and not math.isnan(finding.share):
        noun = _SHARED_NOUNS.get(finding.part or finding.kind, "all requests")
        found.append(f"{format_share(finding.share)} of {noun}")
    elif finding.requests > 1:
        found.append(_format_times(finding.requests))
    return [*found, *filter(None, (_describe_when(finding) or _describe_stretch(finding)[2:],))]


#: What the share of a finding is of, by its part or kind, where that is not all requests.
_SHARED_NOUNS = {"update": "writes", "account updates": "updates of new containers"}


def _of_all(finding: LogFinding) -> str:
    return "" if finding.share is None else f" ({format_share(finding.share)} of all)"


def _by_mean(finding: LogFinding) -> bool:
    return finding.difference is not None and finding.difference.mean > 2 * finding.difference.median


def _describe_other_measure(finding: LogFinding) -> str:
    """Return the other leg: what clients felt of it, or what the servers' own clocks show of it."""
    if finding.part == "last" or finding.difference is None:
        return ""
    if finding.part == "told":
        return _NOT_IN_UPDATES_NOTE
    if finding.part != "total":
        felt = [f"{name} {format_signed_duration(_size_of(each))}" for name, each in finding.felt.items()]
        said = f"Clients: {', '.join(felt)}." if felt else ""
        if finding.part in _OWN_PARTS and _size_of(finding.difference) < _SHOWN_SHARE * max(
            map(_size_of, finding.felt.values()), default=0.0
        ):
            return f"{said} {_UNSHOWN_NOTE}"
        return said
    felt_here = _size_of(finding.difference)
    return _describe_shown(finding, felt_here) or _describe_not_shown(finding, felt_here)


def _describe_not_shown(finding: LogFinding, felt_here: float) -> str:
    """Return that its own log shows little of a difference that clients felt, where that tells something."""
    updates = finding.own.get("updates")
    if updates and updates.high < _SHOWN_SHARE * felt_here:
        return _NOT_IN_UPDATES_NOTE
    if finding.group == "writes" or finding.level in ("proxy", "proxy process", "container"):
        return ""
    unclear = finding.own and not any(each.high < _SHOWN_SHARE * felt_here for each in finding.own.values())
    return _UNCLEAR_NOTE if unclear else _UNSHOWN_NOTE


def _describe_shown(finding: LogFinding, felt_here: float) -> str:
    """Return what its own log shows of a difference that clients felt; nothing where that is little.

    A few requests may take longer by chance.
    """
    shown = {
        part: _size_of(each)
        for part, each in finding.own.items()
        if each.evident and _size_of(each) >= _SHOWN_SHARE * felt_here
    }
    if parts := [
        f"{_PART_NAMES[part]} {format_signed_duration(size)}"
        for part, size in shown.items()
        if part in _PART_NAMES
    ]:
        return f"Its own log: {', '.join(parts)}."
    if finding.group == "writes" and "last" in shown:
        return (
            f"Its own log: its replica {format_signed_duration(shown['last'])} beside the"
            f" others of the same write."
        )
    return ""


def _describe_recon(finding: LogFinding) -> str:
    where = "their nodes" if _is_several(finding) else "its node"
    recon = f"Recon saw on {where}: {', '.join(finding.beside)}." if finding.beside else ""
    return f"{recon} By statsd {finding.statsd}.".strip() if finding.statsd else recon


def _describe_all_work(finding: LogFinding) -> str:
    """Return what else was at work on a suspect; nothing where no log would tell of it."""
    if finding.work:
        return f"In the same seconds: {'; '.join(map(_describe_work, finding.work))}."
    if finding.daemons is None:
        return ""
    several = _is_several(finding)
    if not finding.daemons:
        return (
            "No lines of one background daemon name all of their nodes."
            if several
            else "No line of a background daemon names its node."
        )
    where = "their nodes" if several else "its node"
    return f"No line of {name_any_of(finding.daemons)} on {where} tells of work in the same seconds."


def _is_several(finding: LogFinding) -> bool:
    """Whether it is about one of several, which cannot be distinguished."""
    return finding.kind == "one of"


def name_any_of(names: Sequence[str]) -> str:
    """Return names of which one is meant."""
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _describe_work(work: Work) -> str:
    show = format_number if work.unit == "requests" else format_share
    if work.unit == "requests":
        where = f" on {work.whose}" if work.whose else ""
        text = f"{work.who}{where} {show(work.during)} requests/s"
    else:
        where = "" if work.on == "device" else " on its node"
        if work.whose:
            where = f" on {work.whose}" if work.on == "device" else f" on the node of {work.whose}"
        text = f"{work.who} at work{where} {show(work.during)} of the time"
    beside = [] if work.before is None else [f"before the run {show(work.before)}"]
    beside += [] if work.others is None else [f"other {work.on}s {show(work.others)}"]
    return f"{text} ({', '.join(beside)})" if beside else text


def _ruled_out(finding: LogFinding) -> str:
    if not finding.ties:
        return ""
    text = f"The ring puts it together with {list_names(finding.ties)}, whose own times rule them out"
    if len(finding.ties) > 1 and {part for part, each in finding.own.items() if each.evident} == {"last"}:
        # Writes in which both others begin late look the same, and the ring has no writes without them.
        text += ", unless each of them is slow before its clock starts"
    return f"{text}."


def _describe_next_steps(finding: LogFinding) -> str:
    if finding.level in ("process", "node"):
        return _BUSY_STEPS
    if finding.level == "container":
        return "how many objects it lists, whether it should be sharded, the devices with its database"
    if finding.part in ("total", *_OWN_PARTS) and finding.level == "device":
        return (
            _BEFORE_STEPS
            if _describe_other_measure(finding).endswith((_UNSHOWN_NOTE, _NOT_IN_UPDATES_NOTE))
            else _DISK_STEPS
        )
    return _NEXT_STEPS.get(finding.part, _NEXT_STEPS["own part"])


def _size_of(difference: PeerDifference) -> float:
    return max(difference.median, difference.mean, key=abs)


def _describe_all_members(finding: LogFinding) -> str:
    return (
        f"{list_names(finding.members)} are all the devices of {finding.level} {finding.name}."
        f" Next: {_BUSY_STEPS}"
    )


def _describe_late(finding: LogFinding) -> str:
    work = f" {text}" if (text := _describe_all_work(finding)) else ""
    return (
        f"{finding.name} has late replicas:"
        f" {format_plural(finding.requests, 'write')}{_of_all(finding)} answered"
        f" without it, after {format_latency(finding.seconds)} (median){_describe_stretch(finding)};"
        f" {_format_probability(finding.probability)}.{work} Next: post_quorum_timeout of"
        f" the proxies; {_DISK_STEPS}"
    )


def _describe_inconclusive(*findings: LogFinding) -> str:
    names = [name for each in findings for name in (each.name, *each.same)]
    verb = "it served" if len(names) == 1 else "each served"
    return f"Not testable: {list_names(names)}: {verb} every request, or too few, so nothing compares"


def _describe_broken(finding: LogFinding) -> str:
    if finding.served == 0:
        text = (
            f"{finding.name} took no request all through the run: not mounted, full or broken (507 to"
            f" {format_plural(finding.requests, 'request')}{_describe_stretch(finding)});"
            f" handoffs took its place"
        )
    else:
        text = _answered_507(finding)
    text += f" (proxies' logs: {finding.detail})." if finding.detail else "."
    recon = f" {said}" if (said := _describe_recon(finding)) else ""
    return f"{text}{recon} Next: mount, the kernel's log, swift-drive-audit"


def _answered_507(finding: LogFinding) -> str:
    return (
        f"{finding.name} answered 507 to {format_plural(finding.requests, 'request')}{_of_all(finding)}"
        f"{_describe_stretch(finding)}: not mounted, full or broken;"
        f"{f' it served nothing for {format_moment(finding.seconds)} s,' if finding.seconds else ''}"
        " handoffs took its place"
    )


def _describe_busy(finding: LogFinding) -> str:
    times = finding.times_as_busy or 0.0
    more = (
        f"it serves {times:.1f} times as many requests as its peers"
        if times >= _MIN_TIMES_AS_BUSY
        else "it had more requests at once than its peers"
    )
    others = f" Likewise: {list_names(finding.same)}." if finding.same else ""
    return (
        f"{describe_suspect(finding)} is busier, and not shown to be slower: {more}, and these wait for each"
        f" other ({_describe_longer(finding)}{_in_share(finding)}).{others} Next: repeat with fewer users;"
        " weights of the ring, objects that are read often, other clients, daemons"
    )


def _describe_failures(finding: LogFinding) -> str:
    served, failures = finding.served or 0, finding.failures or 0
    return (
        f"{describe_suspect(finding)} served {finding.requests:,} of the {failures:,} requests that failed,"
        f" and {format_share(finding.share or 0.0)} of all requests: {format_share(finding.requests, served)}"
        f" of its own failed{_describe_stretch(finding)}; {_format_probability(finding.probability)}. Next:"
        " the errors of these requests in the report of the run, and its log; a device that was away has old"
        " objects until the replicator has been there"
    )


def _given_up(finding: LogFinding) -> str:
    return (
        f"{finding.name}: proxies gave up its replicas of {format_plural(finding.requests, 'write')}"
        f"{_of_all(finding)}{_describe_stretch(finding)}, which its log has as 499. Next:"
        f" errors in the proxies' logs,"
        f" post_quorum_timeout; {_DISK_STEPS}"
    )


def _describe_error(finding: LogFinding) -> str:
    recon = f". {said.removesuffix('.')}" if (said := _describe_recon(finding)) else ""
    what = f"{describe_suspect(finding)}: {finding.detail} by the proxies' logs{_describe_stretch(finding)}"
    return f"{what}{recon}. Next: {_ANSWER_STEPS}"


def _describe_handoff(finding: LogFinding) -> str:
    return (
        f"Proxies asked for handoffs in {format_plural(finding.requests, 'request')}{_of_all(finding)}"
        f"{_describe_stretch(finding)}: devices of their partitions did not answer, or were"
        f" left out after errors."
        " Next: errors in the proxies' logs before that, swift-recon --unmounted"
    )


def _describe_stall(finding: LogFinding) -> str:
    times = f" (the longest of {finding.requests} such times)" if finding.requests > 1 else ""
    return (
        f"No operation ended for {format_moment(finding.seconds or 0.0)}"
        f" s{_describe_stretch(finding)}{times}, though some"
        " were under way: what they waited for stopped, as a server of containers or accounts, a proxy,"
        " the network or the load generator. Next: their logs of these seconds"
    )


def _describe_missing(finding: LogFinding) -> str:
    proxy = finding.level == "proxy"
    name, line, those = (
        ("proxy", "a proxy", "proxies") if proxy else ("server", "an object server", "servers")
    )
    what = (
        f"the {finding.requests:,} requests ({format_share(finding.share or 0)}) that lack"
        f" a line of {line} take {_describe_longer(finding)}."
    )
    if certainty := _describe_certainty(finding):
        what += f" {certainty}"
    if finding.members:
        names = list_names(finding.members)
        return f"An object server did not answer: {what} {names}: {_NO_LINE_NOTE} Next: {_ANSWER_STEPS}"
    return f"A {name} without a log is slow: {what} Next: give the logs of the {those} that have none here"


_SENTENCES: dict[str, Callable[[LogFinding], str]] = {
    "slow": _describe_slow,
    "one of": _one_of,
    "together": _describe_all_members,
    "late": _describe_late,
    "fails": _describe_failures,
    "busy": _describe_busy,
    "unfelt": _describe_unfelt,
    "inconclusive": _describe_inconclusive,
    "499": _given_up,
    "507": _describe_broken,
    "update": _not_updated,
    "memcached": _no_memcached,
    "called slow": _called_slow,
    "error": _describe_error,
    "handoff": _describe_handoff,
    "missing": _describe_missing,
    "stall": _describe_stall,
}


def describe_suspect(finding: LogFinding) -> str:
    """Return the name of a suspect, and its devices."""
    name = finding.name if finding.level == "device" else f"{finding.level} {finding.name}"
    return f"{name} ({list_names(finding.members)})" if finding.members else name


def _format_probability(value: float | None) -> str:
    if value is None:
        return ""
    text = format_probability(value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def format_signed_duration(value: float) -> str:
    """Format a difference in seconds."""
    return f"{'+' if value >= 0 else ''}{format_latency(value)}"


def list_names(names: Sequence[str]) -> str:
    """Return names as a person lists them, the first of many."""
    if len(names) > 6:
        return f"{', '.join(names[:5])} and {len(names) - 5} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


# -- The answer as a whole -------------------------------------------------------------------------


#: With more than this share of the operations incomplete, an all-clear would be false.
_MAX_INCOMPLETE_SHARE = 0.01

#: Of more requests proxies asked for handoffs because devices failed.
_MIN_HANDOFF_SHARE = 0.02
#: Where devices take part in more than this share of the writes, two are in all of them.
_MIN_SHARE_OF_WRITES = 0.5

#: What an all-clear begins with, and what follows where some could not be compared.
ALL_CLEAR = "No server is slower than its peers in all its requests"
_SOME_COMPARED = ", of those that can be compared,"
#: Times by a server's own clock, which a generator that is late does not change.
_OWN_CLOCK_PARTS = (
    "own",
    "reads",
    "deletes",
    "updates",
    "lookups",
    "account updates",
    "last",
    "told",
    "own part",
)
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
    untested = [each for each in attribution.findings if each.kind == "inconclusive"]
    findings = [each for each in attribution.findings if each.kind != "inconclusive"]
    certain = [each for each in findings if attribution.overload and is_certain_finding(each)]
    sentences = [describe_finding(finding) for finding in findings if finding not in certain]
    if untested:
        sentences.append(_describe_inconclusive(*untested))
    if sum(each.kind in ("slow", "one of", "unfelt") for each in findings) >= MAX_SUSPECTS:
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
            f"{format_share(lack_proxy, good)} of the operations lack a line of a proxy:"
            f" what is slow in a proxy"
            " without a log, or on the way to it, cannot be told."
        )
    if coverage.incomplete > _MAX_INCOMPLETE_SHARE * good:
        sentences.append(
            f"{format_share(coverage.incomplete, good)} of the operations lack a line of an"
            f" object server: what is"
            " slow in a server without a log cannot be seen in its own times."
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
    return [*map(describe_finding, certain), doubt, *more, *sentences]


def is_certain_finding(finding: LogFinding) -> bool:
    """Whether a server's own clock shows it, so that it does not depend on the load generator."""
    return finding.kind in ("slow", "unfelt") and finding.part in _OWN_CLOCK_PARTS


def is_all_clear(attribution: Attribution) -> bool:
    """Whether nothing stands out: nothing that could be compared is slow or broken."""
    return all(
        finding.kind == "inconclusive" or is_minor_finding(finding) for finding in attribution.findings
    )


def is_minor_finding(finding: LogFinding) -> bool:
    """Whether it is said beside an all-clear: a few requests for handoffs come with any busy cluster."""
    return finding.kind == "handoff" and (finding.share or 0.0) < _MIN_HANDOFF_SHARE


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
        finding.kind == "inconclusive" for finding in attribution.findings
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
    return (
        f"{ALL_CLEAR}{_SOME_COMPARED if is_part else ''} by more than"
        f" {name_any_of(limits)}: a server that much slower is found in 9 of 10 such"
        f" runs ({attribution.comparisons:,} comparisons)."
        + (f" Slowness {name_any_of(not_told)} would not be found with so few requests." if not_told else "")
        + " Not detectable: smaller delays of few requests, of large objects or of one container alone;"
        " bodies of reads; delays before a server's clock starts; causes that slow all servers alike"
        " (memcached, network, all disks)." + _describe_lead(attribution.lead)
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
