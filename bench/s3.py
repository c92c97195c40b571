"""What a GET of 4 kB costs a worker by the S3 API, by turns with Swift's.

    python bench/s3.py [--rounds N] [--seconds S] [--json FILE]

Both ask the same nginx, which has one answer for all objects (``sudo apt-get install nginx``). Over S3 there
are two cases: 100 objects, whose signatures are kept while their date holds, and 20,000, each of which has a
new one each time. Printed are the CPU of the worker an operation, and the ratios from runs of one round.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

import spread as spreads
from program import run
from saving import save
from yardsticks import free_port, require

USERS = 16

_CONFIGURATION = """
daemon off; worker_processes 1; pid {folder}/pid; error_log stderr crit;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 100000000; client_body_temp_path {folder}/body;
  server {{
    listen 127.0.0.1:{port};
    add_header X-Trans-Id tx0123456789abcdef01234-0123456789;
    open_file_cache max=10;
    location / {{
      root {folder};
      if ($request_method ~ "PUT|DELETE") {{ return 201; }}
      rewrite ^ /object break;
    }}
    location = / {{ return 200 "<ListAllMyBucketsResult></ListAllMyBucketsResult>"; }}
    location ~ "^/v1/a/[^/]*$" {{ return 200 "[]"; }}
    location ~ "^/[^/]+$" {{ return 200 "<ListBucketResult></ListBucketResult>"; }}
  }}
}}
"""


#: Objects of the cases.
FEW, MANY = 100, 20_000


def measure(url: str, seconds: float, objects: int, *more: str) -> float:
    """Return the CPU of the worker, in µs an operation."""
    scenario = {
        "name": "GET",
        "sizes": [{"name": "o", "size_min": 4096, "size_max": 4096}],
        "initial_files": {"o": objects},
        "operation_count": 1,
        "crud_profile": [0, 100, 0, 0],
        "user_count": USERS,
        "container_count": 2,
    }
    ran = run([f"--storage-url={url}", "--workers=1", f"--run-seconds={seconds:g}", *more], scenario)
    return ran.worker_cpu * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "s3.json")
    options = parser.parse_args()
    require("nginx")
    os.environ |= {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"}
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        configuration = Path(folder) / "nginx.conf"
        configuration.write_text(_CONFIGURATION.format(folder=folder, port=port))
        (Path(folder) / "object").write_bytes(os.urandom(4096))
        server = subprocess.Popen(["nginx", "-c", str(configuration)], stdin=subprocess.DEVNULL)
        try:
            for _ in range(100):
                try:
                    urlopen(f"http://127.0.0.1:{port}/v1/a/b", timeout=5).close()
                    break
                except OSError:
                    time.sleep(0.05)
            cases = {"swift": FEW, "swift, many": MANY, "s3": FEW, "s3, many": MANY}
            found: dict[str, list[float]] = {name: [] for name in cases}
            for number in range(options.rounds):
                for case in [*cases][:: 1 if number % 2 else -1]:
                    swift = case.startswith("swift")
                    url = f"http://127.0.0.1:{port}/v1/a" if swift else f"s3+http://127.0.0.1:{port}"
                    more = ["--token=AUTH_tk0123456789abcdef"] if swift else []
                    found[case].append(measure(url, options.seconds, cases[case], *more))
        finally:
            server.terminate()
            server.wait()
    for kind in ("", ", many"):
        pairs = zip(found[f"s3{kind}"], found[f"swift{kind}"], strict=True)
        found[f"ratio{kind}"] = [s3 / swift for s3, swift in pairs]
    for name, values in found.items():
        sys.stdout.write(f"{name:>12}  {spreads.spread(values, middle='9.4g')}\n")
    save(options.json, **found)


if __name__ == "__main__":
    main()
