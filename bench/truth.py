"""What a report says of stores whose behaviour is planted, beside what is true.

    python bench/truth.py [--runs N] [STORE ... | lines | rates | rates:NAME]

First a row for each figure: the planted value, the printed one, and how far they are apart, which is at
most 1 % (of p95 and above 5 %). It takes seconds, for nothing is measured: users, store and clock are
simulated, and everything from the results on is the program's own. Then what is concluded, in as many
simulated runs as --runs says: how often that is right (``lines``; some minutes), and how often wrong, with
limits (``rates``: the rows of ``error_rates_NAME.py``). Exit code 1 where something is not as it should be.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import error_rates
from truth_lines import LINES

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from planted_stores import STORES, USERS

#: The names of what is not about one store.
_LINES = "lines"
_RATES = "rates"


def figures(names: Sequence[str]) -> int:
    """Print the figures of some stores; return how many are wrong."""
    wrong = 0
    for planted in STORES:
        if planted.name not in names:
            continue
        print(f"{planted.name} ({USERS} users, {planted.seconds:g} s)")
        for figure, truth, printed, is_near in planted.compare():
            off = printed / truth - 1 if truth and not math.isnan(truth) else 0.0
            wrong += not is_near
            mark = "" if is_near else "  WRONG"
            print(f"  {figure:<24}{truth:>14.3f}{printed:>14.3f}{off:>+10.2%}{mark}")
    return wrong


def conclusions(runs: int) -> int:
    """Print what is concluded of simulated runs; return how many lines are wrong."""
    wrong = 0
    print(f"{'Concluded of simulated runs':<78}{'asked':>8}{'found':>12}")
    for make in LINES:
        for line in make(runs):
            wrong += not line.is_met
            mark = "" if line.is_met else "  WRONG"
            print(f"{line.what:<78}{line.asked:>8}{line.found:>12}{mark}", flush=True)
    return wrong


def rates(names: Sequence[str], runs: int) -> int:
    """Print how often wrong conclusions are drawn; return how many are drawn too often."""
    too_often = 0
    print(f"{'Wrong conclusions of simulated runs':<78}{'at most':>8}{'wrong':>14}")
    for row in (row for name in names for row in error_rates.rows_of(name)):
        wrong, made = row.count(runs)
        is_within = error_rates.is_within(row, wrong, made)
        too_often += not is_within
        mark = "" if is_within else "  WRONG"
        print(f"{row.name:<78}{row.limit:>8.1%}{f'{wrong} of {made}':>14}{mark}", flush=True)
    return too_often


def main() -> int:
    """Print the tables; return the exit code."""
    names = [planted.name for planted in STORES]
    of_rates = {f"{_RATES}:{name}": name for name in error_rates.modules()}
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=20, help="simulated runs a line (default: 20)")
    known, others = ", ".join(names), ", ".join((_LINES, _RATES, *of_rates))
    parser.add_argument("stores", nargs="*", metavar="STORE", help=f"one of: {known}, {others}")
    arguments = parser.parse_args()
    wanted = arguments.stores or [*names, _LINES, _RATES]
    if unknown := set(wanted) - {*names, _LINES, _RATES, *of_rates}:
        parser.error(f"no such store: {', '.join(sorted(unknown))}")
    wrong = figures(wanted)
    if _LINES in wanted:
        wrong += conclusions(arguments.runs)
    if found := [name for key, name in of_rates.items() if {key, _RATES} & {*wanted}]:
        wrong += rates(found, arguments.runs)
    print(f"wrong: {wrong}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
