"""What runs inside the servers of the embedded Swift, in a process for each test: Swift brings eventlet."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ssbench.base import own_processes
from ssbench.cluster import ring

_BEFORE = """
import json, logging, os, sys, time
from pathlib import Path
here = Path(sys.argv[1])
"""


def inside(program: str, folder: Path) -> tuple[Any, str]:
    """Run a program; return what it printed as JSON, and its standard error."""
    done = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-c", _BEFORE + program, str(folder)],
        env={**own_processes.make_child_environment(), "EVENTLET_NO_GREENDNS": "yes"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


_DELAYS = """
import eventlet
from ssbench.local_swift import _serve
from ssbench.local_swift.configuration import SlowTarget, write_slow_targets

path = here / "slow.json"
waits = []
eventlet.sleep = lambda seconds: waits.append(["wait", seconds])
_serve._sleep_blocking = lambda seconds: waits.append(["block", seconds])

def seen(*requests):
    waits.clear()
    for request in requests:
        delays.wait(*request)
    return [*waits]

write_slow_targets(path, [])
delays = _serve.ServerDelays(str(path), "object-1")
found = {"nothing": seen(("d1", "request"), ("d1", "open", "block"))}
slow = [SlowTarget("d1", 1.0, 1.0, "open"), SlowTarget("object-1", 2.0, 1.0, "request")]
slow.append(SlowTarget("d2", 3.0, 1.0, "block"))
write_slow_targets(path, slow)
found["device"] = seen(("d1", "open", "block"))
found["server"] = seen(("d1", "request"), ("d2", "request"))
found["block"] = seen(("d2", "open", "block"))
found["elsewhere"] = seen(("d3", "open", "block"), ("d1", "commit"))
write_slow_targets(path, [SlowTarget("d1", 1.0, 0.25, "open")])
found["share"] = len(seen(*[("d1", "open")] * 4000))
write_slow_targets(path, [SlowTarget("d1", 4.0, 1.0, "request")])
app = _serve.FaultsFilter(lambda env, start: [env["PATH_INFO"]], delays)
waits.clear()
found["answers"] = app({"PATH_INFO": "/d1/7/AUTH_a/c/o"}, None) + app({"PATH_INFO": "/d2/7/AUTH_a"}, None)
found["filter"] = [*waits]
print(json.dumps(found))
"""


def test_delays(tmp_path: Path) -> None:
    found, _ = inside(_DELAYS, tmp_path)
    # Within five deviations of 1,000, each of 27.
    assert 860 < found.pop("share") < 1140
    assert found == {
        "nothing": [],
        "device": [["wait", 1.0]],
        "server": [["wait", 2.0]] * 2,
        "block": [["block", 3.0]],
        "elsewhere": [],
        "answers": ["/d1/7/AUTH_a/c/o", "/d2/7/AUTH_a"],
        "filter": [["wait", 4.0]],
    }


_DISKFILES = """
from swift.obj import diskfile
from ssbench.local_swift import _serve
from ssbench.local_swift.configuration import write_slow_targets

calls = []
class Classes:
    _device_path = "/srv/node/d7"
    _diskfile = type("File", (), {"_device_path": "/srv/node/d8"})()
diskfile.BaseDiskFile.open = lambda self, *args, **options: calls.append(["open", *args]) or "opened"
for kind in (diskfile.DiskFileWriter, diskfile.ECDiskFileWriter):
    kind.put = lambda self, *args, **options: calls.append(["put", *args]) or "put"
_serve.ServerDelays.wait = lambda self, device, *places: calls.append(["wait", device, *places])
write_slow_targets(here / "slow.json", [])
proxy = _serve.make_faults_filter({}, str(here / "slow.json"), "proxy")
untouched = diskfile.BaseDiskFile.open(Classes())
before = [*calls]
calls.clear()
_serve.make_faults_filter({}, str(here / "slow.json"), "object-1")
answers = [diskfile.BaseDiskFile.open(Classes(), "now")]
answers += [kind.put(Classes(), {"a": 1}) for kind in (diskfile.DiskFileWriter, diskfile.ECDiskFileWriter)]
print(json.dumps([before, answers, calls, type(proxy("app")).__name__]))
"""


def test_objects_wait_where_they_are_opened_and_put(tmp_path: Path) -> None:
    (before, answers, calls, kind), _ = inside(_DISKFILES, tmp_path)
    assert before == [["open"]]  # a proxy keeps no objects
    assert answers == ["opened", "put", "put"]
    assert calls == [
        *(["wait", "d7", "open", "block"], ["open", "now"]),
        *(["wait", "d8", "commit"], ["put", {"a": 1}]) * 2,
    ]
    assert kind == "FaultsFilter"


_LOG = """
from logging.handlers import SysLogHandler
from ssbench.local_swift import _serve

logger = logging.getLogger("proxy-server")
logger.propagate = False
logger.addHandler(SysLogHandler())
_serve.log_to_stderr({}, "proxy-server", False, "proxy-server", None, logger, None)
access = logging.getLogger("proxy-access")
access.propagate = False
access.addHandler(SysLogHandler())
_serve.log_access_to_stderr()
_serve.log_access_to_stderr()
kinds = [[type(handler).__name__ for handler in each.handlers] for each in (logger, access)]
logging.Formatter.converter = time.localtime
os.environ["TZ"] = "Asia/Tokyo"
time.tzset()
for each in (logger, access):
    record = logging.LogRecord(each.name, logging.ERROR, "", 0, "line of %s", (each.name,), None)
    record.created, record.msecs, record.server = 86400.25, 250.0, each.name
    each.handle(record)
print(json.dumps(kinds))
"""


def test_lines_go_to_standard_error_with_the_time_of_utc(tmp_path: Path) -> None:
    kinds, text = inside(_LOG, tmp_path)
    assert kinds == [["StreamHandler"]] * 2
    assert text.splitlines() == [
        f"1970-01-02T00:00:00.250 ERROR {name}: line of {name}" for name in ("proxy-server", "proxy-access")
    ]


_RINGS = """
from ssbench.local_swift import _serve

devices = [{"device": f"d{number}", "ip": "127.0.0.1", "port": 7000 + number} for number in range(3)]
(here / "rings.json").write_text(json.dumps({
    "object": {"part_power": 4, "replicas": 2, "devices": devices},
    "account": {"part_power": 2, "replicas": 1, "devices": devices[:1]},
}))
written = []
for _ in range(2):
    _serve.write_rings(here)
    written.append((here / "object.ring.gz").read_bytes())
print(json.dumps(written[0] == written[1]))
"""


def test_rings_are_the_same_bytes_each_time_and_ssbench_reads_them(tmp_path: Path) -> None:
    same, _ = inside(_RINGS, tmp_path)
    assert same
    assert {path.name for path in tmp_path.glob("*.gz")} == {"object.ring.gz", "account.ring.gz"}
    assert sorted(ring.read_ring_servers(tmp_path)) == [
        f"http://127.0.0.1:{7000 + number}" for number in range(3)
    ]
    placed = ring.find_placed_replicas([tmp_path / "object.ring.gz"], {ring.RingKind("object", 0): range(16)})
    replicas = placed[ring.RingKind("object", 0)].values()
    assert len(replicas) == 16
    assert all(len({each.device for each in chosen}) == 2 for chosen in replicas)


_PARENT = """
import subprocess
from ssbench.local_swift import _serve

child = "import sys; from ssbench.local_swift import _serve"
child += "; _serve.end_with_parent(int(sys.argv[1])); print(1)"
command = [sys.executable, "-P", "-W", "ignore", "-c", child]
done = [
    subprocess.run([*command, str(parent)], capture_output=True, timeout=60) for parent in (os.getpid(), 1)
]
print(json.dumps([[each.returncode, each.stdout.decode()] for each in done]))
"""


def test_one_whose_parent_is_gone_already_ends(tmp_path: Path) -> None:
    found, _ = inside(_PARENT, tmp_path)
    assert found == [[0, "1\n"], [1, ""]]


def test_parents_import_neither_swift_nor_eventlet(tmp_path: Path) -> None:
    names, _ = inside(
        "import ssbench.local_swift, ssbench.local_swift.pytest_plugin; print(json.dumps([*sys.modules]))",
        tmp_path,
    )
    assert not {"swift", "eventlet"} & {*names}
