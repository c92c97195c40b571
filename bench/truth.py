"""What a report says of stores whose behaviour is planted, beside what arithmetic says.

    python bench/truth.py [STORE ...]

Prints a row for each figure: the planted value, the printed one, and how far they are apart. Exit code 1
when one is not near enough (1 %, of p95 and above 5 %). It takes seconds, for nothing is measured:
users, store and clock are simulated, and everything from the results on is the program's own.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from planted_stores import STORES, USERS


def main() -> int:
    """Print the table; return the exit code."""
    names = [planted.name for planted in STORES]
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("stores", nargs="*", metavar="STORE", help=f"one of: {', '.join(names)}")
    wanted = parser.parse_args().stores or names
    if unknown := set(wanted) - set(names):
        parser.error(f"no such store: {', '.join(sorted(unknown))}")
    wrong = 0
    for planted in STORES:
        if planted.name not in wanted:
            continue
        print(f"{planted.name} ({USERS} users, {planted.seconds:g} s)")
        for figure, truth, printed, is_near in planted.compare():
            off = printed / truth - 1 if truth and not math.isnan(truth) else 0.0
            wrong += not is_near
            mark = "" if is_near else "  WRONG"
            print(f"  {figure:<24}{truth:>14.3f}{printed:>14.3f}{off:>+10.2%}{mark}")
    print(f"wrong: {wrong}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
