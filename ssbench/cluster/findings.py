"""What the logs say of a run: coverage, parts, tables, and who made requests slow.

And what else went wrong: late replicas, answers of 507, errors of the proxies, requests that left no line.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from ssbench.cluster import (
    attribution_records,
    operation_times,
    own_times,
    suspect_search,
)
from ssbench.cluster import (
    possible_causes as cluster_at_work,
)
from ssbench.cluster.attribution_records import Attribution, AttributionFacts, Lead
from ssbench.cluster.failing_servers import find_failing_servers
from ssbench.cluster.finding_kinds import (
    LONG_WAIT_SECONDS,
    BrokenDevice,
    BusyServer,
    CalledSlow,
    ClusterFinding,
    CompleteStall,
    CountedFinding,
    GivenUpReplicas,
    HandoffRequests,
    IncomparableServers,
    LateReplicas,
    LoggedErrors,
    MemcachedFailure,
    MissedUpdates,
    MissingLines,
    OneOfSeveral,
    ServedFailures,
    SlowServer,
    SuspectFinding,
    UnfeltServer,
    WholeServer,
)
from ssbench.cluster.joined_run import NO_INDEX, OBJECT, OTHER, Device, JoinedRun
from ssbench.cluster.node_addresses import NodeAddresses, ip_of_address
from ssbench.cluster.operation_times import GROUPS, READS, Completeness, average_time_shares
from ssbench.cluster.own_times import UsableOperations
from ssbench.cluster.possible_causes import BackgroundWork
from ssbench.cluster.rank_tests import (
    MIN_TEST_REQUESTS,
    Deviates,
    IntegerArray,
    Pairs,
    PeerDifference,
    Shown,
    Units,
    binomial_tail,
    is_evident,
    make_pairs,
    measure_deviates,
    measure_excess,
    measure_median_interval,
    measure_peer_difference,
    measure_slow_share,
    sort_distinct,
    upper_tail,
)
from ssbench.cluster.server_times import (
    DifferenceCourse,
    Stretch,
    Timelines,
    find_stretch,
    list_own_times,
    make_timelines,
    measure_course,
    measure_evidence,
    rank_standings,
)
from ssbench.cluster.suspect_search import (
    POOLED,
    Measure,
    SearchStage,
    Suspect,
    SuspectVerdict,
    find_detectable_delay,
)
from ssbench.statistics.latencies import select_latencies
from ssbench.statistics.stalls import GapTracker

#: Differences of fewer requests are not reported.
_MIN_REQUESTS = 5
#: Slow by its own clock, but not felt: so large a share of its answers came after the proxy's.
_UNFELT_SHARE = 0.5
#: Proxies waited for what took so long if they waited this share of it: they do no longer than they have to.
_MIN_WAITED_SHARE = 0.2
#: Whose deviate is below this, of p = 0.05, is no lead.
_MIN_LEAD_DEVIATE = 1.64


def make_attribution(joined: JoinedRun, facts: AttributionFacts | None = None) -> Attribution:
    """Draw the conclusions."""
    return _Conclusions(joined, facts or AttributionFacts()).all()


class _Conclusions:
    def __init__(self, joined: JoinedRun, facts: AttributionFacts) -> None:
        operations = joined.operations
        self._joined = joined
        self._facts = facts
        self._addresses = NodeAddresses(joined, facts.hosts, facts.cluster)
        self._unlogged = find_unlogged_servers(joined, self._addresses, facts.unlogged)
        self._beside = cluster_at_work.describe_observed_nodes(facts.cluster, self._addresses)
        self._statsd = cluster_at_work.describe_observed_devices(facts.cluster, self._addresses)
        self._complete = operation_times.count_completeness(joined)
        self._fine = ~operations.failed & (operations.latency > 0)
        self._parts = operation_times.split_operation_times(joined, self._complete)
        # A retried operation's latency is that of all its attempts, its lines those of the last.
        first_try = self._fine & (operations.retries == 0)
        compared = first_try & self._complete.complete & ~self._complete.concurrent
        self._usable = own_times.UsableOperations(first_try, compared)
        self._by_device = operation_times.group_by_kind(joined, compared, by_proxy=True)
        self._by_proxy = operation_times.group_by_kind(
            joined, first_try & (joined.proxy != NO_INDEX), by_proxy=False
        )
        seconds = own_times.subtract_update_times(joined)
        is_blind = operation_times.lacks_log_of_writes(joined, self._complete, first_try)
        self._measures = own_times.make_measures(
            joined, self._parts, self._usable, self._by_device, self._by_proxy, seconds, is_blind
        )
        self._nodes = operation_times.list_node_names(joined)
        self._merged = [*operation_times.find_merged_nodes(joined)]
        if self._merged:
            self._measures = [self._leave_out_merged(each) for each in self._measures]
        known = operations.ended[~np.isnan(operations.ended)]
        self._run = (float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan)

    def all(self) -> Attribution:
        joined, lines = self._joined, self._joined.lines
        verdict = suspect_search.find_suspects(self._measures)
        findings = self._findings(verdict)
        suspects = {name for each in findings for name in each.marked}
        by_device, by_proxy = self._measures[-2:]
        return Attribution(
            coverage=attribution_records.measure_coverage(joined, self._complete, self._usable.compared),
            findings=findings,
            comparisons=sum(verdict.counts.values()),
            overload=list(self._facts.overload),
            detectable=find_detectable_delay(self._measures, "own", verdict.counts),
            detectable_at_end=find_detectable_delay(self._measures, "last", verdict.counts),
            detectable_of_updates=find_detectable_delay(self._measures, "updates", verdict.counts),
            detectable_of_proxies=find_detectable_delay(self._measures, "own part", verdict.counts),
            request=request if (request := by_device.request) > 0 else None,
            in_writes=self._in_writes(by_device),
            merged=self._merged,
            has_queues=suspect_search.has_queues(self._measures),
            lead=None if any(not each.is_busy for each in verdict.suspects) else self._lead(verdict),
            standings=rank_standings(self._measures, verdict, self._name),
            timelines=self._timelines(),
            unlogged=self._unlogged,
            parts=attribution_records.make_part_rows(joined, self._parts, self._fine),
            time_shares=average_time_shares(joined, self._parts, self._fine),
            proxies=attribution_records.make_proxy_rows(joined, self._by_proxy, by_proxy.levels[0]),
            nodes=attribution_records.make_server_rows(
                joined,
                self._by_device,
                by_device.levels[2],
                self._nodes,
                self._node_of_lines(),
                measure_evidence(self._measures, verdict, "node"),
            ),
            devices=attribution_records.make_server_rows(
                joined,
                self._by_device,
                by_device.levels[0],
                [str(each) for each in joined.devices],
                lines.device,
                measure_evidence(self._measures, verdict, "device"),
            ),
            partitions=attribution_records.make_partition_rows(joined),
            slowest=attribution_records.make_slowest_rows(joined, self._parts, suspects),
            errors=attribution_records.make_error_rows(joined.errors, self._addresses),
            other_errors=attribution_records.make_error_rows(joined.other_errors, self._addresses),
        )

    def _leave_out_merged(self, measure: Measure) -> Measure:
        """Return a measure without devices, processes and nodes whose lines may mix several."""
        joined = self._joined
        node_of: dict[str, Sequence[str]] = {
            "device": [each.node for each in joined.devices],
            "process": [each.node for each in joined.processes],
            "node": self._nodes,
        }
        levels = []
        for level in measure.levels:
            nodes = node_of.get(level.name, [])
            left = [place for place, node in enumerate(nodes) if node in self._merged]
            kept = ~np.isin(level.who.candidate, left)
            who = Pairs(level.who.unit[kept], level.who.candidate[kept], level.who.count)
            levels.append(replace(level, who=who))
        return replace(measure, levels=levels)

    def _timelines(self) -> Timelines:
        ended = self._joined.operations.ended
        own = list(list_own_times(self._measures, ended))
        is_object = np.array([each.server == "object" for each in self._joined.devices], np.bool_)
        for place, each in enumerate(own):
            if each.part == "last":
                own[place] = each.where(is_object[each.who])
        return make_timelines(own, self._run, self._name)

    def _in_writes(self, total: Measure) -> float:
        """Return the median share of the writes that object servers' devices take part in."""
        level = total.levels[0]
        is_write = total.units.group[total.units.stratum] == GROUPS.index("writes")
        counts = np.bincount(level.who.candidate, is_write[level.who.unit], level.who.count)
        mine = [place for place, each in enumerate(self._joined.devices) if each.server == "object"]
        return float(np.median(counts[mine])) / max(int(is_write.sum()), 1) if mine else 0.0

    def _node_of_lines(self) -> IntegerArray:
        node_of = np.array([self._nodes.index(each.node) for each in self._joined.devices], np.int64)
        return node_of[self._joined.lines.device] if len(node_of) else self._joined.lines.device

    def _name(self, level: str, candidate: int) -> str:
        joined = self._joined
        names: dict[str, Sequence[object]] = {
            "proxy": joined.proxies,
            "proxy process": joined.proxy_workers,
            "device": joined.devices,
            "process": joined.processes,
            "node": self._nodes,
            "container": joined.containers,
        }
        return str(names[level][candidate])

    def _findings(self, verdict: SuspectVerdict) -> list[ClusterFinding]:
        suspects = [self._suspect(each, verdict) for each in verdict.suspects if not each.is_busy]
        busy = [self._suspect(each, verdict) for each in verdict.suspects if each.is_busy]
        found = self._beside_updates([*suspects, *self._together(suspects)])
        late = find_late_devices(self._joined, self._run)
        found += late
        found += find_given_up_replicas(self._joined, self._run, [each.name for each in late])
        found += self._failing_servers()
        found += find_broken_devices(self._joined, self._addresses, self._run)
        found += find_memcached_failures(self._joined, self._run)
        found += find_devices_called_slow(self._joined)
        # One may be busy by several of its times, and slow by another.
        slow = {each.name for each in suspects}
        first, *more = dict.fromkeys(each.name for each in busy if each.name not in slow) or [""]
        found += [replace(each, same=more) for each in busy if each.name == first][:1]
        found += find_complete_stalls(self._joined, self._run)
        silent = [] if self._unlogged else find_silent_devices(self._joined, self._addresses)
        found = [each for each in found if each.name.rpartition(" on ")[2] not in self._merged]
        found += find_missing_lines(self._joined, self._usable, self._complete, self._run, silent)
        at_work = BackgroundWork(self._joined, self._run)
        return [self._with_surroundings(each, at_work) for each in found] + self._inconclusive(verdict)

    def _failing_servers(self) -> list[ServedFailures]:
        return [
            ServedFailures(
                each.level,
                self._name(each.level, each.place),
                requests=len(each.failures),
                share=_share_of_operations(self._joined, each.requests),
                probability=each.probability,
                stretch=find_stretch(self._joined.operations.ended[each.failures], self._run),
                served=len(each.requests),
                failures=each.every,
            )
            for each in find_failing_servers(self._joined, suspect_search.ALPHA)
        ]

    def _beside_updates(self, found: Sequence[ClusterFinding]) -> list[ClusterFinding]:
        """Put first which container servers did not take updates while writes waited for them.

        That is why requests with such a server take longer, though its own log may not show it: where clients
        alone show that it is slow, this is not said once more.
        """
        updates = find_missed_updates(self._joined, self._addresses, self._run)
        waited = {
            each.name for each in updates if each.waited is not None and each.waited >= LONG_WAIT_SECONDS
        }
        rest = [
            each
            for each in found
            if not (
                each.name in waited and isinstance(each, SuspectFinding) and each.part in ("total", "told")
            )
        ]
        first = [each for each in updates if each.name in waited]
        return [*first, *rest, *(each for each in updates if each.name not in waited)]

    def _with_surroundings(self, finding: ClusterFinding, at_work: BackgroundWork) -> ClusterFinding:
        """Add what recon and statsd saw of a finding's node and device, and what else was at work there."""
        names = finding.candidates
        of = {name: name if finding.level == "node" else name.rpartition(" on ")[2] for name in names}
        if len(names) == 1:
            recon = self._beside.get(of[finding.name], [])
            statsd = self._statsd.get(finding.name, "")
        else:
            recon = [
                f"{word} on {node}"
                for node in dict.fromkeys(of.values())
                for word in self._beside.get(node, ())
            ]
            statsd = "; ".join(f"{name}: {self._statsd[name]}" for name in names if name in self._statsd)
        finding = replace(finding, beside=recon, statsd=statsd)
        if not isinstance(finding, SlowServer | UnfeltServer | LateReplicas | OneOfSeveral):
            return finding
        return replace(finding, work=at_work.beside(finding), daemons=at_work.logs(finding))

    def _suspect(self, suspect: Suspect, verdict: SuspectVerdict) -> SuspectFinding:
        measure, level = suspect.measure, suspect.level
        where = level, suspect.candidate, suspect.group
        felt = self._felt(suspect)
        own = {
            self._part(each, group): shown
            for each, tests in zip(self._measures, verdict.tests, strict=True)
            if each.stage is not SearchStage.TOTAL and not each.divided and not each.tail
            for group in range(len(each.groups))
            if (shown := self._shown(each, tests, suspect, group)) is not None
        }
        after = self._answers_after_proxies(suspect)
        part = self._part(measure, suspect.group)
        if (
            measure.stage is SearchStage.ENDS
            and self._joined.devices[suspect.candidate].server == "container"
        ):
            part = "told"
        waited = self._waited(suspect) if part == "told" or (after and part == "updates") else None
        is_unfelt = after and waited is None
        kind = (
            partial(BusyServer, times_as_busy=self._compare_busy(suspect))
            if suspect.is_busy
            else OneOfSeveral
            if suspect.rivals
            else UnfeltServer
            if is_unfelt
            else SlowServer
        )
        return kind(
            level.name,
            self._name(level.name, suspect.candidate),
            requests=suspect.with_,
            share=self._share(suspect),
            part=part,
            group=self._group(measure, suspect.group),
            difference=suspect.difference,
            interval=None if measure.tail else measure.interval(*where),
            request=measure.request,
            probability=suspect.probability,
            own=own,
            felt=felt,
            members=[
                self._name(measure.levels[0].name, place)
                for place in (level.members[suspect.candidate] if level.members else ())
                if len(measure.places(measure.levels[0], place, suspect.group))
            ],
            same=[self._name(level.name, place) for place in suspect.rivals],
            ties=[self._name(level.name, place) for place in suspect.ties],
            course=self._course(suspect),
            waited=waited,
            rare=measure_slow_share(measure.units, measure.mask(level, suspect.candidate)).share
            if measure.tail
            else None,
            sizes=measure.groups[suspect.group] if measure.divided == "size" else "",
        )

    def _part(self, measure: Measure, group: int) -> str:
        of_group = measure.part == "own" and group != POOLED and not measure.divided
        return measure.groups[group] if of_group else measure.part

    def _group(self, measure: Measure, group: int) -> str | None:
        """Return the group of operations that a test is of; None where it is of all."""
        name = "" if group == POOLED else measure.groups[group]
        return name if measure.stage is not SearchStage.OWN and name in GROUPS else None

    def _difference(self, measure: Measure, suspect: Suspect, group: int = POOLED) -> PeerDifference | None:
        """Measure one more time of a suspect; None where it has too few of them, or everybody else has."""
        level = measure.level(suspect.level.name)
        if level is None:
            return None
        mask = measure.mask(level, suspect.candidate)[measure.of_group(group)]
        if mask.sum() < _MIN_REQUESTS or mask.all():
            return None
        measured = measure.difference(level, suspect.candidate, group)
        return None if np.isnan(measured.median) else measured

    def _shown(
        self, measure: Measure, tests: Sequence[Deviates], suspect: Suspect, group: int
    ) -> Shown | None:
        """Measure one of a suspect's own times, and judge it by the test of all; None as for a difference."""
        measured, level = self._difference(measure, suspect, group), measure.level(suspect.level.name)
        if measured is None or level is None:
            return None
        z = tests[measure.levels.index(level)].z[group, suspect.candidate]
        # What does not show in the end of a write may have passed before: that is no evidence against it.
        is_end = measure.stage is SearchStage.ENDS
        high = np.nan if is_end else measure.interval(level, suspect.candidate, group)[1]
        return Shown(measured.median, measured.mean, measured.base, is_evident(z), high)

    def _felt(self, suspect: Suspect) -> dict[str, PeerDifference]:
        return {
            name: measured
            for measure in self._measures[-2:]
            for group, name in enumerate(GROUPS)
            if (measured := self._difference(measure, suspect, group)) is not None
        }

    def _lead(self, verdict: SuspectVerdict) -> Lead | None:
        """Return who is nearest to being a suspect by the tests; None where nobody takes longer."""
        ranked = [
            (float(adjusted[row, candidate]), -float(test.z[row, candidate]), place, index, row, candidate)
            for place, index, test, adjusted in suspect_search.adjust_all_tests(self._measures, verdict.tests)
            for row, candidate in zip(*np.nonzero(test.z > _MIN_LEAD_DEVIATE), strict=True)
        ]
        for probability, _, place, index, row, candidate in sorted(ranked):
            measure = self._measures[place]
            group = POOLED if row == len(measure.groups) else int(row)
            level = measure.levels[index]
            measured = measure.difference(level, int(candidate), group)
            if measured.median > 0 or measured.mean > 0:
                name = self._name(level.name, int(candidate))
                who = name if level.name == "device" else f"{level.name} {name}"
                part = self._part(measure, group)
                return Lead(who, part, self._group(measure, group), measured, probability, measure.tail)
        return None

    def _waited(self, suspect: Suspect) -> float | None:
        """Return how long proxies waited beyond the quorum in writes of which a container server was told.

        None where that is little beside what this takes: they did not wait for it.
        """
        measure = suspect.measure
        mine = measure.mask(suspect.level, suspect.candidate)
        waited = operation_times.measure_wait_beyond_quorum(
            self._joined, sort_distinct(measure.operation[mine])
        )
        size = max(suspect.difference.median, suspect.difference.mean)
        least = max(_MIN_WAITED_SHARE * size, suspect_search.MIN_DELAY_SHARE * measure.request)
        # What object servers took longer is all that proxies waited for, unless they gave up.
        is_all = measure.stage is SearchStage.ENDS and waited > size
        return waited if waited >= least and not is_all else None

    def _answers_after_proxies(self, suspect: Suspect) -> bool:
        """Whether proxies answered before the server had, as a rule: else they wait for every replica."""
        measure = suspect.measure
        if not measure.own or measure.part in ("own part", "way") or not len(measure.operation):
            return False
        mine = measure.mask(suspect.level, suspect.candidate)
        after = (
            measure.units.seconds
            > self._joined.proxy_seconds[measure.operation] + operation_times.LATE_REPLICA_SECONDS
        )
        return bool(after[mine].mean() > _UNFELT_SHARE)

    def _share(self, suspect: Suspect) -> float:
        """Return in what share of the run's requests it took part; of account updates, in which of these."""
        measure = suspect.measure
        mine = measure.mask(suspect.level, suspect.candidate)
        if not len(measure.operation):
            return float(mine.mean())
        if measure.part == "lookups":
            asked = sort_distinct(measure.operation[mine])
            return len(asked) / max(int(self._usable.first_try.sum()), 1)
        if measure.stage is SearchStage.ENDS:
            return int(mine.sum()) / max(int(self._usable.compared.sum()), 1)
        for total in self._measures[-2:]:
            level = total.level(suspect.level.name)
            if level is not None and len(total.units):
                return float(total.mask(level, suspect.candidate).mean())
        return float("nan")

    def _compare_busy(self, suspect: Suspect) -> float | None:
        """Return how many times as many requests it served as the median of its peers."""
        counts = np.bincount(suspect.level.who.candidate, minlength=suspect.level.who.count)
        peers = np.delete(counts, suspect.candidate)
        peers = peers[peers > 0]
        return float(counts[suspect.candidate] / np.median(peers)) if len(peers) else None

    def _course(self, suspect: Suspect) -> DifferenceCourse | None:
        measure, level = suspect.measure, suspect.level
        if not len(measure.operation):
            return None
        where = level, suspect.candidate, POOLED if measure.divided == "time" else suspect.group
        moment = self._joined.operations.ended[measure.operation[measure.places(*where)]]
        return measure_course(moment, measure.excess(*where), self._run)

    def _together(self, found: Sequence[SuspectFinding]) -> list[WholeServer]:
        """Name the process, or else the node, of which all devices are slow."""
        slow = {each.name for each in found if isinstance(each, SlowServer) and each.level == "device"}
        named: list[WholeServer] = []
        for level in self._measures[-2].levels[1:]:
            for place, members in enumerate(level.members or ()):
                names = sorted(self._name("device", member) for member in members)
                known = any(set(names) <= set(other.members) for other in named)
                if len(names) > 1 and slow.issuperset(names) and not known:
                    name = self._name(level.name, place)
                    named.append(WholeServer(level.name, name, names))
        return named

    def _inconclusive(self, verdict: SuspectVerdict) -> list[IncomparableServers]:
        """Name the devices, processes and proxies of which nothing could be compared, by level and server."""
        names: dict[tuple[str, str], list[str]] = {}
        devices = self._joined.devices
        known: set[int] = set()
        for level in ("device", "process", "proxy"):
            for place in self._incomparable(verdict, level):
                server = ""
                if level == "device":
                    known.add(place)
                    server = devices[place].server
                elif level == "process":
                    members = self._measures[-2].levels[1].members or ()
                    if len(members[place]) == 1 or known.issuperset(members[place]):
                        continue
                    server = self._joined.processes[place].server
                names.setdefault((level, server), []).append(self._name(level, place))
        return [IncomparableServers(level, each[0], each[1:]) for (level, _), each in names.items()]

    def _incomparable(self, verdict: SuspectVerdict, level: str) -> list[int]:
        """Return the candidates of a level that served some requests, though no test could tell of them."""
        served: dict[int, int] = {}
        tested: set[int] = set()
        for measure, tests in zip(self._measures, verdict.tests, strict=True):
            for one, test in zip(measure.levels, tests, strict=True):
                if one.name == level:
                    counts = np.bincount(one.who.candidate, minlength=one.who.count)
                    tested.update(np.flatnonzero(~np.isnan(test.z).all(axis=0)).tolist())
                    for place, number in enumerate(counts.tolist()):
                        served[place] = max(number, served.get(place, 0))
        return [
            place for place, number in served.items() if number >= MIN_TEST_REQUESTS and place not in tested
        ]


# -- What else went wrong --------------------------------------------------------------------------


#: So few late replicas are no habit.
_MIN_LATE_REPLICAS = 5
#: Kinds of errors that proxies log of a device, and from how many devices on a server is spoken of as one.
_LOGGED_ERRORS = ("timeout", "connection", "error", "507", "limited")
_MIN_DEVICES_OF_SERVER = 2


#: A device was left out where it served nothing for so large a share of the run, and for so many times as
#: long as passed between its requests on average.
_MIN_ABSENCE_SHARE, _MIN_ABSENCE_RATIO = 0.1, 10


#: When the run was, in seconds since 1970.
RunPeriod = tuple[float, float]


def find_late_devices(joined: JoinedRun, run: RunPeriod) -> list[LateReplicas]:
    """Return the devices whose replicas of writes are late more often than the others'."""
    counted, lines = operation_times.find_late_replicas(joined), joined.lines
    found = []
    for place in np.flatnonzero(counted.counts):
        tail = binomial_tail(
            int(counted.counts.sum()), float(counted.shares[place]), int(counted.counts[place])
        )
        if counted.counts[place] >= _MIN_LATE_REPLICAS and tail * len(counted.counts) < suspect_search.ALPHA:
            operation = lines.operation[counted.lines[lines.device[counted.lines] == place]]
            found.append(
                LateReplicas(
                    "device",
                    str(joined.devices[place]),
                    requests=int(counted.counts[place]),
                    share=_share_of_operations(joined, operation),
                    probability=min(tail * len(counted.counts), 1.0),
                    seconds=float(counted.waited[place]),
                    stretch=find_stretch(joined.operations.ended[operation], run),
                )
            )
    return found


def find_given_up_replicas(
    joined: JoinedRun, run: RunPeriod, named: Collection[str]
) -> list[GivenUpReplicas]:
    """Return the devices with replicas of successful writes that proxies gave up, beside the ``named``."""
    lines, operations = joined.lines, joined.operations
    at = np.flatnonzero((lines.of == OBJECT) & (lines.status == 499) & ~operations.failed[lines.operation])
    found = []
    for place in np.unique(lines.device[at]).tolist():
        operation = lines.operation[at[lines.device[at] == place]]
        name = str(joined.devices[place])
        if len(operation) >= _MIN_LATE_REPLICAS and name not in named:
            share, when = (
                _share_of_operations(joined, operation),
                find_stretch(operations.ended[operation], run),
            )
            found.append(GivenUpReplicas("device", name, requests=len(operation), share=share, stretch=when))
    return sorted(found, key=_by_requests)


def find_complete_stalls(joined: JoinedRun, run: RunPeriod) -> list[CompleteStall]:
    """Tell when no operation ended though some were under way: what all wait for is no outlier."""
    operations = joined.operations
    known = ~np.isnan(operations.ended)
    if not known.any():
        return []
    ended, latency = operations.ended[known], operations.latency[known]
    gaps = GapTracker()
    gaps.add(ended, ended - latency)
    found = gaps.stalls(*run, select_latencies(latency[latency > 0]), None)
    if not found:
        return []
    longest = max(found, key=lambda each: each.seconds)
    between = Stretch(longest.start, longest.start + longest.seconds, run[1] - run[0])
    return [CompleteStall("", "", requests=len(found), seconds=longest.seconds, stretch=between)]


def _share_of_operations(joined: JoinedRun, operation: IntegerArray) -> float:
    """Return in which share of the operations something was, by the places of these, some more than once."""
    return len(sort_distinct(operation)) / max(len(joined.operations.code), 1)


def find_broken_devices(joined: JoinedRun, addresses: NodeAddresses, run: RunPeriod) -> list[ClusterFinding]:
    """Return the devices that answered 507, and those of which the proxies logged errors, each once."""
    lines, ended = joined.lines, joined.operations.ended
    full = np.flatnonzero(lines.status == 507)
    answered = {
        str(joined.devices[place]): lines.operation[full[lines.device[full] == place]]
        for place in np.unique(lines.device[full]).tolist()
    }
    logged: dict[str, Counter[str]] = {name: Counter() for name in answered}
    between: dict[str, list[int]] = {}
    members: dict[str, list[str]] = {}
    counted = joined.errors + joined.other_errors
    whole = _find_whole_servers(counted, addresses)
    for key, count in counted.items():
        kind, server, address, device = key
        if address and kind in _LOGGED_ERRORS:
            where = f"{address}/{device}" if device else address
            name = addresses.name(address, device, server) or f"{server} server {where}".strip()
            if server_name := whole.get(address):
                members.setdefault(server_name, []).append(device)
                name = server_name
            words = {"limited": "error limited", "connection": "no connection"}.get(kind, kind)
            logged.setdefault(name, Counter())[words] += count
            between.setdefault(name, []).extend(joined.error_places.get(key, ()))
    broken: list[BrokenDevice] = []
    errors: list[LoggedErrors] = []
    served = _count_served(joined)
    for name, each in logged.items():
        detail = ", ".join(f"{words} {_format_times(count)}" for words, count in each.most_common())
        if name in answered:
            operation = answered[name]
            broken.append(
                BrokenDevice(
                    "device",
                    name,
                    requests=len(operation),
                    share=_share_of_operations(joined, operation),
                    detail=detail,
                    stretch=find_stretch(ended[operation], run),
                    served=served[name],
                    seconds=_measure_absence(joined, name, run) if served[name] else None,
                )
            )
        else:
            errors.append(
                LoggedErrors(
                    "device",
                    name,
                    requests=each.total(),
                    detail=detail,
                    members=sorted(set(members.get(name, ()))),
                    stretch=find_stretch(ended[between[name]], run),
                )
            )
    found: list[ClusterFinding] = [*sorted(broken, key=_by_requests), *sorted(errors, key=_by_requests)]
    asked = np.flatnonzero(joined.handoffs > 0)
    if len(asked):
        share, when = _share_of_operations(joined, asked), find_stretch(ended[asked], run)
        found.append(HandoffRequests("proxy", "", requests=len(asked), share=share, stretch=when))
    return found


def _by_requests(finding: CountedFinding) -> int:
    """Sort findings with the most requests first."""
    return -finding.requests


def _measure_absence(joined: JoinedRun, name: str, run: RunPeriod) -> float | None:
    """Return for how many seconds a device served nothing; None if that is usual.

    After an answer of 507 proxies leave it out for a while.
    """
    lines = joined.lines
    place = [str(each) for each in joined.devices].index(name)
    served = joined.operations.ended[lines.operation[(lines.device == place) & (lines.status < 300)]]
    moments = np.sort(np.append(served[~np.isnan(served)], run))
    gaps = np.diff(moments)
    longest, length = float(gaps.max(initial=0.0)), run[1] - run[0]
    usual = length / max(len(served), 1)
    return longest if longest > max(_MIN_ABSENCE_SHARE * length, _MIN_ABSENCE_RATIO * usual) else None


def _count_served(joined: JoinedRun) -> dict[str, int]:
    """Count the requests that each device served."""
    lines = joined.lines
    counts = np.bincount(lines.device[lines.status < 300], minlength=len(joined.devices))
    return {str(device): int(count) for device, count in zip(joined.devices, counts, strict=True)}


def find_missed_updates(joined: JoinedRun, addresses: NodeAddresses, run: RunPeriod) -> list[MissedUpdates]:
    """Return the container servers that did not take updates of objects, by the object servers' errors.

    A few such errors come with any busy cluster. How long proxies waited is that of the writes concerned.
    """
    operations = joined.operations
    written = ~operations.failed & ~READS[operations.code]
    found = []
    for key, count in joined.errors.items():
        kind, server, address, device = key
        if kind == "update" and count >= _MIN_LATE_REPLICAS:
            # One write may have several: its replicas may tell the same server. Some writes failed.
            places = joined.not_updated.get((address, device), np.zeros(0, np.int64))
            places = places[written[places]]
            waited = operation_times.measure_wait_beyond_quorum(joined, places)
            found.append(
                MissedUpdates(
                    "device",
                    addresses.name(address, device, server) or f"{server} server {address}/{device}",
                    requests=count,
                    share=len(places) / max(int(written.sum()), 1),
                    waited=None if math.isnan(waited) else waited,
                    stretch=find_stretch(operations.ended[list(joined.error_places.get(key, ()))], run),
                )
            )
    return sorted(found, key=_by_requests)


def find_devices_called_slow(joined: JoinedRun) -> list[CalledSlow]:
    """Return the devices whose object servers call requests slow, and which part of them took longest.

    A few such requests are no habit: they do not make a healthy device remarkable.
    """
    found = []
    for (node, device, part), count in joined.slow.items():
        if not part and count >= _MIN_LATE_REPLICAS:
            parts = {name: ms for (*who, name), ms in joined.slow.items() if who == [node, device] and name}
            total = sum(parts.values()) / 1000
            longest = max(parts, key=lambda name: parts[name], default="")
            detail = f"{longest} {parts[longest] / 1000:.1f} s" if longest else ""
            name = str(Device(node, "object", device))
            found.append(CalledSlow("device", name, requests=count, seconds=total, detail=detail))
    return sorted(found, key=lambda each: -each.seconds)


def find_memcached_failures(joined: JoinedRun, run: RunPeriod) -> list[MemcachedFailure]:
    """Tell of a memcached that did not answer proxies; every request then asks further servers."""
    errors = {key: count for key, count in joined.errors.items() if key[0] == "memcached"}
    if sum(errors.values()) < _MIN_LATE_REPLICAS:
        return []
    ended = joined.operations.ended
    places = [place for key in errors for place in joined.error_places.get(key, ())]
    asked = joined.lines.operation[joined.lines.of == OTHER]
    named = sorted(address for _, _, address, _ in errors if address != "ALL")
    return [
        MemcachedFailure(
            "",
            named[0] if named else "",
            same=named[1:],
            requests=sum(errors.values()),
            share=_share_of_operations(joined, asked),
            stretch=find_stretch(ended[places], run),
        )
    ]


def _find_whole_servers(
    counted: Counter[tuple[str, str, str, str]], addresses: NodeAddresses
) -> dict[str, str]:
    """Return the names of the servers that did not answer for several devices, by address."""
    devices: dict[str, set[str]] = {}
    servers: dict[str, str] = {}
    others: set[str] = set()
    for kind, server, address, device in counted:
        if kind in ("connection", "timeout") and device:
            devices.setdefault(address, set()).add(device)
            servers[address] = server
        elif kind in _LOGGED_ERRORS and kind != "limited":
            others.add(address)
    found = {}
    for address, names in devices.items():
        if len(names) >= _MIN_DEVICES_OF_SERVER and address not in others:
            known = (addresses.name(address, device, servers[address]) for device in sorted(names))
            node = next((name.rpartition(" on ")[2] for name in known if name), None)
            found[address] = f"{servers[address]} server {f'on {node}' if node else address}"
    return found


def find_unlogged_servers(joined: JoinedRun, addresses: NodeAddresses, by_ring: Iterable[str]) -> list[str]:
    """Return the servers without a log that errors of proxies, other servers, recon or the ring name."""
    named = {
        address: None
        for _, server, address, device in joined.errors + joined.other_errors
        if address and device and server in ("object", "") and addresses.has_no_log(address, device)
    }
    placed = (address for address in by_ring if addresses.node(address) is None)
    found = dict.fromkeys([*addresses.unlogged, *named, *placed])
    with_port = {ip_of_address(address) for address in found}
    return [address for address in found if address not in with_port]


def _format_times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def find_missing_lines(
    joined: JoinedRun,
    usable: UsableOperations,
    complete: Completeness,
    run: RunPeriod,
    silent: Sequence[str] = (),
) -> list[MissingLines]:
    """Tell whether requests of which a storage server or the proxy left no line take longer than others.

    ``silent`` are servers whose logs are there, though they may not have answered.
    """
    reads_of_one = usable.first_try & ~complete.concurrent
    servers = _compare_lacking_lines("device", joined, np.flatnonzero(reads_of_one), ~complete.complete, run)
    return [
        *(replace(each, members=list(silent)) for each in servers),
        *_compare_lacking_lines(
            "proxy", joined, np.flatnonzero(usable.first_try), joined.proxy == NO_INDEX, run
        ),
    ]


def find_silent_devices(joined: JoinedRun, addresses: NodeAddresses) -> list[str]:
    """Return the devices of object servers that did not answer though their log is given.

    That is by the proxies' errors, or else the logs that have no line of the run.
    """
    nodes = {each.node for each in joined.devices} | {each.node for each in joined.files}
    names = {
        name
        for kind, server, address, device in joined.errors
        if kind in ("timeout", "connection") and server == "object" and device
        if (name := addresses.name(address, device, server)) and name.rpartition(" on ")[2] in nodes
    }
    files = (each.path for each in joined.files if not each.of_run and not each.of_daemons)
    return sorted(names) or sorted(files)


def _compare_lacking_lines(
    level: str, joined: JoinedRun, at: IntegerArray, lacks: npt.NDArray[np.bool_], run: RunPeriod
) -> list[MissingLines]:
    """Compare those of some operations that lack a line with the others of their kind."""
    operations, without = joined.operations, lacks[at]
    if not without.any() or without.all():
        return []
    stratum = operation_times.number_strata((operations.code[at], joined.policy[at]), operations.size[at])
    units = Units(operations.latency[at], stratum, np.zeros(int(stratum.max()) + 1, np.int64))
    mine = np.flatnonzero(without)
    z = float(measure_deviates(units, make_pairs(mine, np.zeros(len(mine), np.int64), 1), 1).z[-1, 0])
    measured = measure_peer_difference(units, without)
    probability = upper_tail(z)
    if not probability < suspect_search.ALPHA or not measured.share >= suspect_search.MIN_DELAY_SHARE:
        return []
    return [
        MissingLines(
            level,
            "",
            requests=len(mine),
            share=len(mine) / len(at),
            difference=measured,
            interval=measure_median_interval(units, without),
            request=measured.base,
            probability=probability,
            course=measure_course(
                operations.ended[at[without]], measure_excess(units, without)[without], run
            ),
        )
    ]
