"""How often two sides that are equal are called different, in real runs over the S3 API with ``--ab``.

    python bench/sides.py [--runs N] [--seconds S] [--slower MS] [--api s3|swift] [--json FILE]

Needs ``pip install '.[swift]'``. The sides are one proxy of an embedded Swift under two names of its host,
with one user each. With ``--slower`` a filter before s3api keeps requests of the second name waiting for so
many milliseconds, and printed is what the comparison says of the median of reads, and how long they waited,
which is longer on a busy machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from statistics import median as find_median

import spread as spreads
import swiftclient
from program import run
from saving import save

from ssbench.comparison.paired_sides import compare_sides
from ssbench.local_swift import LocalSwift

_FILTER = """
import time
import eventlet

def make_filter(conf, seconds, path, **_):
    waits = open(path, "w", buffering=1)
    def wrap(app):
        def wait(environ, start_response):
            if environ.get("HTTP_HOST", "").startswith("localhost"):
                began = time.monotonic()
                eventlet.sleep(float(seconds))
                if environ["REQUEST_METHOD"] == "GET":
                    waits.write(f"{time.monotonic() - began}\\n")
            return app(environ, start_response)
        return wait
    return wrap
"""

_SCENARIO: dict[str, object] = {
    "name": "equal sides",
    "sizes": [{"name": "tiny", "size_min": 4096, "size_max": 4096}],
    "initial_files": {"tiny": 100},
    "operation_count": 1,
    "crud_profile": [2, 5, 2, 1],
    "user_count": 2,
    "container_count": 2,
    "container_base": "equal-",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--slower", type=float, default=0.0, metavar="MS")
    parser.add_argument("--api", choices=["s3", "swift"], default="s3")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "sides.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "slower.py").write_text(_FILTER)
        os.environ["PYTHONPATH"] = f"{folder}:{os.environ.get('PYTHONPATH', '')}"
        waits = Path(folder) / "waits"
        section = {
            "paste.filter_factory": "slower:make_filter",
            "seconds": str(options.slower / 1000),
            "path": str(waits),
        }
        with LocalSwift(filters={"slower": section} if options.slower else {}) as swift:
            found = [_compare(swift, options.api, options.seconds, number) for number in range(options.runs)]
        waited = [float(each) * 1000 for each in waits.read_text().splitlines()] if options.slower else []
    different = sum(bool(differing) for differing, _ in found)
    sys.stdout.write(f"different: {different} of {len(found)} runs\n")
    if options.slower:
        told = [milliseconds for _, milliseconds in found]
        sys.stdout.write(f"slower by, ms: {spreads.spread(told, middle='9.4g')}\n")
        sys.stdout.write(
            f"reads waited for {find_median(waited):.2f} ms, {options.slower:g} were asked for\n"
        )
    save(options.json, runs=found, different=different, slower=options.slower, seconds=options.seconds)


def _compare(swift: LocalSwift, api: str, seconds: float, number: int) -> tuple[list[str], float]:
    """Return the figures that a run calls different, and by how many ms the median of reads is longer."""
    os.environ |= {"AWS_ACCESS_KEY_ID": swift.user, "AWS_SECRET_ACCESS_KEY": swift.key}
    hosts = [swift.address.replace("127.0.0.1", host) for host in ("127.0.0.1", "localhost")]
    if api == "s3":
        sides, more = [f"s3+{each}" for each in hosts], []
    else:
        url, token = swiftclient.get_auth(swift.auth_url, swift.user, swift.key)
        sides, more = [each + url.removeprefix(swift.address) for each in hosts], [f"--token={token}"]
    sides = [f"{name}={url}" for name, url in zip(("one", "two"), sides, strict=True)]
    words = ["--workers=1", f"--run-seconds={seconds:g}", f"--seed={number}", *more, "--ab", *sides]
    compared = compare_sides(run(words, _SCENARIO).statistics)
    if not compared.repeated:
        sys.exit(f"run {number} was too short to call anything different: more --seconds")
    differing = [f"{row.name} {name}" for row, name, change in compared.changes() if change.differs]
    median = next(change for row, name, change in compared.changes() if (row.name, name) == ("READ", "p50"))
    assert median.before is not None
    assert median.after is not None
    milliseconds = (median.after - median.before) * 1000
    sys.stdout.write(f"run {number}: {milliseconds:+.3f} ms of {median.before * 1000:.2f}; {differing}\n")
    sys.stdout.flush()
    return differing, milliseconds


if __name__ == "__main__":
    main()
