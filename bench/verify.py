"""What --verify costs the client: its CPU with and without, by turns, against nginx on memory.

    python bench/verify.py [--rounds N] [--seconds S] [--json FILE]

CPU is that of the client's process alone. The cost is the difference within a round.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

from objects import Case, in_process
from saving import save
from yardsticks import Measured, Nginx, require

CASES = [
    Case("GET", 4096, 32),
    Case("PUT", 4096, 32),
    Case("GET", 1_000_000, 16),
    Case("PUT", 1_000_000, 16),
]


def cost(url: str, case: Case, seconds: float, verify_seed: int | None) -> float:
    """Return microseconds of CPU an operation, of megabytes milliseconds a megabyte."""
    found = in_process("client", url, case.method, case.size, case.connections, seconds, verify_seed)
    measured = Measured(**found)
    return measured.cpu_ms_per_mb if case.large else measured.cpu_us


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    require("nginx")
    results = []
    print(f"{'':19} {'without':>8} {'with':>8} {'cost: median, range':>22}")
    with Nginx() as nginx:
        for case in CASES:
            nginx.store("c/o_000000", case.size)
            rounds = [
                [cost(nginx.url(), case, options.seconds, seed) for seed in (None, 1)]
                for _ in range(options.rounds)
            ]
            more = [verified - plain for plain, verified in rounds]
            plain, verified = (statistics.median(each) for each in zip(*rounds, strict=True))
            unit = "ms/MB" if case.large else "us/op"
            print(
                f"{case.name:13} {unit} {plain:8.3g} {verified:8.3g} {statistics.median(more):8.3g}"
                f" {min(more):6.3g} to {max(more):.3g}",
                flush=True,
            )
            results.append({"case": case.name, "unit": unit, "rounds": rounds})
    if options.json:
        save(options.json, results=results)


if __name__ == "__main__":
    main()
