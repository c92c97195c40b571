"""What is remarkable about the cluster beside a run."""

from __future__ import annotations

import msgspec
from golden_words import GoldenWords
from recon_answers import server

from ssbench.cluster.judgments import (
    ClusterJudgment,
    JudgmentKind,
    describe_judgments,
    group_nodes,
    judge_cluster,
)
from ssbench.results.cluster_observation import Disk, Observation, Proxy, State, Statsd


def test_a_machine_under_load_is_not_at_rest(golden_words: GoldenWords):
    busy, quiet = (State(root="/srv/node", load=load) for load in (21.4, 8.0))
    seen = Observation(servers=(server(4, busy), server(5, quiet), server(6, quiet, busy)))
    golden_words(describe_judgments(judge_cluster(seen), warnings=True))


def test_what_was_wrong_before_the_run(golden_words: GoldenWords):
    disks = (Disk("d1", size=1000, used=930), Disk("d2", mounted=False), Disk("d3", size=1000, used=900))
    state = State(root="/srv/node", disks=disks, replication_age={"object": 31 * 3600.0, "container": 60.0})
    account = State(root="/srv/node", disks=disks, replication_age={"object": 31 * 3600.0})
    state = msgspec.structs.replace(state, async_pending=1204)
    seen = Observation(servers=(server(4, account, port=6202, kind="account"), server(4, state)))
    assert [node.name for node in group_nodes(seen)] == ["10.0.0.4"]
    assert judge_cluster(seen) == [  # each once, though two servers tell of it
        ClusterJudgment(JudgmentKind.NOT_MOUNTED, "10.0.0.4", "d2"),
        ClusterJudgment(JudgmentKind.FULL, "10.0.0.4", "d1", 0.93),
        ClusterJudgment(JudgmentKind.LATE, "10.0.0.4", "object", 31 * 3600.0),
        ClusterJudgment(JudgmentKind.PENDING, "10.0.0.4", value=1204),
    ]
    golden_words(describe_judgments(judge_cluster(seen), warnings=True))
    assert describe_judgments(judge_cluster(seen), warnings=False) == []


def test_what_the_run_changed():
    old = State(
        root="/srv/node",
        async_pending=3,
        async_counted=100.0,
        quarantined=0,
        disks=(Disk("d1", size=100, used=89), Disk("d2", size=100)),
    )
    new = State(
        root="/srv/node",
        async_pending=1207,
        async_counted=400.0,
        quarantined=2,
        disks=(Disk("d1", size=100, used=92), Disk("d2", mounted=False)),
    )
    seen = Observation(servers=(server(4, old, new), server(5, old, old)))
    found = judge_cluster(seen)
    assert "Async pendings: +1,204 on 10.0.0.4" in describe_judgments(found, warnings=False)
    assert "Quarantined: +2 on 10.0.0.4" in describe_judgments(found, warnings=False)
    assert ClusterJudgment(JudgmentKind.NOT_COUNTED, "10.0.0.5") in found
    assert ClusterJudgment(JudgmentKind.LOST, "10.0.0.4", "d2") in found
    assert ClusterJudgment(JudgmentKind.FILLED, "10.0.0.4", "d1", 0.92) in found


def test_a_cluster_at_rest_is_not_remarkable():
    state = State(root="/srv/node", version="2.35.0", async_pending=0, async_counted=1.0, disks=(Disk("d1"),))
    later = msgspec.structs.replace(state, async_counted=2.0)
    seen = Observation(servers=tuple(server(number, state, later) for number in range(300)))
    assert judge_cluster(seen) == []


def test_hundreds_are_one_line():
    state = State(disks=(Disk("d1", mounted=False),))
    seen = Observation(servers=tuple(server(number, state) for number in range(300)))
    (sentence,) = describe_judgments(judge_cluster(seen), warnings=True)
    assert sentence.endswith("and 295 more")
    assert len(sentence) < 200


def test_who_did_not_answer_and_what_did_not_come(golden_words: GoldenWords):
    seen = Observation(
        servers=(
            server(4, None, unanswered=3, failure="Connection refused"),
            server(5, State(version="2.38.3"), unanswered=1, failure="no answer in 3 s"),
            server(6, State(version="2.35.0")),
        ),
        proxies=(Proxy("http://p", failure="answered 404"),),
        statsd=Statsd(port=8125, strange=2, dropped=5),
    )
    golden_words(describe_judgments(judge_cluster(seen), warnings=True))


def test_servers_of_one_host_with_folders_of_their_own_are_nodes_of_their_own():
    seen = Observation(
        servers=(server(4, State(root="/srv/1"), port=6210), server(4, State(root="/srv/2"), port=6220))
    )
    assert [node.name for node in group_nodes(seen)] == ["10.0.0.4:6210", "10.0.0.4:6220"]
