"""What the programs load: nothing that a command does not need, because loading it is most of its time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from processes import free_ports

from ssbench.cli import master

PROGRAM = """
import sys
import importlib
program = importlib.import_module(sys.argv[1])
try:
    code = program.main(sys.argv[2:])
except SystemExit as exit:
    code = exit.code
assert not code
sys.stderr.write("loaded: " + " ".join(sorted(set(sys.modules))))
"""

#: What a run does without where it needs neither Swift nor a report, and the help of a command besides.
FOR_SWIFT = {"swiftclient", "keystoneauth1", "openstack", "requests", "urllib3", "rich", "gevent", "eventlet"}
REPORTS = {
    "ssbench.statistics",
    "ssbench.reports.writing",
    "ssbench.comparison.run_comparison",
    "ssbench.run.plan",
}
FOR_RUNS = {"numpy", "yaml", "msgspec", "msgpack", "zmq", "isal", "asyncio", "ssl"}

#: What a run without requests does without besides, and what the help of a run does: the model of scenarios,
#: the tables of operations and figures, what hashes, what starts other programs.
FOR_REQUESTS = {"ssl", "h11", "email"}
FOR_VALUES = {
    *("ssbench.scenario.model", "ssbench.scenario.operations", "ssbench.document.figures"),
    *("ssbench.store.contract", "ssbench.comparison.sweep_variables", "subprocess", "hashlib", "json"),
    *("statistics", "webbrowser"),
}

#: The options of a run, which messages hold, the JSON of settings and records of logs are structs of msgspec:
#: some 10 ms.
STRUCTS = {"msgspec"}


def loaded_by(program: str, arguments: list[str]) -> set[str]:
    """Return the names of the modules that a program has loaded by its end."""
    command = [sys.executable, "-c", PROGRAM, program, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    return set(run.stderr.splitlines()[-1].removeprefix("loaded: ").split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["run-scenario", "-f", "very_small", "--noop", "--workers", "1", "-o", "10", "--no-default-report"],
        *([command, "--help"] for command in master.COMMANDS),
        ["--help"],
    ],
    ids=" ".join,
)
def test_only_what_is_needed_is_loaded(tmp_path: Path, arguments: list[str]) -> None:
    if "--noop" in arguments:
        arguments = [*arguments, "-s", str(tmp_path / "x.stat")]
    program = "ssbench.cli.worker" if arguments == ["--help"] else "ssbench.cli.master"
    loaded = loaded_by(program, arguments)
    assert {"sys", "argparse"} < loaded
    if arguments[0] in {"run-scenario", "suite", "noise", "envelope", "age", "prepare", "config", "traffic"}:
        loaded -= STRUCTS
    unneeded = FOR_SWIFT | REPORTS if "--noop" in arguments else FOR_SWIFT | FOR_RUNS
    assert loaded & unneeded == set()
    if "--noop" in arguments:
        assert loaded & FOR_REQUESTS == set()
    elif arguments[0] == "run-scenario":
        assert loaded & FOR_VALUES == set()


def test_the_help_of_the_program_loads_little_besides_its_parser() -> None:
    loaded = loaded_by("ssbench.cli.master", ["--help"])
    own = {name for name in loaded if name.startswith("ssbench.")}
    # With what ends it where Ctrl-C comes meanwhile, and what makes its texts printable.
    needed = ("cli", "cli.master", "cli.own_program", "cli.parser")
    base = ("base", "base.errors", "base.interruption", "base.printable", "base.version")
    assert own == {f"ssbench.{name}" for name in (*needed, *base)}
    assert loaded & {"dataclasses", "logging"} == set()


def test_a_worker_that_waits_loads_nothing_of_the_masters_ports() -> None:
    work, results = map(str, free_ports(2))
    ports = ["--zmq-work-port", work, "--zmq-results-port", results]
    loaded = loaded_by("ssbench.cli.worker", ["--idle-exit", "0.1", *ports])
    assert "ssbench.fleet.sockets" in loaded
    assert loaded & {"ssbench.fleet.relayed_ports", "subprocess", "tempfile", "numpy"} == set()


def test_a_report_does_without_what_it_does_not_show() -> None:
    path = Path(__file__).parents[1] / "data" / "version-1-known.stat.gz"
    loaded = loaded_by("ssbench.cli.master", ["report-scenario", str(path)])
    few = {
        "cli.sides",
        "cluster.judgments",
        "comparison.archive",
        "comparison.run_comparison",
        "run.bench_options",
        "store",
    }
    assert loaded & {f"ssbench.{name}" for name in (*few, "store")} == set()
