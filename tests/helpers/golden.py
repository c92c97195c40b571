"""Reports and words that are the same each time: ``python tests/helpers/golden.py`` writes them anew.

What a report says of the same results changes only where that is meant. So the documents in
``tests/data/golden`` are compared with what is made now. A commit that changes a figure changes them too;
what they say then that they did not say before is printed when they are written.
"""

from __future__ import annotations

import gzip
import itertools
import json
import math
import shutil
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from difflib import unified_diff
from functools import partial
from io import StringIO
from pathlib import Path
from random import Random
from statistics import NormalDist
from tempfile import TemporaryDirectory
from typing import Any

import golden_words
from genuine_runs import genuine
from known_results import write_known
from result_rows import block, row
from simulated_cluster import Cause, Shape, changes_of, simulate

from ssbench.cli.master import main
from ssbench.cluster import attribution_report
from ssbench.cluster.attribution_report import AttributedRun
from ssbench.cluster.changes import make_changes_json
from ssbench.cluster.findings import make_attribution
from ssbench.cluster.joined_run import JoinedRun
from ssbench.reports import writing as reports
from ssbench.reports.writing import ReportOptions
from ssbench.results.block import LOST_CAUSE, Failure, ResultBlock
from ssbench.results.result_fields import NOT_MEASURED
from ssbench.results.run_description import (
    Gap,
    GroupFacts,
    MasterFacts,
    RunDescription,
    RunSummary,
    StageFacts,
    WorkerFacts,
)
from ssbench.scenario.model import Scenario, SizeClass, Stage, UserGroup
from ssbench.scenario.operations import CREATE, DELETE, READ, UPDATE
from ssbench.statistics.run_statistics import PartContext, RunStatistics
from ssbench.statistics.summary import make_collector, make_statistics

FOLDER = Path(__file__).parents[1] / "data" / "golden"
#: Early, so that of moments too the digits are kept that matter.
START = 1000.0
SECONDS, USERS = 60.0, 8
EVERYTHING = {"create": 1.0, "read": 6.0, "update": 2.0, "delete": 1.0}
CLASSES = (SizeClass("small", 100, 9000, 3, EVERYTHING), SizeClass("big", 10**6, 10**6, 1, EVERYTHING))
SCENARIO = Scenario("golden", CLASSES, user_count=USERS, run_seconds=SECONDS)

#: Columns that some results have: one in so many, and its value.
_EVERY = {
    "account": (3, 1),
    "address": (2, 1),
    "storage_url": (2, 1),
    "connecting": (50, 0.004),
    "pausing": (83, 0.5),
    "step_1": (11, 0.01),
    "step_2": (22, 0.002),
}

#: The store stands still from the one second to the other.
_STANDS_STILL = (30.0, 31.5)


def _latency(random: Random, code: int, large: bool, sent: float) -> float:
    """Return seconds: slower at first, alike from second to second, with waits of a second at times."""
    level = 1 + 0.5 * math.exp(-sent / 6) + 0.1 * math.sin(sent / 5)
    usual = (0.06 if code in (CREATE.code, UPDATE.code) else 0.03) * (2 if large else 1) * level
    seconds = usual * math.exp(0.5 * NormalDist().inv_cdf(random.random() or 0.5))
    return seconds + (1.0 if random.random() < 0.02 else 0.0)


def _results(random: Random, rate: float | None, begins: float) -> Iterator[tuple[float, dict[str, Any]]]:
    """Yield (end, values) in the order in which operations are sent; with a rate they are due evenly."""
    codes = [CREATE.code] + [READ.code] * 6 + [UPDATE.code] * 2 + [DELETE.code]
    free = [0.0] * USERS
    stops, goes_on = _STANDS_STILL
    for number in itertools.count():
        user = free.index(min(free))
        due = number / rate if rate else math.nan
        sent = max(free[user], due) if rate else free[user]
        if sent >= SECONDS:
            return
        code, large = codes[int(random.random() * 10)], random.random() < 0.25
        ended = sent + _latency(random, code, large, sent)
        if sent < goes_on and ended > stops:
            ended += goes_on - max(sent, stops)
        free[user], latency = ended, ended - sent
        fails = "HTTP 503" if random.random() < 0.01 else LOST_CAUSE if number % 500 == 499 else None
        yield (
            START + begins + ended,
            {
                "operation": code,
                "size_class": int(large),
                "worker": user % 2 + 1,
                "object": number % 97,
                "size": 10**6 if large else 100 + number * 37 % 8900,
                "first_byte": latency * 0.8 if code == READ.code and not fails else NOT_MEASURED,
                "last_byte": NOT_MEASURED if fails else latency,
                "retries": int(number % 83 == 0),
                "fails": fails,
                "started": START + begins + sent,
                "due": START + begins + due,
                "number": number,
            },
        )


def _blocks(
    random: Random, rate: float | None = None, begins: float = 0.0, **common: float
) -> Iterator[ResultBlock]:
    """Yield the results in the order in which they ended, some hundred a block, with rare columns."""
    done = sorted(_results(random, rate, begins), key=lambda each: each[0])
    for start in range(0, len(done), 400):
        rows, failures = [], {}
        rare: dict[str, dict[int, float]] = {name: {} for name in _EVERY}
        for place, (completed, values) in enumerate(done[start : start + 400]):
            number, cause = values.pop("number"), values.pop("fails")
            if cause or values["retries"]:
                failures[place] = Failure(cause, "", {"HTTP 408": 1} if values["retries"] else {})
            for name, (every, value) in _EVERY.items():
                if number % every == 0:
                    rare[name][place] = value
            for name in ("started", *(["due"] if rate else [])):
                rare.setdefault(name, {})[place] = values[name]
            del values["started"], values["due"]
            rows.append(row(completed=completed, **values))
        yield block(rows, [], failures, common=common, rare=rare)


WORKERS = (
    WorkerFacts(1, "h1", "1.0", cpu_share=0.5, lag_p99=0.012, lag_max=0.05, lag_p50=0.0002),
    WorkerFacts(2, "h2", "1.0", cpu_share=0.97, lag_p99=0.004, lag_max=0.02, lag_p50=0.005),
)
SUMMARY = RunSummary(
    ended=START + SECONDS + 1,
    not_sendable=((3, 1, 7),),
    lost_jobs=1,
    warnings=("something happened",),
    workers=WORKERS,
    counters={"drawn": 9000.0},
    sent_until=START + SECONDS,
    master=MasterFacts(0.4, 0.03),
    gaps=(Gap(1, START + 12.0, 2.5),),
    addresses=("10.0.0.1", "10.0.0.2"),
)


def _numbers(run: RunDescription, summary: RunSummary, *blocks: ResultBlock) -> RunStatistics:
    facts = PartContext(run, [each.name for each in run.scenario.size_classes], summary)
    collector = make_collector(facts, ("worker", "storage_url"), over_time=True)
    for each in blocks:
        collector.add(each)
    return make_statistics(collector, facts)


def _run(scenario: Scenario, **more: Any) -> RunDescription:
    return RunDescription(
        scenario,
        "1.0",
        seed=7,
        started=START,
        workers=WORKERS,
        storage_urls=("http://a/v1/x", "http://b/v1/x"),
        **more,
    )


def closed_loop() -> RunStatistics:
    """Users who send one operation after another, to two accounts and two addresses."""
    return _numbers(_run(SCENARIO), SUMMARY, *_blocks(Random(1)))


def open_loop() -> RunStatistics:
    """A rate that the store does not bear while it stands still; some operations never begin."""
    scenario = replace(SCENARIO, rate=100.0, warmup=5.0)
    went = StageFacts(START, START + SECONDS, due=6500)
    return _numbers(_run(scenario), replace(SUMMARY, stages=(went,)), *_blocks(Random(2), 100.0))


def stages() -> RunStatistics:
    """Users, then a rate, then more of it."""
    plan = tuple(Stage(SECONDS, (USERS, USERS), rate) for rate in (None, (60.0, 60.0), (60.0, 120.0)))
    scenario = replace(SCENARIO, run_seconds=180.0, stages=plan)
    made: list[Any] = []
    went: list[Any] = []
    for place, stage in enumerate(plan):
        begins, rate = SECONDS * place, stage.rate[1] if stage.rate else None
        made += _blocks(Random(3 + place), rate, begins, stage=place)
        due = round(SECONDS * rate) if rate else None
        went.append(StageFacts(START + begins, START + begins + SECONDS, due=due))
    summary = replace(SUMMARY, ended=START + 181, sent_until=START + 180, stages=tuple(went))
    return _numbers(_run(scenario, stages=("1", "2", "3")), summary, *made)


def groups() -> RunStatistics:
    """Two kinds of users at once, one of them with a rate."""
    kinds = (UserGroup("web", CLASSES, USERS), UserGroup("backup", CLASSES, USERS, rate=50.0))
    scenario = replace(SCENARIO, groups=kinds)
    went = tuple(
        GroupFacts((StageFacts(START, START + SECONDS, due=due),), drawn=4000) for due in (None, 3100)
    )
    blocks = [
        each
        for place, kind in enumerate(kinds)
        for each in _blocks(Random(6 + place), kind.rate, group=place)
    ]
    return _numbers(_run(scenario), replace(SUMMARY, groups=went), *blocks)


def sides() -> RunStatistics:
    """Two sides of a run, which met the same store."""
    blocks = [each for place in (0, 1) for each in _blocks(Random(8 + place), group=place)]
    return _numbers(_run(SCENARIO, sides=("a", "b")), SUMMARY, *blocks)


def _report(make: Callable[[], RunStatistics]) -> Any:
    return json.loads(reports.make_run_report("json", make(), ReportOptions(more=(50.0, 99.9))))


def _attribution(make: Callable[[], JoinedRun]) -> Any:
    return json.loads(attribution_report.make_attribution_json(AttributedRun(make_attribution(make()))))


SHAPE = Shape(devices=12, nodes=4, requests=800)
CAUSES = {
    "device": (Cause(devices=(1,), seconds=0.03), SHAPE),
    "proxy": (Cause(proxy=1, seconds=0.01), SHAPE),
    "container": (Cause(container=1, seconds=0.03), SHAPE),
    "commit": (Cause(devices=(2,), seconds=0.03, where="commit", only="writes"), SHAPE),
    "sometimes": (Cause(devices=(3,), seconds=0.2, share=0.35, part=(0.3, 0.7)), SHAPE),
    "node": (Cause(devices=(0, 4, 8), seconds=0.02), SHAPE),
    "fragments": (Cause(devices=(1,), seconds=0.03), replace(SHAPE, ring="fresh", replicas=6, data=4)),
    "nothing": (Cause(), replace(SHAPE, devices=4, nodes=3, requests=300)),
}

DOCUMENTS: dict[str, Callable[[], Any]] = {
    **{
        f"report-{make.__name__}": partial(_report, make)
        for make in (closed_loop, open_loop, stages, groups, sides)
    },
    **{
        f"attribution-{name}": partial(_attribution, partial(genuine, name))
        for name in ("base", "open3", "fsync3", "filter3", "block1", "conc3")
    },
    **{
        f"attribution-simulated-{name}": partial(_attribution, partial(simulate, 1, cause, shape))
        for name, (cause, shape) in CAUSES.items()
    },
    "changes": lambda: json.loads(make_changes_json(changes_of(CAUSES["device"][0], Cause(), SHAPE))),
}


#: Reports on a terminal of the known results, with what is said to the command that prints each.
TEXTS = {
    "known-summary": ["report-scenario", "--report", "summary"],
    "known-summary-verbose": ["report-scenario", "-v", "--report", "summary"],
    "known-full": ["report-scenario", "--report", "full"],
}


def kept_text(name: str) -> str:
    """Return a text as it was."""
    return (FOLDER / f"{name}.txt").read_text("utf-8")


def made_text(name: str) -> str:
    """Return a text as it is made now."""
    with TemporaryDirectory() as folder, redirect_stdout(StringIO()) as out:
        path = write_known(Path(folder) / "known.stat.gz")
        main([*TEXTS[name], "-q", "-s", str(path)])
    return out.getvalue()


def made(name: str) -> Any:
    """Return a document as it is made now, as it is kept: with numbers of nine digits, of any version."""
    return {key: value for key, value in _rounded(DOCUMENTS[name]()).items() if key != "made_by"}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def kept(name: str) -> Any:
    """Return a document as it was."""
    return json.loads(gzip.decompress(_path(name).read_bytes()))


def differences(was: Any, found: Any, path: str = "") -> Iterator[str]:
    """Yield where two documents differ; of a number the last digits may."""
    if isinstance(was, dict) and isinstance(found, dict):
        for key in sorted({*was, *found}):
            yield from differences(was.get(key), found.get(key), f"{path}.{key}")
    elif isinstance(was, list) and isinstance(found, list) and len(was) == len(found):
        for place, (one, other) in enumerate(zip(was, found, strict=True)):
            yield from differences(one, other, f"{path}[{place}]")
    elif isinstance(was, float) and isinstance(found, int | float):
        if not math.isclose(was, found, rel_tol=1e-6, abs_tol=1e-12):
            yield f"{path}: {found}, was {was}"
    elif was != found:
        yield f"{path}: {found!r:.200}, was {was!r:.200}"


def _path(name: str) -> Path:
    return FOLDER / f"{name}.json.gz"


def write() -> None:
    """Write the documents that changed, and print what did; a new one is written whole."""
    for name in DOCUMENTS:
        document = made(name)
        found = [*differences(kept(name), document)] if _path(name).exists() else ["new"]
        for each in found:
            print(f"{name}{each if each[0] in '.[' else f': {each}'}")
        if found:
            text = json.dumps(document, indent=0, sort_keys=True)
            _path(name).write_bytes(gzip.compress(text.encode(), mtime=0))


def write_texts() -> None:
    """Write the texts that changed, and print what did."""
    for name in TEXTS:
        was, text = kept_text(name), made_text(name)
        for line in unified_diff(was.splitlines(), text.splitlines(), name, name, n=0, lineterm=""):
            print(line)
        (FOLDER / f"{name}.txt").write_text(text, "utf-8")


def write_words() -> None:
    """Write what is said in tests; ``git diff`` shows what changed."""
    shutil.rmtree(golden_words.FOLDER, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "pytest", "-q", "--renew-words", "tests/unit"], check=True)


if __name__ == "__main__":
    ArgumentParser(description=__doc__).parse_args()
    write()
    write_texts()
    write_words()
