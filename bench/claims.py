"""What others claimed of Swift, measured with ssbench on an embedded Swift: one row for each claim.

    python bench/claims.py [slo] [ratelimit] [splice] [put] [--rounds N] [--old-python PATH] [--json FILE]

Needs ``pip install '.[swift]'``. What measures does not know the claim: it returns figures with their 95 %
intervals by rounds, which are then compared with the claim. It *holds* where the figure is near it,
is *not refuted* where the claim is within the interval at least, and else *refuted*.

- ``slo`` (Swift f850ff065): PUT of the manifest of n segments, each of which is validated by a HEAD, at an
  object server that is slow by d: n d / concurrency, and d for the manifest itself, which is taken off.
  Measured is what the delay adds, by one user: a worker has as many connections as users, so that of several
  the manifest of one waits for segments of the others.
- ``ratelimit``: a limit of writes a container, in containers of which one run uses one and one four: the rate
  follows from the limit, which the report has to name. Without the filter the answer is open.
- ``splice`` (7d0e5ebe6): CPU of object servers for GET, -37 %; needs AF_ALG in the kernel.
- ``put`` (2f1111a43, 8378a11d1): CPU of PUT of large objects in 2.24 and 2.25 by 2.23; needs Python 3.8.
- ``shards`` (f7d6d5806, c07393338): needs containers of thousands of shards, which no embedded Swift has.
"""

from __future__ import annotations

import argparse
import json
import math
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from saving import save

from ssbench.local_swift import LocalSwift
from ssbench.statistics.confidence import t_quantile

#: Segments of an object, and seconds by which the object server is slow.
SEGMENTS, DELAY = 16, 0.5
#: Writes a second in a container.
LIMIT = 5.0


@dataclass(frozen=True)
class Found:
    """A figure with its 95 % interval over rounds."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, rounds: Sequence[float]) -> Found:
        mean = fmean(rounds)
        half = t_quantile(0.975, len(rounds) - 1) * stdev(rounds) / math.sqrt(len(rounds))
        return cls(mean, mean - half, mean + half)


#: Returns figures by their names; raises NotRun.
Measure = Callable[[int, argparse.Namespace], dict[str, Found]]


class NotRun(Exception):  # noqa: N818 - no error
    """Why a claim cannot be measured here."""


def run(swift: LocalSwift | Sequence[str], seconds: float | None = None, **scenario: Any) -> dict[str, Any]:
    """Run a scenario on a Swift, or on one that options have the run start; return the report in JSON."""
    content = {
        "name": "claim",
        "sizes": [{"name": "object", "size": 1}],
        "initial_files": {"object": 1},
        "container_count": 1,
        **({"run_seconds": seconds} if seconds else {}),
        **scenario,
    }
    with tempfile.TemporaryDirectory() as folder:
        file, report = Path(folder) / "scenario.json", Path(folder) / "report.json"
        file.write_text(json.dumps(content))
        words = ["run-scenario", "-f", file, "-s", Path(folder) / "run.stat.gz", "--json", report, "-R"]
        words += ["--workers", 1, "-q"]
        if isinstance(swift, LocalSwift):
            words += ["-A", swift.auth_url, "-U", swift.user, "-K", swift.key]
        else:
            words += ["--local-swift", *swift]
        command = [sys.executable, "-P", "-m", "ssbench.cli.master", *map(str, words)]
        subprocess.run(command, check=True, timeout=900)
        found: dict[str, Any] = json.loads(report.read_text())
    return found


# -- What is measured ------------------------------------------------------------------------------


def measure_slo(rounds: int, _: argparse.Namespace) -> dict[str, Found]:
    """Seconds that the delay adds to the PUT of a manifest, by concurrency."""
    added: dict[int, list[float]] = {1: [], 2: [], 8: []}
    load: dict[str, Any] = {
        "profile": {"slo": 1},
        "operations": [{"name": "slo", "segments": SEGMENTS, "segment_size": 1, "reads": ["range"]}],
        "user_count": 1,
        "operation_count": 2,
    }
    for _round in range(rounds):
        for concurrency, seconds in added.items():
            settings = [f"proxy-server:filter:slo:concurrency={concurrency}"]
            with LocalSwift(swift_settings=settings) as swift:
                quick = _read_manifest(run(swift, **load))
                swift.slow("d1", DELAY, where="request")
                seconds.append(_read_manifest(run(swift, **load)) - quick - DELAY)  # that of its own PUT
    return {f"concurrency {each}, s": Found.of(seconds) for each, seconds in added.items()}


def _read_manifest(report: dict[str, Any]) -> float:
    """Return the mean latency of the PUT of the manifest."""
    (line,) = [each for each in report["operations"] if each["steps"]]
    return float(line["steps"]["manifest"]["mean"])


def measure_ratelimit(rounds: int, _: argparse.Namespace) -> dict[str, Found]:
    """Writes a second, with the filter in one container and in four, and without it; what reports say."""
    load = {"profile": {"create": 1}, "user_count": 8}
    rates: dict[str, list[float]] = {}
    named = []
    limit = f"--swift-config=proxy-server:filter:ratelimit:container_ratelimit_0={LIMIT:g}"
    limited = ["--swift-config=+ratelimit", limit]
    for _round in range(rounds):
        # The limit lets the first ones pass, and each waits for long.
        for name, options, seconds, warmup in (("limited", limited, 40, 10), ("free", [], 10, 0)):
            for containers in (1, 4):
                report = run(options, seconds, container_count=containers, warmup=warmup, **load)
                rate = report["verdict"]["delivered"]["ops_per_second"]
                rates.setdefault(f"{name}, containers: {containers}, ops/s", []).append(rate)
                if name == "limited":
                    reasons = report["verdict"]["reasons"]
                    named.append(float(any(each["about"] == "limit" for each in reasons)))
    return {**{name: Found.of(each) for name, each in rates.items()}, "limit named": Found.of(named)}


def measure_splice(rounds: int, _: argparse.Namespace) -> dict[str, Found]:
    """CPU of object servers for a GET of 1 MB with splice, by that without it."""
    try:
        with socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET, 0) as one:
            one.bind(("hash", "md5"))
    except (AttributeError, OSError):
        raise NotRun("the kernel has no AF_ALG with md5") from None
    load = {"sizes": [{"name": "object", "size": "1MB"}], "initial_files": {"object": 20}, "user_count": 2}
    with (
        LocalSwift() as before,
        LocalSwift(swift_settings=["object-server:app:splice=yes"]) as after,
    ):
        return {
            "CPU of object servers": _compare_cpu(
                [("object",)], rounds, before, after, {**load, "profile": {"read": 1}}
            )
        }


def measure_put(rounds: int, options: argparse.Namespace) -> dict[str, Found]:
    """CPU of proxy and object servers for a PUT of 10 MB in 2.24 and 2.25, by that in 2.23."""
    if options.old_python is None:
        raise NotRun("needs --old-python PATH")
    load = {"sizes": [{"name": "object", "size": "10MB"}], "user_count": 2, "profile": {"create": 1}}
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        pythons = {}
        for version in ("2.23.3", "2.24.0", "2.25.0"):
            place = Path(folder) / version
            subprocess.run([options.old_python, "-m", "venv", place], check=True)
            python = str(place / "bin" / "python")
            needed = [
                f"swift=={version}",
                "eventlet==0.33.3",
                "dnspython<2.3",
                "setuptools<58",
                "six",
                "netifaces",
            ]
            subprocess.run([python, "-m", "pip", "install", "-q", *needed], check=True, timeout=600)
            pythons[version] = python
        with LocalSwift(release=pythons["2.23.3"]) as before:
            for version in ("2.24.0", "2.25.0"):
                with LocalSwift(release=pythons[version]) as after:
                    found[f"CPU, {version} by 2.23.3"] = _compare_cpu(
                        [("proxy", "object")], rounds, before, after, load
                    )
    return found


def _compare_cpu(
    kinds: Sequence[Sequence[str]],
    rounds: int,
    before: LocalSwift,
    after: LocalSwift,
    load: dict[str, Any],
) -> Found:
    """Return the CPU for an operation of one Swift by that of another one, in turn."""
    ratios = []
    for _round in range(rounds):
        both = [run(swift, 10, **load)["server_cpu"] for swift in (before, after)]
        one, two = (sum(each[kind]["seconds"] for names in kinds for kind in names) for each in both)
        ratios.append(two / one)
    return Found.of(ratios)


# -- What was claimed ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """A claim: its source, how it is measured, what it says of figures, and how near these have to be."""

    source: str
    setup: str
    measure: Measure
    said: dict[str, float]
    tolerance: float

    def judge(self, name: str, found: Found) -> str:
        """Return what a figure says of it."""
        if name not in self.said:
            return "open"
        said = self.said[name]
        near = abs(found.value - said) <= self.tolerance * said
        if found.low <= said <= found.high:
            return "holds" if near else "not refuted"
        return "holds" if near else "refuted"


def cannot(why: str) -> Measure:
    def measure(_rounds: int, _options: argparse.Namespace) -> dict[str, Found]:
        raise NotRun(why)

    return measure


_ADDED = SEGMENTS * DELAY
CLAIMS = {
    "slo": Claim(
        "Swift f850ff065",
        f"SLO of {SEGMENTS} segments, object server slow by {DELAY:g} s",
        measure_slo,
        {f"concurrency {each}, s": _ADDED / each for each in (1, 2, 8)},
        0.05,
    ),
    "ratelimit": Claim(
        "ratelimit, 97 of 100 PUT/s a container",
        f"8 writers of one byte, {LIMIT:g} PUT/s a container",
        measure_ratelimit,
        {
            "limited, containers: 1, ops/s": 0.97 * LIMIT,
            "limited, containers: 4, ops/s": 4 * 0.97 * LIMIT,
            "limit named": 1.0,
        },
        0.1,
    ),
    "splice": Claim(
        "Swift 7d0e5ebe6", "GET, splice = yes", measure_splice, {"CPU of object servers": 0.63}, 0.1
    ),
    "put": Claim(
        "Swift 2f1111a43, 8378a11d1",
        "PUT of 10 MB",
        measure_put,
        {"CPU, 2.24.0 by 2.23.3": 0.7},
        0.1,
    ),
    "shards": Claim(
        "Swift f7d6d5806, c07393338",
        "listings of sharded containers",
        cannot("no embedded Swift has 12,000 shard ranges"),
        {},
        0.1,
    ),
}


def list_rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Measure each claim; yield rows of the table."""
    for key in options.claims or CLAIMS:
        claim = CLAIMS[key]
        row: dict[str, Any] = {"claim": key, "source": claim.source, "setup": claim.setup}
        try:
            measured = claim.measure(options.rounds, options)
        except NotRun as why:
            yield {**row, "result": f"not run: {why}"}
            continue
        for name, found in measured.items():
            figures = {"value": found.value, "low": found.low, "high": found.high}
            said = claim.said.get(name)
            yield {**row, "figure": name, "claimed": said, **figures, "result": claim.judge(name, found)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("claims", nargs="*", choices=[[], *CLAIMS], metavar="CLAIM")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--old-python", metavar="PATH")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "claims.json")
    options = parser.parse_args()
    rows = []
    for row in list_rows(options):
        rows.append(row)
        said = "" if row.get("claimed") is None else f"{row['claimed']:.3g}"
        figure = f"{row['value']:.3g} ({row['low']:.3g} to {row['high']:.3g})" if "value" in row else ""
        name = row.get("figure", row["setup"])
        print(f"{row['claim']:10} {name:34} claimed {said or '-':8} {figure:28} {row['result']}", flush=True)
    save(options.json, rounds=options.rounds, rows=rows)


if __name__ == "__main__":
    main()
