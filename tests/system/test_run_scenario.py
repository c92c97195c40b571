"""run-scenario as a user runs it: real processes, real sockets, a real Swift."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema
import pytest
import yaml
from processes import run_master
from runs import children
from said import NAME_TAKEN, NO_NUMBER, NO_WHOLE_NUMBER

from ssbench.cli import master
from ssbench.local_swift import LocalSwift
from ssbench.results.reading import open_results
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize

SCHEMA = Path(__file__).parents[2] / "doc" / "report-schema.json"
SCENARIO = {
    "name": "A test/scenario",
    "sizes": [
        {"name": "zero", "size_min": 0, "size_max": 0},
        {"name": "tiny", "size_min": 4000, "size_max": 8000, "crud_profile": [2, 4, 2, 1]},
        {"name": "big", "size_min": 2_500_000, "size_max": 2_500_000},
        {"name": "unused", "size_min": 1, "size_max": 1},
    ],
    "initial_files": {"zero": 4, "tiny": 12, "big": 2},
    "operation_count": 80,
    "crud_profile": [1, 1, 1, 1],
    "user_count": 5,
    "container_count": 4,
}


def write(folder: Path, base: str, **changes: object) -> Path:
    path = folder / "scenario.yaml"
    data = {**SCENARIO, "container_base": base, **changes}
    path.write_text(yaml.safe_dump({key: value for key, value in data.items() if value is not None}))
    return path


def numbers(path: Path) -> RunStatistics:
    return summarize(open_results(path))


def environment(swift: LocalSwift) -> dict[str, str]:
    return {"ST_AUTH": swift.auth_url, "ST_USER": swift.user, "ST_KEY": swift.key}


def accounted_for(statistics: RunStatistics) -> int:
    """Operations that have a result, and those that could not be sent."""
    return statistics.total.count + statistics.total.failed + sum(row[2] for row in statistics.not_sendable)


def listing(account, base: str) -> dict[str, list[str]]:
    containers = [row["name"] for row in account.get_account(prefix=base)[1]]
    return {name: [row["name"] for row in account.get_container(name)[1]] for name in containers}


def test_a_run_from_yaml_counts_up_reports_and_cleans_up(fleet, swift, account, container_base, tmp_path):
    scenario = write(tmp_path, container_base)
    run = fleet.run(scenario, "--workers", 2, "--pctile", "99.9", environment=environment(swift))
    assert run.end() == 0, run.err

    statistics = numbers(fleet.stats)
    assert statistics.total.failed == 0
    assert accounted_for(statistics) == 80
    assert f"Count:{statistics.total.count:6d}" in run.out
    assert "99.9%-ile" in run.out
    assert "A test/scenario  (generated with ssbench version" in run.out
    assert "Worker count:   2   Concurrency:   5" in run.out
    for line in ("Benchmark run:", "  X    failed", f"INFO:Results saved to\n{fleet.stats}\n"):
        assert line in run.err
    characters = [line for line in run.err.splitlines() if line and not line.strip("._oO*|^@X")]
    assert len("".join(characters)) == statistics.total.count
    # Initial objects stay, each in its place; what the run created is gone.
    left = listing(account, container_base)
    assert sorted(left) == [f"{container_base}_{number:06d}" for number in range(4)]
    names = sorted(name for names in left.values() for name in names)
    assert set(names) <= {f"zero_{n:06d}" for n in range(1, 5)} | {f"tiny_{n:06d}" for n in range(1, 13)} | {
        "big_000001",
        "big_000002",
    }
    assert "tiny_000005" not in left[f"{container_base}_000001"]  # the ninth of all goes round to 0


def test_json_and_a_second_run_with_what_is_there(fleet, swift, account, container_base, tmp_path):
    scenario = write(tmp_path, container_base, crud_profile=[0, 1, 0, 0])
    data = {**yaml.safe_load(scenario.read_text()), "operation_count": 20}
    data["sizes"] = [{**each, "crud_profile": [0, 1, 0, 0]} for each in data["sizes"][:2]]
    data["initial_files"] = {"tiny": 6}
    path = tmp_path / "old.scenario"
    path.write_text(json.dumps(data))
    first = fleet.run(path, "--workers", 1, environment=environment(swift))
    assert first.end() == 0, first.err
    before = account.head_object(f"{container_base}_000000", "tiny_000001")
    second = fleet.run(path, "--workers", 1, "--csv", environment=environment(swift))
    assert second.end() == 0, second.err
    assert (
        account.head_object(f"{container_base}_000000", "tiny_000001")["x-timestamp"] == before["x-timestamp"]
    )
    header, row = csv.reader(second.out.splitlines())
    report = dict(zip(header, row, strict=True))
    assert (report["scenario_name"], report["total_count"], report["read_count"]) == (
        data["name"],
        "20",
        "20",
    )
    assert "create_count" not in report


def test_storage_urls_and_a_token_need_no_authentication(fleet, swift, account, container_base, tmp_path):
    scenario = write(tmp_path, container_base, operation_count=20)
    url, token = account.get_auth()
    other = url.replace("127.0.0.1", "localhost")
    document = tmp_path / "report.json"
    options = ["-k", "-R", "--json", document]
    run = fleet.run(scenario, "--workers", 1, "-S", url, "-S", other, "-T", token, *options)
    assert run.end() == 0, run.err
    assert run.out == ""
    report = json.loads(document.read_text())
    jsonschema.validate(report, json.loads(SCHEMA.read_text()))
    assert {each["url"] for each in report["storage_urls"]} <= {url, other}
    assert report["workers"][0]["figures"]["count"] == report["operations"][0]["figures"]["count"]
    assert token not in document.read_text()
    assert accounted_for(numbers(fleet.stats)) == 20
    assert token not in run.err + fleet.stats.read_bytes().decode("latin-1")


def test_policies_and_expiry(fleet, swift, account, container_base, tmp_path):
    scenario = write(
        tmp_path,
        container_base,
        sizes=SCENARIO["sizes"][:1],
        initial_files={"zero": 4},
        crud_profile=[1, 0, 0, 0],
        policy="gold",
        delete_after=30,
    )
    arguments = ["--workers", 1, "-o", 15, "-k", "-p", "silver", "--delete-after", 500]
    run = fleet.run(scenario, *arguments, environment=environment(swift))
    assert run.end() == 0, run.err
    name = f"{container_base}_000000_silver"
    assert account.head_container(name)["x-storage-policy"] == "silver"
    assert "Object expiration (X-Delete-After): 500 (sec)" in run.out
    created = [
        account.head_object(container, each)
        for container, names in listing(account, container_base).items()
        for each in names
        if each > "zero_000004"
    ]
    assert len(created) == 15
    assert all("x-delete-at" in head for head in created)
    assert "x-delete-at" not in account.head_object(name, "zero_000001")

    again = fleet.run(scenario, "--workers", 1, "-o", 1, "--delete-after", 0, environment=environment(swift))
    assert again.end() == 0, again.err
    assert "Object expiration" not in again.out


def test_a_container_of_another_policy_is_an_error(fleet, swift, account, container_base, tmp_path):
    account.put_container(f"{container_base}_000000_silver", {"X-Storage-Policy": "gold"})
    scenario = write(tmp_path, container_base)
    run = fleet.run(scenario, "--workers", 1, "-p", "silver", environment=environment(swift))
    assert run.end() == 3
    assert "gold" in run.err.splitlines()[-1]
    assert not fleet.stats.exists()


def test_counts_are_exact_and_nothing_is_said_with_q(fleet, swift, container_base, tmp_path):
    scenario = write(tmp_path, container_base, user_count=7, operation_count=101)
    arguments = ["--workers", 2, "--batch-size", 3, "--seed", 4, "-q"]
    run = fleet.run(scenario, *arguments, environment=environment(swift))
    assert run.end() == 0, run.err
    assert run.err == ""
    statistics = numbers(fleet.stats)
    assert accounted_for(statistics) == 101
    assert statistics.worker_count == 2
    assert statistics.run.seed == 4


def test_a_timed_run_ends_in_time(fleet, swift, container_base, tmp_path):
    scenario = write(tmp_path, container_base)
    run = fleet.run(scenario, "--workers", 1, "-r", 1, environment=environment(swift))
    assert run.end() == 0, run.err
    statistics = numbers(fleet.stats)
    assert statistics.total.count > 0
    assert statistics.run.scenario.operation_count is None
    assert statistics.duration > 0.5


def test_no_op(fleet, tmp_path):
    scenario = write(tmp_path, "nothing", operation_count=5000)
    run = fleet.run(scenario, "--noop", "--workers", 2)
    assert run.end() == 0, run.err
    assert accounted_for(numbers(fleet.stats)) == 5000
    assert "First-byte latency:  N/A" in run.out
    assert "no-op run: nothing was sent to Swift" in " ".join(run.out.split())


def test_ipv6(fleet_v6, container_base, tmp_path):
    try:
        swift = LocalSwift(bind_ip="::1")
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")
    with swift:
        assert swift.auth_url == f"http://[::1]:{swift.port}/auth/v1.0"
        scenario = write(tmp_path, container_base, operation_count=20)
        worker = fleet_v6.worker(1)
        run = fleet_v6.run(scenario, environment=environment(swift))
        assert run.end() == 0, run.err
        assert accounted_for(numbers(fleet_v6.stats)) == 20
        assert worker.process.poll() is None


def test_an_interrupted_run_reports_and_leaves_nothing(fleet, swift, account, container_base, tmp_path):
    scenario = write(tmp_path, container_base, operation_count=100_000, crud_profile=[3, 1, 1, 0])
    run = fleet.run(scenario, "--workers", 2, environment=environment(swift))
    run.wait_for(r"@ >= 10 s.*\n\n?[._oO*|^@]{20}")
    run.signal(signal.SIGINT)
    assert run.end() == 130, run.err
    statistics = numbers(fleet.stats)
    assert f"Count:{statistics.total.count:6d}" in run.out
    assert "Traceback" not in run.err
    names = [name for names in listing(account, container_base).values() for name in names]
    assert not [name for name in names if name > "zero_000004"]


def test_twice_ends_it_at_once(fleet, swift, container_base, tmp_path):
    scenario = write(tmp_path, container_base, operation_count=100_000)
    run = fleet.run(scenario, "--workers", 1, environment=environment(swift))
    run.wait_for(r"@ >= 10 s.*\n\n?[._oO*|^@]{5}")
    run.signal(signal.SIGINT)
    run.signal(signal.SIGTERM)
    assert run.end() == 130, run.err
    assert "Traceback" not in run.err


def test_local_swift_is_started_and_removed(fleet, tmp_path):
    scenario = write(tmp_path, "mine", operation_count=10)
    run = fleet.run(scenario, "--workers", 1, "--local-swift", environment={"TMPDIR": str(tmp_path)})
    assert run.end() == 0, run.err
    assert accounted_for(numbers(fleet.stats)) == 10
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "run1.stat.gz",
        "scenario.yaml",
        "ssbench-worker-local-0.log",
    ]


def test_profiles(fleet, swift, container_base, tmp_path):
    scenario = write(tmp_path, container_base, operation_count=10)
    variables = {**environment(swift), "TMPDIR": str(tmp_path)}
    run = fleet.run(scenario, "--workers", 1, "--profile", environment=variables)
    assert run.end() == 0, run.err
    assert run.wait_for(r"Profile written to (\S+)")
    assert len(list(tmp_path.glob("*.prof"))) == 2


WRONG = [
    (["-u", "0"], f"argument -u/--user-count: '0' {NO_WHOLE_NUMBER} of 1 or more"),
    (["-o", "1.5"], f"'1.5' {NO_WHOLE_NUMBER}"),
    (["-r", "5 parsecs"], "argument -r/--run-seconds: '5 parsecs' is not a time above 0, such as 30, 200ms,"),
    (["--delete-after", "1500ms"], f"'1500ms' {NO_WHOLE_NUMBER} of seconds"),
    (["-b", "1.5"], f"argument -b/--block-size: '1.5' {NO_NUMBER} bytes, such as 4096, 4K (4096)"),
    (["--pctile", "50,"], "argument --pctile: '' is not a percentile from 1 to 100"),
    (["--pctile", "101"], "'101' is not a percentile from 1 to 100"),
    (["--zmq-work-port", "0"], "'0' is not a port number"),
    (["--policy", "a\nb"], "policy"),
    (["--zmq-key", "/nowhere/key"], "/nowhere/key: cannot be read"),
    (["-s", "/proc/nowhere/file"], "/proc/nowhere/file.gz: cannot be written"),
    (["-s", "/tmp"], "/tmp: is a folder"),
    (["--no-such-option"], "unrecognized arguments: --no-such-option"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_a_wrong_command_line_is_one_line_and_exit_2(tmp_path, capsys, arguments, message):
    scenario = str(write(tmp_path, "x"))
    command = ["-q", "run-scenario", "-f", scenario, "--noop", "--workers", "1"]
    stats = [] if "-s" in arguments else ["-s", str(tmp_path / "x.stat")]
    try:
        code = master.main([*command, *stats, *arguments])
    except SystemExit as ended:  # as argparse does it
        code = ended.code
    assert code == 2
    out, err = capsys.readouterr()
    assert message in err
    assert len(err.splitlines()) == 1
    assert out == ""


def test_a_stat_file_that_exists_is_kept(fleet, tmp_path):
    mine = tmp_path / "mine.stat.gz"
    mine.write_text("mine")
    arguments = ["-q", "--noop", "--workers", 1, "-o", 5, "-s", tmp_path / "mine.stat"]
    run = fleet.run(write(tmp_path, "x"), *arguments)
    assert run.end() == 2
    assert run.err == f"ERROR:{mine}: {NAME_TAKEN}, or --force to overwrite it\n"
    assert mine.read_text() == "mine"
    assert fleet.run(tmp_path / "scenario.yaml", *arguments, "--force").end() == 0
    assert accounted_for(numbers(mine)) == 5


def test_a_port_in_use_is_one_line(fleet, tmp_path):
    first = fleet.run(write(tmp_path, "x"), "--noop", "--expect-workers", "1@100")
    first.wait_for("Waiting for workers")
    second = fleet.run(tmp_path / "scenario.yaml", "--noop", "-q")
    assert second.end() == 2
    assert "in use" in second.err
    assert "--zmq-work-port and --zmq-results-port" in second.err
    assert len(second.err.splitlines()) == 1
    first.signal(signal.SIGINT)
    assert first.end() == 130


@pytest.mark.parametrize("long", [False, True], ids=["Unix sockets", "a folder too long for those"])
def test_runs_with_local_workers_alone_take_no_port_from_each_other(fleet, tmp_path, long):
    """Two at once, while a third program has the ports of old."""
    with contextlib.ExitStack() as stack:
        for port in (13579, 13580):
            with contextlib.suppress(OSError):  # then somebody else has it, which does as well
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
        place = tmp_path / ("x" * 100) if long else Path(stack.enter_context(tempfile.TemporaryDirectory()))
        place.mkdir(exist_ok=True)
        runs = [
            fleet.master(
                # At a rate, so that the first leaves the second CPU to start with.
                *("run-scenario", "-f", write(tmp_path, "x"), "--noop", "--workers", 1, "-r", 600),
                *("--rate", 50, "-s", tmp_path / f"{number}.stat"),
                environment={"TMPDIR": str(place)},
            )
            for number in range(2)
        ]
        for run in runs:
            run.wait_for("Starting the benchmark")
        # Those of a master belong to the process that relays them.
        processes = [pid for run in runs for pid in (run.process.pid, *children(run.process.pid))]
        listening = {port for pid in processes for port in listening_ports(pid)}
        assert len(listening) == (4 if long else 0)
        for run in runs:
            run.signal(signal.SIGINT)
        for run in runs:
            assert run.end() == 130, run.err


def listening_ports(pid: int) -> set[int]:
    """The TCP ports that a process listens on."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            inodes.add(descriptor.readlink().name)
    rows = [
        row.split()
        for table in ("tcp", "tcp6")
        for row in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    return {
        int(row[1].rpartition(":")[2], 16)
        for row in rows
        if row[3] == "0A" and f"socket:[{row[9]}]" in inodes
    }


def test_old_spellings(fleet, swift, container_base, tmp_path):
    scenario = write(tmp_path, container_base, operation_count=5)
    arguments = ["--workers", 1, "--zmq-results_port", fleet.results_port, "--user_count=2"]
    run = fleet.run(scenario, *arguments, environment=environment(swift))
    assert run.end() == 0, run.err
    assert "Concurrency:   2" in run.out


def test_without_a_scenario():
    run = run_master("run-scenario")
    assert run.returncode == 2
    assert "--scenario-file is required" in run.stderr


def test_a_reader_that_has_seen_enough(fleet, tmp_path):
    scenario = write(tmp_path, "x", operation_count=10)
    reading, writing = os.pipe()
    os.close(reading)
    arguments = ["-f", scenario, "--noop", "--workers", "1", "-q", "-s", tmp_path / "x.stat"]
    ports = ["--zmq-work-port", str(fleet.work_port), "--zmq-results-port", str(fleet.results_port)]
    run = subprocess.run(
        [sys.executable, "-m", "ssbench.cli.master", "run-scenario", *map(str, arguments), *ports],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(writing)
    path = tmp_path / "x.stat.gz"
    assert run.returncode == 0
    assert run.stderr == (
        "WARNING:The report was not printed (standard output: Broken pipe)."
        f" Print it with: {sys.executable} -m ssbench.cli.master report-scenario {path}\n"
    )


def test_without_workers_there_is_one_a_core_but_not_above_users(fleet, container_base, tmp_path):
    scenario = write(tmp_path, container_base)
    run = fleet.master("run-scenario", "-f", scenario, "--noop", "-u", 1, "-o", 5, "-s", tmp_path / "x")
    assert run.end() == 0, run.err
    assert ": using 1 local worker (--workers N: local ones at once" in run.err
    # Anything that speaks of others is heeded, also where a variable says it.
    for options, variables in (
        (("--expect-workers", "1@0.1"), {}),
        ((), {"SSBENCH_EXPECT_WORKERS": "1@0.1"}),
    ):
        run = fleet.master(
            *("run-scenario", "-f", scenario, "--noop", "-s", tmp_path / "y"),
            *options,
            environment=variables,
        )
        assert run.end() in {2, 4}, run.err  # the usual ports may be taken
        assert "local worker" not in run.err


def test_phases_are_runs_over_the_same_objects(swift, tmp_path):
    """Each has its stat file; the clean-up leaves nothing of what they created."""
    words = ["-f", "size=2kB objects=20", "--phases", "put,get,delete", "-u", "4", "-o", "20"]
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "ssbench.cli.master",
            "run-scenario",
            *words,
            "--workers",
            "1",
            "-s",
            str(tmp_path / "p"),
            "-c",
            "2",
        ],
        env={**os.environ, **environment(swift)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found = {name: numbers(tmp_path / f"p.{name}.stat.gz") for name in ("put", "get", "delete")}
    assert [each.total.count for each in found.values()] == [20, 20, 20]
    assert [each.sections[1].operation.name for each in found.values()] == ["create", "read", "delete"]
    assert [each.run.options["label"] for each in found.values()] == ["put", "get", "delete"]
    assert found["delete"].not_sendable == ()
    uploaded = [each.counters.get("initial_uploaded") for each in found.values()]
    assert uploaded == [20, 0, 0]
    assert ended.stdout.count("100.0") >= 3
