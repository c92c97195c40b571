"""Stand-ins for workers, of any checkout: ``CHECKOUT COUNT FIRST WORK RESULTS CAPACITY LONGEST [KEY]``.

COUNT of them, with numbers from FIRST on, speak the protocol of CHECKOUT to the ports WORK and RESULTS of
this host, until they have been told to exit. Each runs CAPACITY jobs at once, and says that a job took up to
LONGEST milliseconds. KEY is the file of a sealed fleet.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path


def main() -> None:
    if len(sys.argv) not in {8, 9}:
        sys.exit(__doc__)
    checkout, numbers, keys = Path(sys.argv[1]), map(int, sys.argv[2:8]), sys.argv[8:]
    sys.path[:0] = [str(checkout), str(checkout / "tests" / "helpers")]
    from stand_in_workers import StandInWorkers  # noqa: PLC0415 - of that checkout

    from ssbench.fleet.keys import read_fleet_key  # noqa: PLC0415

    count, first, work, results, capacity, longest = numbers
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each has two connections
    key = read_fleet_key(Path(keys[0])) if keys else None
    with StandInWorkers(
        count, work, results, first=first, key=key, capacity=capacity, longest=longest / 1000
    ) as workers:
        while len(workers.exited) < count and workers.failure is None:
            time.sleep(0.05)


if __name__ == "__main__":
    main()
