"""Who is named: on genuine runs of a real Swift, and on simulated ones of sixty devices."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from genuine_runs import genuine
from golden_words import GoldenWords
from said import (
    EVIDENCE_TITLE,
    NOT_IN_ITS_LOG,
)
from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster import attribution_report, finding_sentences, operation_times, rank_tests
from ssbench.cluster.attribution_records import Attribution, AttributionFacts
from ssbench.cluster.attribution_report import AttributedRun
from ssbench.cluster.findings import make_attribution
from ssbench.cluster.joined_run import (
    NO_INDEX,
    OBJECT,
    OTHER,
    UPDATE,
    Device,
    FileCount,
    JoinedLines,
    JoinedRun,
    Process,
)
from ssbench.cluster.rank_tests import IntegerArray
from ssbench.document.elements import Document, View
from ssbench.document.renderers import html
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.scenario.operations import DELETE, LIST


def suspects(found: Attribution) -> list[str]:
    return [each.name for each in found.findings if each.kind == "slow"]


def named(found: Attribution) -> list[str]:
    """Who is a suspect, without nodes and each once."""
    return sorted({name.split()[0] for name in suspects(found)})


def all_suspects(found: Attribution) -> set[str]:
    """All who are said to be slow, or perhaps so."""
    return {
        name
        for each in found.findings
        if each.kind in ("slow", "one of", "unfelt", "late", "missing")
        for name in (each.name, *each.members)
    }


@pytest.mark.parametrize(
    ("run", "names"),
    [
        ("base", []),
        ("open3", ["d3 on o3"]),
        ("fsync3", ["d3 on o3"]),
        ("filter3", ["d3 on o3"]),
        # The device that blocks its process, and the other one there, which waits for it.
        ("block1", ["d1 on o1", "d4 on o1"]),
        ("conc3", ["d3 on o3"]),
    ],
)
def test_genuine_runs(run: str, names: list[str]) -> None:
    found = make_attribution(genuine(run))
    assert suspects(found) == names


def test_words_of_genuine_runs(golden_words: GoldenWords) -> None:
    base, containers, few = finding_sentences.describe_attribution(make_attribution(genuine("base")))
    golden_words(base)
    golden_words(containers)
    golden_words(few)
    (open3,) = finding_sentences.describe_attribution(make_attribution(genuine("open3")))
    assert open3.startswith(
        "d3 on o3 is slow: its reads take 30.5 ms longer by its own log, in 52.3 % of all requests."
        " Throughout the run (10.5 s); +169.6 % of a request; 95%: "
    )
    assert "; p < 0.001. Clients: reads +30.2 ms, writes +28.4 ms. Next: " in open3
    (filter3,) = finding_sentences.describe_attribution(make_attribution(genuine("filter3")))
    golden_words(filter3)
    block = finding_sentences.describe_attribution(make_attribution(genuine("block1")))
    together = "d1 on o1 and d4 on o1 are all the devices of process object server 1 on o1. Next: load, CPU"
    assert block[2].startswith(together)


@pytest.mark.parametrize("run", ["base", "open3", "block1"])
def test_of_two_proxies_one_at_most_is_slower(run: str) -> None:
    proxies = make_attribution(genuine(run)).proxies
    assert len(proxies) == 2
    assert sum(row.longer is not None for row in proxies) <= 1
    assert all(row.longer is None or row.longer.median > 0 for row in proxies)


#: As the embedded Swift of ``bench/attribution.py``: two of the four devices share a server.
SMALL = Shape(devices=4, nodes=3, requests=400)
#: A ring that swift-ring-builder makes of twelve new devices has four sets of three.
FRESH = Shape(devices=12, nodes=4, requests=1200, ring="fresh")


@pytest.mark.parametrize(
    ("cause", "names"),
    [
        (Cause(devices=(3,)), ["d3"]),
        (Cause(devices=(0,), where="before"), ["d0"]),
        (Cause(devices=(2,), where="commit"), ["d2"]),
        (Cause(devices=(1, 3)), ["d1", "d3"]),
        (Cause(proxy=1), ["p1"]),
        (Cause(container=1, seconds=0.01), ["container"]),
    ],
    ids=["open", "before the clock", "commit", "two", "proxy", "container server"],
)
def test_who_is_slow_is_named_in_small_runs(cause: Cause, names: list[str]) -> None:
    for seed in range(4):
        assert named(make_attribution(simulate(seed, cause, SMALL))) == names


@pytest.mark.parametrize(
    ("cause", "shape", "names"),
    [
        (Cause(devices=(7,)), Shape(), ["d7"]),
        (Cause(devices=(7,), share=0.33), Shape(requests=6000), ["d7"]),
        (Cause(devices=(7,), where="commit", seconds=0.02), Shape(), ["d7"]),
        (Cause(devices=(3,), only="writes"), SMALL, ["d3"]),
        (Cause(devices=(1, 3), where="commit"), Shape(), ["d1", "d3"]),
        (Cause(proxy=0, devices=(9,)), Shape(), ["d9", "p0"]),
        (Cause(proxy=1, where="before", seconds=0.01), SMALL, ["p1"]),
        # Which device it is, of three that the ring always puts together, their own times tell.
        (Cause(devices=(1,), where="commit"), FRESH, ["d1"]),
        (Cause(devices=(1,), only="writes"), FRESH, ["d1"]),
        (Cause(devices=(5,), where="commit"), replace(FRESH, devices=6, nodes=3, requests=400), ["d5"]),
        (Cause(devices=(1, 3), where="commit"), FRESH, ["d1", "d3"]),
        # Two of the three devices of a node.
        (Cause(devices=(1, 5)), FRESH, ["d1", "d5"]),
        (Cause(devices=(1, 5), where="commit"), replace(FRESH, writes=0.7, deletes=0.3), ["d1", "d5"]),
        (Cause(devices=(1, 4)), replace(FRESH, devices=9, nodes=3), ["d1", "d4"]),
        (Cause(devices=(8,), where="commit"), Shape(ring="fresh"), ["d8"]),
        (Cause(devices=(4,), seconds=0.02), replace(FRESH, replicas=6, data=4), ["d4"]),
    ],
)
def test_who_is_slow_is_named_and_nobody_else(cause: Cause, shape: Shape, names: list[str]) -> None:
    assert named(make_attribution(simulate(1, cause, shape))) == names


@pytest.mark.long
@pytest.mark.parametrize("shape", [SMALL, FRESH], ids=["4 devices", "12 devices, fresh"])
def test_what_would_have_been_found_is_found(shape: Shape) -> None:
    least = make_attribution(simulate(3, Cause(), shape)).detectable
    assert least is not None
    cause = Cause(devices=(1,), seconds=least)
    assert sum(named(make_attribution(simulate(seed, cause, shape))) == ["d1"] for seed in range(5)) >= 4


def test_too_few_requests_are_no_all_clear(golden_words: GoldenWords) -> None:
    found = make_attribution(simulate(1, Cause(), replace(SMALL, requests=50)))
    golden_words(finding_sentences.describe_attribution(found)[0])


def test_of_devices_that_a_ring_puts_together_one_is_slow() -> None:
    # Before its clock starts no own time shows it, and no write is with one of the three alone.
    found = make_attribution(simulate(1, Cause(devices=(1,), where="before", only="writes"), FRESH))
    (one,) = found.findings
    assert one.kind == "one of"
    assert {each.split()[0] for each in (one.name, *one.same)} == {"d1", "d2", "d11"}
    (sentence,) = finding_sentences.describe_attribution(found)
    assert sentence.startswith("One of d1 on n1, d2 on n2 and d11 on n3 is slow: writes with it take ")


def test_of_two_replicas_that_a_ring_puts_together_one_is_slow() -> None:
    """The healthy one ends last, since it waits for the other, and that does not single it out."""
    cause = Cause(devices=(7,), where="before", only="writes")
    (one,) = make_attribution(simulate(2, cause, replace(FRESH, replicas=2))).findings
    assert (one.kind, {each.split()[0] for each in (one.name, *one.same)}) == ("one of", {"d2", "d7"})


def with_workers(joined: JoinedRun, workers: int, seconds: float) -> JoinedRun:
    """Have each node's object server be several processes, of which the first of node n2 is slow in reads."""
    random, lines = np.random.default_rng(1), joined.lines
    nodes = sorted({device.node for device in joined.devices})
    processes = [Process(node, "object", str(pid)) for node in nodes for pid in range(workers)]
    node_of = np.array([nodes.index(device.node) for device in joined.devices])[lines.device]
    process = node_of * workers + random.integers(0, workers, len(lines))
    is_read = operation_times.READS[joined.operations.code][lines.operation]
    slow = (process == nodes.index("n2") * workers) & is_read
    latency = joined.operations.latency.copy()
    latency[lines.operation[slow]] += seconds
    return replace(
        joined,
        processes=processes,
        lines=replace(lines, process=process, seconds=lines.seconds + seconds * slow),
        proxy_seconds=joined.proxy_seconds + latency - joined.operations.latency,
        operations=replace(joined.operations, latency=latency),
    )


@pytest.mark.parametrize("seconds", [0.004, 0.01])
def test_of_one_process_of_several_its_devices_are_not_accused(seconds: float) -> None:
    shape = Shape(devices=12, nodes=4, requests=3000, ring="grown", writes=0.2)
    joined = with_workers(simulate(5, Cause(), shape), 4, seconds)
    found = make_attribution(joined)
    assert [(each.kind, each.level, each.name) for each in found.findings if each.kind != "inconclusive"] == [
        ("slow", "process", "object server 0 on n2")
    ]


def test_of_a_node_with_few_requests_of_each_device_one_is_slow(golden_words: GoldenWords) -> None:
    shape = replace(FRESH, requests=120, ring="grown", writes=0.3)
    joined = simulate(3, Cause(devices=(1, 5), only="reads", seconds=0.06), shape)
    (one,) = make_attribution(joined).findings
    assert (one.kind, {each.split()[0] for each in (one.name, *one.same)}) == ("one of", {"d1", "d5", "d9"})
    golden_words(one.describe())


@pytest.mark.parametrize("shape", [SMALL, replace(FRESH, requests=1500)], ids=["4 devices", "12, fresh"])
def test_who_is_there_only_while_all_is_slower_is_not_accused(shape: Shape) -> None:
    # A device that joins when the load begins was accused in 19 or 20 of 20 such runs.
    cause = Cause(load=(0.35, 1.6), away=(1, 0.0, 0.35))
    assert (
        sum(bool(suspects(make_attribution(simulate(1000 + seed, cause, shape)))) for seed in range(6)) <= 1
    )


def test_who_is_there_in_a_part_of_the_run_and_slow_is_named() -> None:
    cause = Cause(load=(0.35, 1.6), away=(1, 0.0, 0.5), devices=(1,))
    for seed in range(3):
        assert named(make_attribution(simulate(seed, cause, SMALL))) == ["d1"]


@pytest.mark.parametrize(("devices", "seed"), [(6, 3016), (12, 3002), (12, 3040), (12, 3044)])
def test_the_largest_of_many_deviates_breaks_no_tie(devices: int, seed: int) -> None:
    cause = Cause(devices=(seed % devices,), where="before", only="writes")
    nodes, requests = {6: (3, 400), 12: (4, 600)}[devices]
    shape = Shape(devices=devices, nodes=nodes, requests=requests, ring="fresh")
    found = make_attribution(simulate(seed, cause, shape))
    assert [each.kind for each in found.findings] == ["one of"]


def test_when_a_device_was_slow() -> None:
    # 400 results in 8 s.
    found = make_attribution(simulate(1, Cause(devices=(1,), seconds=0.06, part=(0.25, 0.5)), SMALL))
    assert named(found) == ["d1"]
    course = found.findings[0].course
    assert course is not None
    assert course.begins == pytest.approx(2.0, abs=0.3)
    assert course.ends == pytest.approx(4.0, abs=0.3)
    assert (
        f". From {course.begins:.1f} s to {course.ends:.1f} s of 8 s;"
        in finding_sentences.describe_attribution(found)[0]
    )
    known = [each.longer for each in course.slices if each.longer is not None]
    assert max(known) == pytest.approx(0.06, rel=0.2)
    always = make_attribution(simulate(1, Cause(devices=(1,)), SMALL)).findings[0].course
    assert always is not None
    assert always.begins is None


def test_pictures_fit_a_terminal_and_show_evidence_first() -> None:
    found = make_attribution(simulate(1, Cause(devices=(1,), seconds=0.06, part=(0.25, 0.75)), SMALL))
    lines = products.find_writer(Product.ATTRIBUTION, "text")(AttributedRun(found), View()).splitlines()
    assert max(map(len, lines)) <= 80
    table = lines[lines.index(EVIDENCE_TITLE) :]
    assert re.match(r" +d1 on n1 +\+[\d.]+ +\+[\d.]+ to \+[\d.]+ +█+ *< 0\.001$", table[2])
    (over,) = (line for line in lines if line.startswith("  d1 on n1: "))
    assert re.match(r"  d1 on n1: [▁▂]+[▃▄▅▆▇█]+[▁▂]+ \(0 to 8 s; highest \+[\d.]+ ms longer\)", over)
    assert found.standings[0].name == "d1 on n1"
    page = html.render(Document("", [*attribution_report.make_attribution_sections(found)]), View())
    assert page.count("<table") >= 6


def test_words_of_a_device_that_is_slow_at_commit(golden_words: GoldenWords) -> None:
    cause = Cause(devices=(2,), where="commit")
    (sentence,) = finding_sentences.describe_attribution(
        make_attribution(simulate(1, cause, replace(SMALL, deletes=0.0)))
    )
    assert sentence.startswith("d2 on n2 is slow: writes with it take ")
    golden_words(sentence)
    # So little is not seen in the client's time.
    cause = Cause(devices=(2,), where="commit", seconds=0.006)
    (sentence,) = finding_sentences.describe_attribution(
        make_attribution(simulate(1, cause, replace(SMALL, deletes=0.0)))
    )
    assert re.match(
        r"d2 on n2 is slow: writes wait for it: its replica takes [\d.]+ ms longer than the others of the"
        r" same write, by their own logs, in [\d.]+ % of all requests\. Throughout the run \(8 s\);"
        r" \+[\d.]+ % of a request; 95%: [\d.]+ ms to [\d.]+ ms; p < 0\.001\. Next: iostat",
        sentence,
    ), sentence


@pytest.mark.parametrize("slow", [(3,), (1, 3)])
def test_devices_that_wait_for_a_slow_one_are_not_taken_for_slow(slow: tuple[int, ...]) -> None:
    # The delay passes before the slow server's clock starts, so that the times of the others are longer.
    # Without reads nothing but the times of writes can tell. Of two slow ones of four, a third device is last
    # in every write with both.
    cause = Cause(devices=slow, where="before")
    shape = replace(SMALL, requests=300, writes=1.0)
    false = [
        seed
        for seed in range(8)
        if set(named(make_attribution(simulate(seed, cause, shape)))) - {f"d{place}" for place in slow}
    ]
    assert false == []


def test_a_read_always_waits_for_its_server() -> None:
    # A device's own log shows 12 ms; what its clients see of it is lost in their noise.
    joined = simulate(1, Cause(), SMALL)
    lines = joined.lines
    slower = (lines.device == 1) & operation_times.READS[joined.operations.code[lines.operation]]
    found = make_attribution(replace(joined, lines=replace(lines, seconds=lines.seconds + 0.012 * slower)))
    assert suspects(found) == ["d1 on n1"]


def test_what_proxies_do_not_wait_for_is_shown() -> None:
    joined = simulate(1, Cause(), SMALL)
    lines = joined.lines
    slower = (lines.of == UPDATE) & (lines.device == 5)
    found = make_attribution(replace(joined, lines=replace(lines, seconds=lines.seconds + 1.5 * slower)))
    assert [(each.kind, each.name) for each in found.findings] == [("unfelt", "container server's c1 on n1")]
    assert finding_sentences.ALL_CLEAR not in finding_sentences.describe_attribution(found)[0]


@pytest.mark.parametrize(("seconds", "waited"), [(0.7, 0.5), (1.5, 0.5)])
def test_writes_that_wait_for_a_container_server_say_how_long(seconds: float, waited: float) -> None:
    # Its answers come after the proxies', which wait for post_quorum_timeout.
    found = make_attribution(simulate(1, Cause(container=1, seconds=seconds), SMALL))
    (first,) = found.findings
    assert (first.kind, first.name) == ("slow", "container server's c1 on n1")
    assert first.waited == pytest.approx(waited, abs=0.05)
    assert re.match(r"Writes wait 5\d\d\.\d ms for container server's c1 on n1: it takes ", first.describe())


def stopped(container: str, writes: int, errors: int) -> Attribution:
    """Writes of which object servers could not tell a container server, for which proxies waited 0.5 s."""
    joined = simulate(1, Cause(), replace(SMALL, writes=1.0, requests=writes))
    counts = Counter({("update", "container", "10.0.0.2:6201", container): errors})
    places = dict.fromkeys(counts, (0, writes - 1))
    waits = np.arange(errors)
    seconds = joined.proxy_seconds.copy()
    seconds[waits] += 0.5
    slow = replace(joined, proxy_seconds=seconds, errors=counts, error_places=places)
    slow = replace(slow, not_updated={("10.0.0.2:6201", container): waits})
    return make_attribution(slow, AttributionFacts({"10.0.0.2": "n1"}))


def test_a_container_server_that_does_not_answer_is_named() -> None:
    found = stopped("c1", 200, 200)
    (update,) = (each for each in found.findings if each.kind == "update")
    assert (update.name, update.requests) == ("container server's c1 on n1", 200)
    said = update.describe()
    assert re.match(
        r"100\.0 % of the writes wait 5\d\d\.\d ms for container server's c1 on n1, which did not take 200 ",
        said,
    )
    assert finding_sentences.ALL_CLEAR not in finding_sentences.describe_attribution(found)[0]
    # It need not be told of most writes for those that it is told of to wait.
    (few,) = (each for each in stopped("c1", 200, 20).findings if each.kind == "update")
    assert re.match(
        r"10\.0 % of the writes wait 5\d\d\.\d ms for container server's c1 on n1, which did not take 20 ",
        few.describe(),
    )


def told_of_some(counts: int) -> tuple[JoinedRun, IntegerArray]:
    """Writes of which some wait 0.5 s for c0, which logs no more than usual, and these; errors of so many."""
    joined = simulate(1, Cause(), replace(SMALL, writes=0.8, containers=4))
    lines, operations = joined.lines, joined.operations
    (c0,) = (place for place, each in enumerate(joined.devices) if each.name == "c0")
    waits = np.unique(lines.operation[(lines.of == UPDATE) & (lines.device == c0)])
    latency, seconds = operations.latency.copy(), joined.proxy_seconds.copy()
    latency[waits] += 0.5
    seconds[waits] += 0.5
    failed = waits[:counts]
    return replace(
        joined,
        operations=replace(operations, latency=latency),
        proxy_seconds=seconds,
        errors=Counter({("update", "container", "10.0.0.2:6201", "c0"): len(failed)} if counts else {}),
        not_updated={("10.0.0.2:6201", "c0"): failed},
    ), waits


def test_a_container_server_without_an_answer_is_one_finding_and_the_first() -> None:
    # Stopped and gone on, it logs late what it was asked; clients see that writes with it take longer.
    joined, waits = told_of_some(1000)
    first, *rest = make_attribution(joined, AttributionFacts({"10.0.0.2": "n0"})).findings
    assert (first.kind, first.name, first.requests) == ("update", "container server's c0 on n0", len(waits))
    assert first.waited == pytest.approx(0.5, abs=0.05)
    assert first.share == pytest.approx(len(waits) / (~operation_times.READS[joined.operations.code]).sum())
    assert [each.name for each in rest if each.kind != "inconclusive"] == []


def test_a_container_server_slow_before_its_clock_is_looked_at_for_that(golden_words: GoldenWords) -> None:
    joined, _ = told_of_some(0)
    (first,) = (each for each in make_attribution(joined).findings if each.kind == "slow")
    assert (first.name, first.part) == ("container server's c0 on n0", "total")
    said = first.describe()
    golden_words(said)
    golden_words(said)


def test_no_memcached_that_is_left_is_told() -> None:
    errors = Counter({("memcached", "memcached", "ALL", ""): 403})
    first = finding_sentences.describe_attribution(
        make_attribution(replace(simulate(1, Cause(), SMALL), errors=errors))
    )[0]
    assert first.startswith("No memcached answered proxies 403 times: ")


def test_memcached_that_does_not_answer_is_told() -> None:
    joined = simulate(1, Cause(), SMALL)
    errors = Counter({("memcached", "memcached", "10.0.0.9:11211", ""): 700})
    found = make_attribution(replace(joined, errors=errors))
    (finding,) = found.findings
    assert finding.describe().startswith("memcached at 10.0.0.9:11211 did not answer proxies 700 times: ")


@pytest.mark.parametrize("kept", [0, 10])
def test_a_device_that_served_nothing_is_said_to_take_no_request(kept: int) -> None:
    joined = simulate(1, Cause(), SMALL)
    lines = joined.lines
    its = np.flatnonzero((lines.device == 1) & (lines.of == OBJECT))
    status = lines.status.copy()
    status[its[:2]] = 507
    there = np.ones(len(lines), np.bool_)
    there[its[2 + kept :]] = False
    columns = {name: getattr(lines, name)[there] for name in JoinedLines.__slots__} | {
        "status": status[there]
    }
    found = make_attribution(replace(joined, lines=JoinedLines(**columns)))
    (broken,) = (each for each in found.findings if each.kind == "507")
    assert broken.served == kept
    assert broken.describe().startswith("d1 on n1 took no request all through the run: ") is not kept
    assert broken.describe().startswith("d1 on n1 answered 507 to 2 requests") is bool(kept)


def test_a_server_that_did_not_answer_is_not_one_without_a_log(golden_words: GoldenWords) -> None:
    joined = simulate(1, Cause(devices=(1,), seconds=0.1), SMALL)
    columns = {name: getattr(joined.lines, name)[joined.lines.device != 1] for name in JoinedLines.__slots__}
    silent = FileCount("logs/n1.log", "n1", 40, 0, 0, None, None)
    found = make_attribution(replace(joined, lines=JoinedLines(**columns), files=[silent]))
    said = next(each.describe() for each in found.findings if each.kind == "missing")
    golden_words(said)
    golden_words(said)


def test_an_account_server_is_asked_in_the_share_of_requests_that_ask_it() -> None:
    joined = simulate(1, Cause(), SMALL)
    count = len(joined.operations.code)
    asked = np.arange(0, count, 2)
    server = len(joined.devices) + np.arange(len(asked)) % 3
    lines, added = joined.lines, len(asked)
    more = {
        "operation": asked,
        "device": server,
        "process": np.zeros(added, np.int64),
        "partition": np.zeros(added, np.int64),
        "seconds": 0.001
        + 0.05 * (server == len(joined.devices))
        + 0.0001 * np.random.default_rng(1).random(added),
        "status": np.full(added, 204),
        "of": np.full(added, OTHER, np.uint8),
        "sender": np.full(added, NO_INDEX),
    }
    columns = {name: np.concatenate((getattr(lines, name), more[name])) for name in JoinedLines.__slots__}
    devices = [*joined.devices, *(Device(f"n{each}", "account", f"a{each}") for each in range(3))]
    found = make_attribution(replace(joined, devices=devices, lines=JoinedLines(**columns)))
    (first,) = found.findings
    assert first.name == "account server's a0 on n0"
    assert first.share == pytest.approx(1 / 6, abs=0.01)
    assert "; proxies asked it in 16." in first.describe()


@pytest.mark.parametrize("seconds", [0.01, 0.7])
def test_a_container_server_that_is_slow_before_its_own_clock_is_named(
    seconds: float, golden_words: GoldenWords
) -> None:
    """Every write is told of it, so that the client's time cannot tell; nor can its own log."""
    found = make_attribution(simulate(1, Cause(container=1, seconds=seconds, where="before"), SMALL))
    (first,) = found.findings
    assert (first.kind, first.name, first.part) == ("slow", "container server's c1 on n1", "told")
    assert first.difference is not None
    assert first.difference.median == pytest.approx(seconds, abs=0.005)
    said = first.describe()
    if seconds < 0.5:
        assert first.waited is None
        golden_words(said)
    else:  # proxies gave up
        assert re.match(
            r"Writes wait 5\d\d(\.\d)? ms for container server's c1 on n1: it takes 70\d\.\d ms", said
        )
    golden_words(said)
    golden_words(said)


def test_a_proxy_is_not_hidden_by_hundreds_of_devices() -> None:
    shape = Shape(devices=60, nodes=5, requests=400)
    found = [
        named(make_attribution(simulate(seed, Cause(proxy=1, seconds=0.005), shape))) for seed in range(6)
    ]
    assert sum(names == ["p1"] for names in found) >= 5


def test_an_all_clear_says_who_is_nearest_to_being_slow_and_what_a_proxy_would_need() -> None:
    found = make_attribution(simulate(3, Cause(), SMALL))
    assert found.lead is not None
    assert found.lead.difference.median > 0 or found.lead.difference.mean > 0
    least = found.detectable_of_proxies
    assert least is not None
    causes = (Cause(proxy=1, seconds=least), Cause(container=1, seconds=found.detectable_of_updates or 1.0))
    for cause, name in zip(causes, ("p1", "container"), strict=True):
        assert (
            sum(name in named(make_attribution(simulate(10 + seed, cause, SMALL))) for seed in range(5)) >= 4
        )


def test_what_a_servers_own_clock_shows_comes_before_doubts_about_the_generator(
    golden_words: GoldenWords,
) -> None:
    facts = AttributionFacts(overload=("Load generator overloaded: it was late",))
    own, doubt = finding_sentences.describe_attribution(
        make_attribution(simulate(1, Cause(devices=(1,)), SMALL), facts)
    )
    assert own.startswith("d1 on n1 is slow: its reads") or own.startswith("d1 on n1 is slow: its requests")
    golden_words(doubt)
    doubt, total = finding_sentences.describe_attribution(
        make_attribution(simulate(1, Cause(devices=(1,), where="before"), SMALL), facts)
    )
    assert doubt.startswith("Load generator overloaded")
    assert total.startswith("d1 on n1 is slow: requests with it")


def test_requests_without_the_line_of_a_server_are_compared_too(golden_words: GoldenWords) -> None:
    joined = simulate(1, Cause(devices=(1,)), SMALL)
    lines = joined.lines
    there = lines.device != 1
    columns = {name: getattr(lines, name)[there] for name in JoinedLines.__slots__}
    found = make_attribution(replace(joined, lines=JoinedLines(**columns)))
    assert named(found) == []
    answer = finding_sentences.describe_attribution(found)
    golden_words(answer[0])
    assert "lack a line of an object server" in answer[-1]
    # Where it was not slow, that is no all-clear either.
    joined = simulate(1, Cause(), SMALL)
    columns = {name: getattr(joined.lines, name)[joined.lines.device != 1] for name in JoinedLines.__slots__}
    first = finding_sentences.describe_attribution(
        make_attribution(replace(joined, lines=JoinedLines(**columns)))
    )[0]
    golden_words(first)


def test_without_the_log_of_a_server_of_every_write_writes_accuse_nobody() -> None:
    """Of six new devices on three nodes each write takes one of each node: all have two lines."""
    shape = Shape(devices=6, nodes=3, requests=400, ring="fresh", sigma=0.5)
    joined = simulate(1, Cause(devices=(1,)), shape)
    lost = np.array([each.node == "n1" for each in joined.devices])
    assert all_suspects(
        make_attribution(replace(joined, lines=where(joined, ~lost[joined.lines.device])))
    ) == {""}
    # Where lines are lost by chance, writes tell as before.
    joined = simulate(1, Cause(devices=(1,), only="writes", where="before"), replace(shape, requests=1200))
    kept = np.random.default_rng(1).random(len(joined.lines)) < 0.9
    (found,) = make_attribution(replace(joined, lines=where(joined, kept))).findings
    assert {each.split()[0] for each in (found.name, *found.same)} == {"d0", "d1", "d2"}


def where(joined: JoinedRun, kept: np.ndarray) -> JoinedLines:
    return JoinedLines(**{name: getattr(joined.lines, name)[kept] for name in JoinedLines.__slots__})


def test_words_of_requests_without_the_line_of_a_server() -> None:
    joined = simulate(1, Cause(devices=(1,), seconds=0.1, part=(0.5, 1.0)), SMALL)
    columns = {name: getattr(joined.lines, name)[joined.lines.device != 1] for name in JoinedLines.__slots__}
    found = make_attribution(
        replace(joined, lines=JoinedLines(**columns)), AttributionFacts(unlogged=("10.0.0.2:6200",))
    )
    first, *_, last = finding_sentences.describe_attribution(found)
    assert re.search(
        r" longer( \(mean: not all of them\))?\. From [34](\.\d)? s to [78](\.\d)? s of 8 s; .*;"
        r" p < 0\.001\. Next: ",
        first,
    ), first
    assert last.endswith(" No log is of 10.0.0.2:6200.")
    lines = products.find_writer(Product.ATTRIBUTION, "text")(AttributedRun(found), View())
    assert "servers without a log: " in lines


@pytest.mark.parametrize("seed", range(8))
def test_of_devices_that_a_ring_puts_together_the_slow_one_is_never_dropped(seed: int) -> None:
    device = 3 + seed % 9
    cause = Cause(devices=(device,), where="before", only="writes", seconds=0.02)
    for each in make_attribution(simulate(7000 + seed, cause, replace(FRESH, requests=500))).findings:
        if each.kind in ("slow", "one of"):
            assert f"d{device}" in {name.split()[0] for name in (each.name, *each.same)}


def test_of_a_node_only_servers_that_show_it_are_named() -> None:
    # Its container server is in every write, and well.

    found = make_attribution(simulate(1, Cause(devices=(0, 4, 8)), replace(FRESH, requests=2000)))
    kinds = [(each.kind, each.level, each.name) for each in found.findings]
    assert kinds[0] in [("slow", "node", "n0"), ("slow", "process", "object server 1 on n0")]
    assert sorted(found.findings[0].members) == ["d0 on n0", "d4 on n0", "d8 on n0"]
    assert len(kinds) == 1


def delayed(joined: JoinedRun, chosen: np.ndarray, seconds: float) -> JoinedRun:
    """Have some lines take longer, and so their operations."""
    latency = joined.operations.latency.copy()
    more = np.zeros(len(latency))
    np.maximum.at(more, joined.lines.operation[chosen], seconds)
    return replace(
        joined,
        lines=replace(joined.lines, seconds=joined.lines.seconds + seconds * chosen),
        proxy_seconds=joined.proxy_seconds + more,
        operations=replace(joined.operations, latency=latency + more),
    )


WIDE = Shape(devices=12, nodes=4, requests=3000, ring="grown", own=0.1, sigma=0.4)


def test_a_device_of_which_few_requests_are_slow_is_named() -> None:
    joined = simulate(11, Cause(), WIDE)
    random = np.random.default_rng(77)
    reads = operation_times.READS[joined.operations.code][joined.lines.operation]
    few = (joined.lines.device == 1) & reads & (random.random(len(joined.lines)) < 0.05)
    (one,) = (each for each in make_attribution(delayed(joined, few, 0.15)).findings if each.kind == "slow")
    assert (one.name, one.level) == ("d1 on n1", "device")
    assert one.rare == pytest.approx(0.05, abs=0.03)
    assert one.difference is not None
    assert one.difference.median == pytest.approx(0.15, rel=0.1)


def test_a_device_that_is_slow_with_large_objects_is_named() -> None:
    joined = simulate(12, Cause(), WIDE)
    reads = operation_times.READS[joined.operations.code]
    large = reads & (joined.operations.size >= np.quantile(joined.operations.size[reads], 0.8))
    slow = (joined.lines.device == 1) & large[joined.lines.operation]
    (one,) = (each for each in make_attribution(delayed(joined, slow, 0.01)).findings if each.kind == "slow")
    assert (one.name, one.sizes[-15:]) == ("d1 on n1", " bytes and more")


def test_one_container_of_several_is_named() -> None:
    joined = simulate(13, Cause(), WIDE)
    container = (joined.operations.subject % 4).astype(np.int64)
    joined = replace(
        joined,
        operations=replace(joined.operations, container=container),
        containers=[f"ssbench_00000{place}" for place in range(4)],
    )
    assert [each for each in make_attribution(joined).findings if each.kind == "slow"] == []
    slow = (joined.lines.of == UPDATE) & (container[joined.lines.operation] == 2)
    (one,) = (each for each in make_attribution(delayed(joined, slow, 0.02)).findings if each.kind == "slow")
    assert (one.level, one.name, one.part) == ("container", "ssbench_000002", "updates")


def test_a_late_replica_is_told() -> None:
    joined = simulate(1, Cause(), SMALL)
    lines = joined.lines
    writes = ~operation_times.READS[joined.operations.code[lines.operation]]
    is_late = (lines.device == 3) & writes & (joined.operations.code[lines.operation] != DELETE.code)
    seconds = np.where(is_late, joined.proxy_seconds[lines.operation] + 0.5, lines.seconds)
    found = make_attribution(replace(joined, lines=replace(lines, seconds=seconds)))
    (late,) = (each for each in found.findings if each.kind == "late")
    assert (late.name, late.requests) == ("d3 on n0", is_late.sum())
    assert named(found) == []
    said = late.describe()
    assert re.match(
        r"d3 on n0 has late replicas: \d+ writes \([\d.]+ % of all\) answered without it, after [\d.]+ ms"
        r" \(median\), from 0(\.\d)? s to [78](\.\d)? s of 8 s; p < 0\.001\. Next: post_quorum_timeout",
        said,
    ), said


def test_replicas_that_proxies_gave_up_are_told_where_they_are_more_than_a_few() -> None:
    joined = simulate(1, Cause(), SMALL)
    lines = joined.lines
    writes = ~operation_times.READS[joined.operations.code[lines.operation]] & (lines.of == OBJECT)
    for number, said in ((4, []), (6, ["499"] * 3)):
        status = lines.status.copy()
        for device in range(3):  # no one of them more often than others
            status[np.flatnonzero(writes & (lines.device == device))[:number]] = 499
        found = make_attribution(replace(joined, lines=replace(lines, status=status)))
        assert [each.kind for each in found.findings] == said
    assert re.match(
        r"d\d on n\d: proxies gave up its replicas of 6 writes \(\d\.\d\d % of all\), from [\d.]+ s to"
        r" [\d.]+ s of 8 s, which its log has as 499\. Next: ",
        finding_sentences.describe_attribution(found)[0],
    ), finding_sentences.describe_attribution(found)


def test_a_node_is_named_where_all_its_devices_are_slow() -> None:
    slow = tuple(range(2, 60, 5))
    found = make_attribution(simulate(1, Cause(devices=slow, seconds=0.02), Shape()))
    assert found.findings[0].level in ("node", "process")
    assert set(found.findings[0].members) >= {f"d{place} on n2" for place in slow}
    assert suspects(found)[1:] == []


@pytest.mark.long
@pytest.mark.parametrize(
    "shape", [Shape(requests=1000), SMALL, FRESH], ids=["60 devices", "4 devices", "12 devices, fresh"]
)
@pytest.mark.parametrize("hot", [0.0, 0.2])
def test_nobody_is_named_where_nobody_is_slow(shape: Shape, hot: float) -> None:
    false = [
        seed for seed in range(4) if all_suspects(make_attribution(simulate(seed, Cause(hot=hot), shape)))
    ]
    assert false == []


def test_listings_need_no_object_server() -> None:
    joined = simulate(1, Cause(), SMALL)
    lines, code = joined.lines, joined.operations.code.copy()
    code[:60] = LIST.code
    listed = np.flatnonzero(lines.operation < 60)
    of, device = lines.of.copy(), lines.device.copy()
    # Each is asked of one container server.
    _, first = np.unique(lines.operation[listed], return_index=True)
    of[listed[first]], device[listed[first]] = OTHER, 4 + np.arange(60) % 3
    kept = np.ones(len(lines), np.bool_)
    kept[np.setdiff1d(listed, listed[first])] = False
    columns = {name: getattr(lines, name) for name in JoinedLines.__slots__} | {"of": of, "device": device}
    changed = JoinedLines(**{name: column[kept] for name, column in columns.items()})
    found = make_attribution(replace(joined, operations=replace(joined.operations, code=code), lines=changed))
    assert found.coverage.complete == found.coverage.operations
    assert finding_sentences.describe_attribution(found)[0].startswith(
        f"{finding_sentences.ALL_CLEAR} by more than "
    )


def test_what_is_in_every_request_is_not_testable(golden_words: GoldenWords) -> None:
    shape = replace(SMALL, containers=1, proxies=1)
    found = make_attribution(simulate(1, Cause(container=0, seconds=0.05), shape))
    assert all_suspects(found) == set()
    first, *others = finding_sentences.describe_attribution(found)
    golden_words(first)
    golden_words(others)


def test_the_deviate_is_that_of_the_wilcoxon_test() -> None:
    # Without ties and in one stratum: (U - E U) / sd U, from its textbook formula.
    random = np.random.default_rng(1)
    seconds = random.random(50)
    taken = np.arange(50) < 20
    units = rank_tests.Units(seconds, np.zeros(50, np.int64), np.zeros(1, np.int64))
    found = rank_tests.measure_deviates(
        units, rank_tests.make_pairs(np.flatnonzero(taken), np.zeros(20, np.int64), 1), 1
    )
    wins = (seconds[taken][:, None] > seconds[~taken]).sum()
    assert found.z[0, 0] == pytest.approx((wins - 300) / np.sqrt(20 * 30 * 51 / 12))


def test_no_false_alarms_by_the_test_itself() -> None:
    # Mixed strata, many ties: the deviates of those who do not matter are standard normal.
    random = np.random.default_rng(2)
    z = []
    for _ in range(300):
        stratum = np.sort(random.integers(0, 12, 400))
        units = rank_tests.Units(
            np.round(random.lognormal(size=400) + stratum, 1), stratum, np.zeros(12, np.int64)
        )
        who = rank_tests.make_pairs(random.choice(400, 60, replace=False), np.zeros(60, np.int64), 1)
        z.append(rank_tests.measure_deviates(units, who, 1).z[0, 0])
    assert abs(np.mean(z)) < 0.2
    assert 0.88 < np.std(z) < 1.12


def test_what_comes_and_goes_is_no_difference() -> None:
    # In each slice of the run a proxy is slower or faster than the other, at random; on the whole it is not.
    random = np.random.default_rng(3)
    count, slices = 400, np.arange(400) // 20
    plain, allowed = [], []
    for _ in range(200):
        taken = random.random(count) < 0.5
        seconds = random.lognormal(size=count) * np.exp(taken * random.normal(size=20)[slices])
        who = rank_tests.make_pairs(np.flatnonzero(taken), np.zeros(taken.sum(), np.int64), 1)
        units = rank_tests.Units(seconds, np.zeros(count, np.int64), np.zeros(1, np.int64))
        plain.append(rank_tests.measure_deviates(units, who, 1).z[0, 0])
        units = rank_tests.Units(units.seconds, units.stratum, units.group, slices, is_dispersed=True)
        allowed.append(rank_tests.measure_deviates(units, who, 1).z[0, 0])
    # 2.33 is exceeded by 1 in 100.
    assert np.mean(np.array(plain) > 2.33) > 0.05
    assert np.mean(np.array(allowed) > 2.33) < 0.03


def test_a_little_time_of_its_own_does_not_explain_what_clients_felt(golden_words: GoldenWords) -> None:
    found = make_attribution(simulate(1, Cause(devices=(1,)), SMALL)).findings[0]
    assert found.part != "total"
    assert found.difference is not None
    assert NOT_IN_ITS_LOG not in found.describe()
    felt = replace(found.difference, median=0.1, mean=0.1)
    little = replace(found.difference, median=0.003, mean=0.003)
    said = replace(found, difference=little, felt={"reads": felt}).describe()
    golden_words(said)
    golden_words(said)
    assert "iostat" not in said
    # Of what clients felt nothing may be known, of containers' lists for one.
    assert NOT_IN_ITS_LOG not in replace(found, felt={}).describe()


@pytest.mark.long
def test_a_log_shows_a_delay_only_where_that_is_beyond_chance() -> None:
    # Its time passes before its clock starts; its own times differ by chance, with few of them by much.
    shape = Shape(devices=4, nodes=3, requests=150, objects=60, writes=0.45, deletes=0.3, own=0.9, sigma=1.4)
    said = []
    for seed in range(20):
        found = make_attribution(simulate(seed, Cause(devices=(0,), seconds=0.1, where="before"), shape))
        said += [each.describe() for each in found.findings if each.kind == "slow" and each.level == "device"]
    assert len(said) >= 8
    assert sum("Its own log: " in each for each in said) <= 1
    assert sum("too few of its requests" in each for each in said) >= 5


@pytest.mark.parametrize("ring", ["fresh", "grown"])
def test_a_server_is_not_named_for_two_of_its_three_devices(ring: str) -> None:
    cause = Cause(devices=(0, 4), seconds=0.02)
    found = make_attribution(simulate(2, cause, Shape(devices=12, nodes=4, requests=600, ring=ring)))
    assert {name.split()[0] for name in named(found)} == {"d0", "d4"}
