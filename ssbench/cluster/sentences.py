"""A finding in sentences: who, by how much, in which share of the requests; then how sure, and what next."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ssbench.cluster.ranks import Difference
from ssbench.cluster.records import LONG, Finding, Work
from ssbench.document.units import change, duration, moment, number, probability, share

#: A server's own time shows a delay if it shows this share of it.
_SHOWN = 0.25

#: What takes longer, by the part that shows it.
_WHAT = {
    "own": "its requests take {} by its own log",
    "reads": "its reads take {} by its own log",
    "deletes": "its deletes take {} by its own log",
    "updates": "container updates with it take {} by its own log",
    "lookups": "what proxies ask it takes {} by its own log",
    "account updates": "the updates of new containers take {} by its own log",
    "own part": "its own part of requests takes {}",
    "way": "the way to it takes {}",
    "last": "writes wait for it: its replica takes {} than the others of the same write, by their own logs",
}
_PARTS = {
    "reads": "reads",
    "deletes": "deletes",
    "updates": "container updates",
    "lookups": "look-ups",
    "own part": "own part",
    "way": "way to it",
}
_DISK = "iostat -x on its node, the kernel's log, swift-drive-audit"
_NEXT = {
    "own": _DISK,
    "reads": _DISK,
    "deletes": _DISK,
    "last": _DISK,
    "updates": "iostat -x of the device with the container's database, and how many objects it lists",
    "lookups": "iostat -x of the device with the databases",
    "account updates": "iostat -x of the device with the databases",
    "own part": "CPU and workers of the proxy, its middleware, memcached",
    "way": "the network and the load balancer before the proxy, its CPU and backlog",
}
_BEFORE = "network, CPU and workers of the node, ss -lt for a queue of connections"
_ANSWERS = "the log of its server, ss -lt for a queue of connections, iostat -x on its node"
_NO_LINE = "proxies had no answer, or the log given has no line of the run."
_BUSY = "load, CPU and network of the node, workers of the server, iostat -x"


#: A device's own time of requests, which should be most of what they cost.
_OWN = ("own", "reads", "deletes")

#: What is said where the time that clients felt is not in the suspect's own log.
_UNSHOWN = (
    "Its own log does not show it: the time passes before its clock starts (network, queue, a busy"
    " process) or while the body of a read is sent."
)
#: The same of a container server, by its updates.
_NOT_IN_UPDATES = (
    "Its own log does not show it: the time passes before its clock starts (network, queue, a busy process)."
)
_UNCLEAR = "Its own log has too few of its requests to tell whether it shows that."


def sentence(finding: Finding) -> str:
    """Return what a finding says."""
    return _SENTENCES[finding.kind](finding)


def _slow(finding: Finding) -> str:
    if finding.waited is None or finding.difference is None:
        return _text(finding, f"{who(finding)} is slow")
    size = _size(finding.difference)
    sentences = (
        f"Writes wait {duration(finding.waited)} for {who(finding)}: it takes {duration(size)} longer than"
        " others to note a new object, and proxies wait as long as that, or post_quorum_timeout.",
        _how_sure(finding),
        _recon(finding),
        _work(finding),
        f"Next: {_next(finding)}.",
    )
    return " ".join(filter(None, sentences))


def _not_updated(finding: Finding) -> str:
    updates = f"did not take {count(finding.requests, 'container update')}"
    of_writes = f"{share(finding.share or 0.0)} of the writes"
    head = f"{finding.name} {updates} ({of_writes})"
    if finding.waited is not None and finding.waited >= LONG:
        head = f"{of_writes} wait {duration(finding.waited)} for {finding.name}, which {updates}"
    recon = f" {said}" if (said := _recon(finding)) else ""
    return (
        f"{head}, by the object servers' logs"
        f"{_stretch(finding)}. They wait for it up to container_update_timeout, proxies up to"
        f" post_quorum_timeout, and send the updates again later.{recon} Next: {_ANSWERS}"
    )


def _called_slow(finding: Finding) -> str:
    most = f", most of it in {finding.detail}" if finding.detail else ""
    return (
        f"{finding.name} calls {count(finding.requests, 'request')} slow by its own log:"
        f" {duration(finding.seconds or 0.0)} together{most}. Next: {_DISK}"
    )


def _no_memcached(finding: Finding) -> str:
    servers = listed([finding.name, *finding.same])
    return (
        f"memcached at {servers} did not answer proxies {_times(finding.requests)}{_stretch(finding)}:"
        f" {share(finding.share or 0.0)} of all requests asked account or container servers for what it"
        " knows. Next: memcached there, memcache_servers of the proxies"
    )


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _one_of(finding: Finding) -> str:
    names = [finding.name, *finding.same]
    text = _text(finding, f"One of {listed(names)} is slow")
    return f"{text} The ring puts them together: no evidence of their own tells which"


def _unfelt(finding: Finding) -> str:
    text = _text(finding, f"{who(finding)} is slow, though proxies did not wait for it")
    return f"{text} It is the one to look at before clients feel it"


def _text(finding: Finding, head: str) -> str:
    pattern = _WHAT.get(finding.part, f"{finding.group or 'requests'} with it take {{}}")
    text = f"{head}: {pattern.format(_longer(finding))}{_in_share(finding)}."
    for more in (
        _how_sure(finding),
        _legs(finding),
        _ruled_out(finding),
        _recon(finding),
        _work(finding),
        f"Next: {_next(finding)}.",
    ):
        text += f" {more}" if more else ""
    return text


def _in_share(finding: Finding) -> str:
    if finding.share is None or math.isnan(finding.share):
        return ""
    if finding.part == "lookups":
        return f"; proxies asked it in {share(finding.share)} of all requests"
    return f", in {share(finding.share)} of {'them' if finding.part == 'account updates' else 'all requests'}"


def _longer(finding: Finding) -> str:
    measured = finding.difference
    if measured is None:
        return "longer"
    by_mean = _by_mean(finding)
    value = measured.mean if by_mean else measured.median
    return f"{duration(value)} longer{' (mean: not all of them)' if by_mean else ''}"


def _how_sure(finding: Finding) -> str:
    """Return when it was so, how much that is beside a request, and how sure."""
    measured = finding.difference
    said = [_when(finding)]
    if measured is not None:
        by_mean = _by_mean(finding)
        if finding.request:
            value = measured.mean if by_mean else measured.median
            said.append(f"{change(value / finding.request)} % of a request")
        if finding.interval and not by_mean and not math.isnan(finding.interval[0]):
            low, high = finding.interval
            said.append(f"95%: {duration(low)} to {duration(high)}")
    said.append(_probability(finding.probability))
    text = "; ".join(filter(None, said))
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _when(finding: Finding) -> str:
    course = finding.course
    if course is None:
        return ""
    length = course.slices[-1].ends
    if course.begins is None or course.ends is None:
        when = "in no part of the run more than in others" if _by_mean(finding) else "throughout the run"
        return f"{when} ({moment(length)} s)"
    return f"from {moment(course.begins)} s to {moment(course.ends)} s of {moment(length)} s"


def _stretch(finding: Finding) -> str:
    """Return when there were requests of a finding: from the first to the last of them."""
    when = finding.stretch
    if when is None:
        return ""
    if when.ends - when.begins < 0.05:
        return f", at {moment(when.begins)} s of {moment(when.length)} s"
    return f", from {moment(when.begins)} s to {moment(when.ends)} s of {moment(when.length)} s"


def _of_all(finding: Finding) -> str:
    return "" if finding.share is None else f" ({share(finding.share)} of all)"


def _by_mean(finding: Finding) -> bool:
    return finding.difference is not None and finding.difference.mean > 2 * finding.difference.median


def _legs(finding: Finding) -> str:
    """Return the other leg: what clients felt of it, or what the servers' own clocks show of it."""
    if finding.part == "last" or finding.difference is None:
        return ""
    if finding.part != "total":
        felt = [f"{name} {signed(_size(each))}" for name, each in finding.felt.items()]
        said = f"Clients: {', '.join(felt)}." if felt else ""
        if finding.part in _OWN and _size(finding.difference) < _SHOWN * max(
            map(_size, finding.felt.values()), default=0.0
        ):
            return f"{said} {_UNSHOWN}"
        return said
    felt_here = _size(finding.difference)
    return _shown(finding, felt_here) or _not_shown(finding, felt_here)


def _not_shown(finding: Finding, felt_here: float) -> str:
    """Return that its own log shows little of a difference that clients felt, where that tells something."""
    updates = finding.own.get("updates")
    if updates and updates.high < _SHOWN * felt_here:
        return _NOT_IN_UPDATES
    if finding.group == "writes" or finding.level in ("proxy", "proxy process"):
        return ""
    unclear = finding.own and not any(each.high < _SHOWN * felt_here for each in finding.own.values())
    return _UNCLEAR if unclear else _UNSHOWN


def _shown(finding: Finding, felt_here: float) -> str:
    """Return what its own log shows of a difference that clients felt; nothing where that is little.

    A few requests may take longer by chance.
    """
    shown = {
        part: _size(each)
        for part, each in finding.own.items()
        if each.evident and _size(each) >= _SHOWN * felt_here
    }
    if parts := [f"{_PARTS[part]} {signed(size)}" for part, size in shown.items() if part in _PARTS]:
        return f"Its own log: {', '.join(parts)}."
    if finding.group == "writes" and "last" in shown:
        return f"Its own log: its replica {signed(shown['last'])} beside the others of the same write."
    return ""


def _recon(finding: Finding) -> str:
    where = "their nodes" if _is_several(finding) else "its node"
    recon = f"Recon saw on {where}: {', '.join(finding.beside)}." if finding.beside else ""
    return f"{recon} By statsd {finding.statsd}.".strip() if finding.statsd else recon


def _work(finding: Finding) -> str:
    """Return what else was at work on a suspect; nothing where no log would tell of it."""
    if finding.work:
        return f"In the same seconds: {'; '.join(map(_of_work, finding.work))}."
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
    return f"No line of {any_of(finding.daemons)} on {where} tells of work in the same seconds."


def _is_several(finding: Finding) -> bool:
    """Whether it is about one of several, which cannot be distinguished."""
    return finding.kind == "one of"


def any_of(names: Sequence[str]) -> str:
    """Return names of which one is meant."""
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _of_work(work: Work) -> str:
    show = number if work.unit == "requests" else share
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


def _ruled_out(finding: Finding) -> str:
    if not finding.ties:
        return ""
    return f"The ring puts it together with {listed(finding.ties)}, whose own times rule them out."


def _next(finding: Finding) -> str:
    if finding.level in ("process", "node"):
        return _BUSY
    if finding.part in ("total", *_OWN) and finding.level == "device":
        return _BEFORE if _legs(finding).endswith((_UNSHOWN, _NOT_IN_UPDATES)) else _DISK
    return _NEXT.get(finding.part, _NEXT["own part"])


def _size(difference: Difference) -> float:
    return max(difference.median, difference.mean, key=abs)


def _together(finding: Finding) -> str:
    return f"{listed(finding.members)} are all the devices of {finding.level} {finding.name}. Next: {_BUSY}"


def _late(finding: Finding) -> str:
    work = f" {text}" if (text := _work(finding)) else ""
    return (
        f"{finding.name} has late replicas: {count(finding.requests, 'write')}{_of_all(finding)} answered"
        f" without it, after {duration(finding.seconds)} (median){_stretch(finding)};"
        f" {_probability(finding.probability)}.{work} Next: post_quorum_timeout of the proxies; {_DISK}"
    )


def _inconclusive(finding: Finding) -> str:
    names = [finding.name, *finding.same]
    verb = "it served" if len(names) == 1 else "each served"
    return f"Not testable: {listed(names)}: {verb} every request, or too few, so nothing compares"


def _broken(finding: Finding) -> str:
    if finding.served == 0:
        text = (
            f"{finding.name} took no request all through the run: not mounted, full or broken (507 to"
            f" {count(finding.requests, 'request')}{_stretch(finding)}); handoffs took its place"
        )
    else:
        text = _answered_507(finding)
    text += f" (proxies' logs: {finding.detail})." if finding.detail else "."
    recon = f" {said}" if (said := _recon(finding)) else ""
    return f"{text}{recon} Next: mount, the kernel's log, swift-drive-audit"


def _answered_507(finding: Finding) -> str:
    return (
        f"{finding.name} answered 507 to {count(finding.requests, 'request')}{_of_all(finding)}"
        f"{_stretch(finding)}: not mounted, full or broken; handoffs took its place"
    )


def _given_up(finding: Finding) -> str:
    return (
        f"{finding.name}: proxies gave up its replicas of {count(finding.requests, 'write')}"
        f"{_of_all(finding)}{_stretch(finding)}, which its log has as 499. Next: errors in the proxies' logs,"
        f" post_quorum_timeout; {_DISK}"
    )


def _error(finding: Finding) -> str:
    recon = f". {said.removesuffix('.')}" if (said := _recon(finding)) else ""
    what = f"{who(finding)}: {finding.detail} by the proxies' logs{_stretch(finding)}"
    return f"{what}{recon}. Next: {_ANSWERS}"


def _handoff(finding: Finding) -> str:
    return (
        f"Proxies asked for handoffs in {count(finding.requests, 'request')}{_of_all(finding)}"
        f"{_stretch(finding)}: devices of their partitions did not answer, or were left out after errors."
        " Next: errors in the proxies' logs before that, swift-recon --unmounted"
    )


def _stall(finding: Finding) -> str:
    times = f" (the longest of {finding.requests} such times)" if finding.requests > 1 else ""
    return (
        f"No operation ended for {moment(finding.seconds or 0.0)} s{_stretch(finding)}{times}, though some"
        " were under way: what they waited for stopped, as a server of containers or accounts, a proxy,"
        " the network or the load generator. Next: their logs of these seconds"
    )


def _missing(finding: Finding) -> str:
    proxy = finding.level == "proxy"
    name, line, those = (
        ("proxy", "a proxy", "proxies") if proxy else ("server", "an object server", "servers")
    )
    what = (
        f"the {finding.requests:,} requests ({share(finding.share or 0)}) that lack a line of {line} take"
        f" {_longer(finding)}. {_how_sure(finding)}"
    )
    if finding.members:
        names = listed(finding.members)
        return f"An object server did not answer: {what} {names}: {_NO_LINE} Next: {_ANSWERS}"
    return f"A {name} without a log is slow: {what} Next: give the logs of the {those} that have none here"


_SENTENCES: dict[str, Callable[[Finding], str]] = {
    "slow": _slow,
    "one of": _one_of,
    "together": _together,
    "late": _late,
    "unfelt": _unfelt,
    "inconclusive": _inconclusive,
    "499": _given_up,
    "507": _broken,
    "update": _not_updated,
    "memcached": _no_memcached,
    "called slow": _called_slow,
    "error": _error,
    "handoff": _handoff,
    "missing": _missing,
    "stall": _stall,
}


def who(finding: Finding) -> str:
    """Return the name of a suspect, and its devices."""
    name = f"{finding.level} {finding.name}" if finding.level != "device" else finding.name
    return f"{name} ({listed(finding.members)})" if finding.members else name


def _probability(value: float | None) -> str:
    if value is None:
        return ""
    text = probability(value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def signed(value: float) -> str:
    """Format a difference in seconds."""
    return f"{'+' if value >= 0 else ''}{duration(value)}"


def count(number: int, noun: str) -> str:
    """Return a number of things."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """Return names as a person lists them, the first of many."""
    if len(names) > 6:
        return f"{', '.join(names[:5])} and {len(names) - 5} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
