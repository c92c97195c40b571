"""What ours is measured against: nginx on memory as the server, wrk and nectar as other clients."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import trustme

_CONFIGURATION = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/t1; fastcgi_temp_path {folder}/t2;
    uwsgi_temp_path {folder}/t3; scgi_temp_path {folder}/t4;
    keepalive_requests 1000000000;
    client_max_body_size 0;
    client_body_buffer_size 64k;
    sendfile on;
    tcp_nopush on;
    server {{
        listen 127.0.0.1:{port};
        listen 127.0.0.1:{tls_port} ssl;
        ssl_certificate {folder}/cert.pem;
        ssl_certificate_key {folder}/key.pem;
        root {folder}/data;
        location = /auth/v1.0 {{
            add_header X-Storage-Url http://127.0.0.1:{port}/v1/a;
            add_header X-Auth-Token AUTH_tk0123456789abcdef;
            return 204;
        }}
        location = /v1/swallow {{ return 204; }}
        location ~ ^/v1/swallow/[^/]+$ {{
            default_type application/json;
            if ($request_method = GET) {{ return 200 '[]'; }}
            return 201;
        }}
        location /v1/swallow/ {{ return 201; }}
        location = /v1/a {{ return 204; }}
        location ~ ^/v1/[^/]+/[^/]+$ {{ return 201; }}
        location / {{ dav_methods PUT DELETE; create_full_put_path on; }}
    }}
}}
"""


@dataclass(frozen=True)
class Measured:
    """One round: operations, CPU seconds of the client's process, median latency in seconds, bytes."""

    operations: int
    seconds: float
    cpu: float
    median_latency: float
    transferred: int

    @property
    def cpu_us(self) -> float:
        return self.cpu / self.operations * 1e6

    @property
    def cpu_ms_per_mb(self) -> float:
        return self.cpu / self.transferred * 1e9


def require(*programs: str) -> None:
    """End with a hint where a program is not installed."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        names = " ".join(missing)
        sys.exit(f"not found: {names}. On Debian and Ubuntu: sudo apt-get install {names}")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class Nginx:
    """nginx with WebDAV over a folder on tmpfs, over HTTP and HTTPS, gone at the end."""

    def __enter__(self) -> Self:
        # A bench that is told to end leaves no server and no folder.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self._folder = tempfile.TemporaryDirectory(prefix="ssbench-bench-", dir=base)
        folder = Path(self._folder.name)
        folder.chmod(0o755)
        self.data = folder / "data"
        self.data.mkdir()
        self.data.chmod(0o777)
        self.port, self.tls_port = free_port(), free_port()
        self._certify(folder)
        configuration = folder / "nginx.conf"
        configuration.write_text(_CONFIGURATION.format(folder=folder, port=self.port, tls_port=self.tls_port))
        self._process = subprocess.Popen(
            ["nginx", "-c", str(configuration)], stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.05)
        self.__exit__()
        sys.exit("nginx did not start")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()

    @staticmethod
    def _certify(folder: Path) -> None:
        authority = trustme.CA()
        leaf = authority.issue_cert("127.0.0.1")
        leaf.private_key_pem.write_to_path(folder / "key.pem")
        leaf.cert_chain_pems[0].write_to_path(folder / "cert.pem")

    def url(self, tls: bool = False) -> str:
        return f"https://127.0.0.1:{self.tls_port}" if tls else f"http://127.0.0.1:{self.port}"

    def store(self, path: str, size: int) -> None:
        """An object of ``size`` random bytes; of zeros, which take no memory, beyond 1 GB."""
        place = self.data / path
        place.parent.mkdir(exist_ok=True)
        place.parent.chmod(0o777)
        with place.open("wb") as stream:
            if size > 1_000_000_000:
                stream.truncate(size)
            else:
                stream.write(os.urandom(size))


def _children_cpu() -> float:
    """CPU seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


#: Of several paths wrk asks for one after the other. One object by itself stays in the processor's caches,
#: from where an answer of 32 KiB costs 4/5 of what it does from memory.
_SEVERAL_PATHS = """
local requests, last = {}, 0
init = function()
    for number, path in ipairs(paths) do requests[number] = wrk.format(nil, path) end
end
request = function()
    last = last % #requests + 1
    return requests[last]
end
"""


def wrk(
    url: str, method: str, size: int, connections: int, seconds: float, paths: Sequence[str] = ()
) -> Measured:
    """wrk with one thread; PUT sends a body of ``size`` bytes in one piece with the head.

    ``paths`` are what it asks for in place of that of the URL. Uploads that the end cut off are not counted,
    though they cost: rounds should hold many.
    """
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "request.lua"
        lines = [f'wrk.method = "{method}"']
        if method == "PUT":
            lines.append(f'wrk.body = string.rep("x", {size})')
        if paths:
            lines += ["local paths = {" + ", ".join(f'"{path}"' for path in paths) + "}", _SEVERAL_PATHS]
        lines.append(
            "done = function(summary, latency)"
            ' io.write(string.format("JSON %d %d %d %f\\n", summary.requests, summary.bytes,'
            " summary.duration, latency:percentile(50.0))) end"
        )
        script.write_text("\n".join(lines))
        before = _children_cpu()
        output = subprocess.run(
            ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "-s", str(script), url],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        cpu = _children_cpu() - before
    if "Non-2xx" in output or "Socket errors" in output:
        print("wrk says:", *re.findall(r".*(?:Non-2xx|Socket errors).*", output), file=sys.stderr)
    found = re.search(r"JSON (\d+) (\d+) (\d+) ([\d.]+)", output)
    assert found, output
    requests, received, duration, latency = (float(text) for text in found.groups())
    if not requests:  # too short for bodies of this size
        return wrk(url, method, size, connections, seconds * 2)
    transferred = requests * size if method == "PUT" else received
    return Measured(int(requests), duration / 1e6, cpu, latency / 1e6, int(transferred))


def nectar(nginx: Nginx, method: str, size: int, connections: int, operations: int) -> float:
    """CPU seconds an operation of nectar's bench-get or bench-put, each result going to its CSV file.

    It is the difference between a run of ``operations`` and one of a tenth, so that its start is no part.
    """
    account = nginx.data / "v1" / "a"
    stored = 500
    with tempfile.TemporaryDirectory(dir=nginx.data) as folder:
        if method == "GET":
            for number in range(stored):
                nginx.store(f"v1/a/nectar/bench-{number}", size)

        def cpu(count: int) -> float:
            command = f"nectar -A {nginx.url()}/auth/v1.0 -U u -K k -C {connections}".split()
            command += [f"bench-{method.lower()}", "-csv", f"{folder}/results.csv", "-count"]
            if method == "GET":
                command += [str(stored), "-iterations", str(count // stored), "nectar"]
            else:
                command += [str(count), "-size", str(size), "nectar"]
            before = _children_cpu()
            subprocess.run(command, check=True, capture_output=True)
            return _children_cpu() - before

        few = max(stored, operations // 10 // stored * stored)
        many = max(few + stored, operations // stored * stored)
        try:
            return (cpu(many) - cpu(few)) / (many - few)
        finally:
            shutil.rmtree(account / "nectar", ignore_errors=True)
