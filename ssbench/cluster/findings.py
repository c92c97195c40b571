"""What the logs say of a run: coverage, parts, tables, and who made requests slow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ssbench.cluster import (
    attribution_records,
    operation_times,
    own_times,
    suspect_search,
    troubles,
)
from ssbench.cluster import (
    possible_causes as cluster_at_work,
)
from ssbench.cluster.attribution_records import (
    LONG_WAIT_SECONDS,
    Attribution,
    AttributionFacts,
    Lead,
    LogFinding,
)
from ssbench.cluster.joined_run import NO_INDEX, JoinedRun
from ssbench.cluster.node_addresses import NodeAddresses
from ssbench.cluster.operation_times import GROUPS, average_time_shares
from ssbench.cluster.possible_causes import BackgroundWork
from ssbench.cluster.rank_tests import (
    MIN_TEST_REQUESTS,
    Deviates,
    IntegerArray,
    PeerDifference,
    Shown,
    is_evident,
    sort_distinct,
)
from ssbench.cluster.server_times import (
    DifferenceCourse,
    Timelines,
    list_own_times,
    make_timelines,
    measure_course,
    measure_evidence,
    rank_standings,
)
from ssbench.cluster.suspect_search import (
    POOLED,
    Measure,
    Stage,
    Suspect,
    SuspectVerdict,
    find_detectable_delay,
)

#: Differences of fewer requests are not reported.
_MIN_REQUESTS = 5
#: Slow by its own clock, but not felt: so large a share of its answers came after the proxy's.
_UNFELT_SHARE = 0.5
#: Proxies waited for what took so long if they waited this share of it: they do no longer than they have to.
_MIN_WAITED_SHARE = 0.2
#: Whose deviate is below this, of p = 0.05, is no lead.
_MIN_LEAD_DEVIATE = 1.64
#: Findings of suspects, of which it is asked what else was at work there.
_SUSPECT_KINDS = ("slow", "unfelt", "late", "one of")


def make_attribution(joined: JoinedRun, facts: AttributionFacts | None = None) -> Attribution:
    """Draw the conclusions."""
    return _Conclusions(joined, facts or AttributionFacts()).all()


class _Conclusions:
    def __init__(self, joined: JoinedRun, facts: AttributionFacts) -> None:
        operations = joined.operations
        self._joined = joined
        self._facts = facts
        self._addresses = NodeAddresses(joined, facts.hosts, facts.cluster)
        self._unlogged = troubles.find_unlogged_servers(joined, self._addresses, facts.unlogged)
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
        self._measures = own_times.make_measures(
            joined, self._parts, self._usable, self._by_device, self._by_proxy, seconds
        )
        self._nodes = operation_times.list_node_names(joined)
        known = operations.ended[~np.isnan(operations.ended)]
        self._run = (float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan)

    def all(self) -> Attribution:
        joined, lines = self._joined, self._joined.lines
        verdict = suspect_search.find_suspects(self._measures)
        findings = self._findings(verdict)
        named = [each for each in findings if each.kind in {"slow", "late", "507"}]
        suspects = {name for each in named for name in (each.name, *each.members)}
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
            lead=None if verdict.suspects else self._lead(verdict),
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
        }
        return str(names[level][candidate])

    def _findings(self, verdict: SuspectVerdict) -> list[LogFinding]:
        found = [self._suspect(each, verdict) for each in verdict.suspects]
        found += self._together(found)
        found = self._beside_updates(found)
        late = troubles.find_late_devices(self._joined, self._run)
        found += late
        found += troubles.find_given_up_replicas(self._joined, self._run, [each.name for each in late])
        found += troubles.find_broken_devices(self._joined, self._addresses, self._run)
        found += troubles.find_memcached_failures(self._joined, self._run)
        found += troubles.find_devices_called_slow(self._joined)
        found += troubles.find_complete_stalls(self._joined, self._run)
        silent = [] if self._unlogged else troubles.find_silent_devices(self._joined, self._addresses)
        found += troubles.find_missing_lines(self._joined, self._usable, self._complete, self._run, silent)
        at_work = BackgroundWork(self._joined, self._run)
        return [self._with_surroundings(each, at_work) for each in found] + self._inconclusive(verdict)

    def _beside_updates(self, found: list[LogFinding]) -> list[LogFinding]:
        """Put first which container servers did not take updates while writes waited for them.

        That is why requests with such a server take longer, though its own log may not show it: where clients
        alone show that it is slow, this is not said once more.
        """
        updates = troubles.find_missed_updates(self._joined, self._addresses, self._run)
        waited = {
            each.name for each in updates if each.waited is not None and each.waited >= LONG_WAIT_SECONDS
        }
        rest = [each for each in found if each.name not in waited or each.part not in ("total", "told")]
        first = [each for each in updates if each.name in waited]
        return [*first, *rest, *(each for each in updates if each.name not in waited)]

    def _with_surroundings(self, finding: LogFinding, at_work: BackgroundWork) -> LogFinding:
        """Add what recon and statsd saw of a finding's node and device, and what else was at work there."""
        names = [finding.name, *(finding.same if finding.kind == "one of" else ())]
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
        if finding.kind not in _SUSPECT_KINDS:
            return finding
        return replace(finding, work=at_work.beside(finding), daemons=at_work.logs(finding))

    def _suspect(self, suspect: Suspect, verdict: SuspectVerdict) -> LogFinding:
        measure, level = suspect.measure, suspect.level
        where = level, suspect.candidate, suspect.group
        felt = self._felt(suspect)
        own = {
            self._part(each, group): shown
            for each, tests in zip(self._measures, verdict.tests, strict=True)
            if each.stage is not Stage.TOTAL and not each.windows and not each.tail
            for group in range(len(each.groups))
            if (shown := self._shown(each, tests, suspect, group)) is not None
        }
        after = self._answers_after_proxies(suspect)
        part = self._part(measure, suspect.group)
        if measure.stage is Stage.ENDS and self._joined.devices[suspect.candidate].server == "container":
            part = "told"
        waited = self._waited(suspect) if part == "told" or (after and part == "updates") else None
        is_unfelt = after and waited is None
        return LogFinding(
            "one of" if suspect.rivals else "unfelt" if is_unfelt else "slow",
            level.name,
            self._name(level.name, suspect.candidate),
            requests=suspect.with_,
            share=self._share(suspect),
            part=part,
            group=self._group(measure, suspect.group),
            difference=suspect.difference,
            interval=measure.interval(*where),
            request=measure.request,
            probability=suspect.probability,
            own=own,
            felt=felt,
            members=[
                self._name(measure.levels[0].name, place)
                for place in (level.members[suspect.candidate] if level.members else ())
            ],
            same=[self._name(level.name, place) for place in suspect.rivals],
            ties=[self._name(level.name, place) for place in suspect.ties],
            course=self._course(suspect),
            waited=waited,
        )

    def _part(self, measure: Measure, group: int) -> str:
        of_group = measure.part == "own" and group != POOLED and not measure.windows
        return measure.groups[group] if of_group else measure.part

    def _group(self, measure: Measure, group: int) -> str | None:
        """Return the group of operations that a test is of; None where it is of all."""
        name = "" if group == POOLED else measure.groups[group]
        return name if measure.stage is not Stage.OWN and name in GROUPS else None

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
        is_end = measure.stage is Stage.ENDS
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
                return Lead(who, part, self._group(measure, group), measured, probability)
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
        is_all = measure.stage is Stage.ENDS and waited > size
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
        name, measure = suspect.level.name, suspect.measure
        mine = measure.mask(suspect.level, suspect.candidate)
        if not len(measure.operation):
            return float(mine.mean())
        if measure.part == "lookups":
            asked = sort_distinct(measure.operation[mine])
            return len(asked) / max(int(self._usable.first_try.sum()), 1)
        if measure.stage is Stage.ENDS:
            return int(mine.sum()) / max(int(self._usable.compared.sum()), 1)
        total = next((each for each in self._measures[-2:] if each.level(name)), None)
        if total is None or not len(total.units):
            return float("nan")
        return float(total.mask(total.level(name) or suspect.level, suspect.candidate).mean())

    def _course(self, suspect: Suspect) -> DifferenceCourse | None:
        measure, level = suspect.measure, suspect.level
        if not len(measure.operation):
            return None
        where = level, suspect.candidate, POOLED if measure.windows else suspect.group
        moment = self._joined.operations.ended[measure.operation[measure.places(*where)]]
        return measure_course(moment, measure.excess(*where), self._run)

    def _together(self, found: list[LogFinding]) -> list[LogFinding]:
        """Name the process, or else the node, of which all devices are slow."""
        slow = {each.name for each in found if each.kind == "slow" and each.level == "device"}
        named: list[LogFinding] = []
        for level in self._measures[-2].levels[1:]:
            for place, members in enumerate(level.members or ()):
                names = sorted(self._name("device", member) for member in members)
                known = any(set(names) <= set(other.members) for other in named)
                if len(names) > 1 and slow.issuperset(names) and not known:
                    name = self._name(level.name, place)
                    named.append(LogFinding("together", level.name, name, members=names))
        return named

    def _inconclusive(self, verdict: SuspectVerdict) -> list[LogFinding]:
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
        return [
            LogFinding("inconclusive", level, each[0], same=each[1:]) for (level, _), each in names.items()
        ]

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
