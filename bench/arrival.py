"""The median latency that ssbench reports next to wrk's, with many users and a store that takes 5 ms.

    python bench/arrival.py [--rounds N] [--seconds S] [--users N]

The server is nginx (of nginx-extras), which waits for 5 ms. A round is the client of ssbench with the
kernel's arrival times, without them, and wrk, in this order and then in reverse. The table shows medians of
rounds and their range; "over" is by how much a median is over wrk's of the same round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from yardsticks import Measured, free_port, require, wrk

_CONFIGURATION = """
load_module /usr/lib/nginx/modules/ngx_http_echo_module.so;
load_module /usr/lib/nginx/modules/ngx_http_headers_more_filter_module.so;
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            more_set_headers "Content-Length: 1024";
            echo_sleep 0.005;
            echo_duplicate 64 "0123456789abcdef";
        }}
    }}
}}
"""


def ours(url: str, users: int, seconds: float, stamped: bool) -> Measured:
    """The client in a process of its own."""
    arguments = json.dumps([url, "GET", 0, users, seconds])
    off = "" if stamped else "import ssbench.store.http.pool as p; p.ask_for_arrivals = lambda sock: False; "
    program = f"{off}import json, objects; print(json.dumps(objects.client(*json.loads({arguments!r}))))"
    output = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, cwd=Path(__file__).parent
    ).stdout
    return Measured(**json.loads(output))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--users", type=int, default=128)
    options = parser.parse_args()
    require("nginx", "wrk")
    port = free_port()
    rows: dict[str, list[Measured]] = {"arrival": [], "read": [], "wrk": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nginx.conf"
        path.write_text(_CONFIGURATION.format(folder=folder, port=port))
        server = subprocess.Popen(["nginx", "-c", str(path)], stderr=subprocess.DEVNULL)
        try:
            subprocess.run(
                ["curl", "-s", "--retry", "20", "--retry-connrefused", f"http://127.0.0.1:{port}/c/o"],
                check=True,
                stdout=subprocess.DEVNULL,
            )
            url = f"http://127.0.0.1:{port}"
            for number in range(options.rounds):
                for name in list(rows)[:: -1 if number % 2 else 1]:
                    rows[name].append(
                        wrk(f"{url}/c/o", "GET", 0, options.users, options.seconds)
                        if name == "wrk"
                        else ours(url, options.users, options.seconds, stamped=name == "arrival")
                    )
        finally:
            server.terminate()
            server.wait()
    print(f"{'':<10}{'median ms':>10}{'range':>16}{'over wrk':>10}{'range':>18}{'CPU us':>8}")
    for name, each in rows.items():
        medians = [1000 * one.median_latency for one in each]
        pairs = zip(each, rows["wrk"], strict=True)
        over = [one.median_latency / other.median_latency - 1 for one, other in pairs]
        print(
            f"{name:<10}{statistics.median(medians):>10.2f}{min(medians):>8.2f}-{max(medians):<7.2f}"
            f"{statistics.median(over):>10.1%}{min(over):>9.1%}-{max(over):<8.1%}"
            f"{statistics.median(one.cpu_us for one in each):>8.1f}"
        )


if __name__ == "__main__":
    main()
