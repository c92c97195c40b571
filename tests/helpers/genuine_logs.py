"""The genuine lines of 40 operations, a stat file of these, and what the command makes of both."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ssbench.cli.master import main
from ssbench.results.block import Failure, ResultBlock, TextColumn
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.operations import CREATE, READ

DATA = Path(__file__).parent.parent / "data" / "swiftlogs"
RUN = RunDescription(
    Scenario("run", (SizeClass("tiny", 8192, 8192, 0, (1, 1, 1, 1)),), user_count=4, operation_count=41),
    run_id=0x1234,
)


def write_stat_file(path: Path, trans_id: Callable[[str], str] = str) -> Path:
    """A stat file of the 40 operations whose lines are in run-proxy.log and run-object.log."""
    writer = RunResultsWriter(path, RUN)
    with (DATA / "run-client.csv").open() as file:
        lines = list(csv.DictReader(file))
    code = [CREATE.code if line["method"] == "PUT" else READ.code for line in lines]
    seconds = [float(line["latency_s"]) for line in lines]
    columns = {
        "operation": np.array([*code, READ.code], np.uint8),
        "object": np.arange(41),
        "size": np.full(41, 8192),
        "last_byte": np.array([*seconds, np.nan]),
        "completed": np.full(41, 1795300893.0),
        "trans_id": TextColumn.of([*(trans_id(line["trans_id"]) for line in lines), None]),
    }
    writer.add(ResultBlock(41, columns, {40: Failure("network timeout", "", {})}))
    writer.end(RunSummary(ended=1795300895.0))
    return path


def attribute(stat_file: Path, *arguments: object) -> tuple[int, dict[str, Any]]:
    out = stat_file.with_name("found.json")
    options = [
        "-q",
        "attribute",
        "-s",
        stat_file,
        "--force",
        "--json",
        out,
        "-f",
        stat_file.with_name("report.txt"),
    ]
    code = main([*map(str, options), "--swift-logs", *map(str, arguments)])
    return code, json.loads(out.read_text()) if code == 0 else {}
