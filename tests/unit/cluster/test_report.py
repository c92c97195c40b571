"""The section of a report on the cluster."""

from __future__ import annotations

import msgspec
from recon_answers import server
from section_lines import section_lines

from ssbench.cluster import report
from ssbench.document.elements import Section
from ssbench.results.cluster_observation import Disk, Metric, MetricInterval, Observation, State, Statsd


def test_the_section_of_the_report():
    disks = (Disk("d0", mounted=False), Disk("d1", size=100, used=50))
    old = State(root="/srv/node", load=1.0, async_pending=0, disks=disks, version="2.38.3", tcp_in_use=1200)
    peak = msgspec.structs.replace(old, load=7.5)
    puts = tuple(
        Metric(
            f"o1.object-server.PUT.{device}.timing", True, (MetricInterval(0.0, value * 10, 10.0, {1: 10.0}),)
        )
        for device, value in (("d1", 0.01), ("d2", 0.5))
    )
    seen = Observation(servers=(server(4, old, old, during=(peak,)),), statsd=Statsd(lines=20, metrics=puts))
    lines = section_lines(Section("Cluster", report.make_observation_notes(seen)))
    assert lines[:3] == ["Cluster", "  Swift 2.38.3; servers asked: 1", ""]
    assert lines[4].split() == ["10.0.0.4", "1.00", "7.50", "1,200", "d1", "50.0", "%", "0", "to", "0"]
    assert [line.split()[:3] for line in lines if "o1." in line] == [
        ["o1.d2", "10", "0.500"],
        ["o1.d1", "10", "0.0100"],
    ]
    # What a server does not say is not known, and no load of nought.
    silent = Observation(servers=(server(4, msgspec.structs.replace(old, load=None)),))
    assert section_lines(Section("Cluster", report.make_observation_notes(silent)))[4].split()[:3] == [
        "10.0.0.4",
        "N/A",
        "N/A",
    ]
    assert report.make_observation_notes(None) == []
    assert report.make_observation_notes(Observation(failure="nothing")) == []
