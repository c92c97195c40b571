"""Which requests applications make: real clients run against the embedded Swift, whose proxy logs them.

    sudo apt-get install docker-registry skopeo restic rclone
    python bench/applications/record.py [registry] [restic] [rclone] [swift] [--keep] [--folder FOLDER]

For each application and each of its phases (a push, a pull) it prints how many requests of each kind there
were, their shares, sizes and statuses, and in which order requests for the same object followed each other.
Kinds have the names of ssbench's operations, and what the object is beside it: ``read link`` is a GET of a
link. ``missing`` is a HEAD or GET that found nothing. Requests for tokens and for ``/info`` have no share.
Requests that middleware makes by itself, as for the segments of a large object, are left out.

``--keep`` writes the record to ``bench/applications/NAME.json``. The scenarios that are named in
``tests/helpers/application_records.py`` follow these records, and a test compares their shares.
"""

from __future__ import annotations

import argparse
import datetime
import io
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from ssbench.local_swift import Layout, LocalSwift

HERE = Path(__file__).parent
KB, MB = 1000, 1000 * 1000

# -- Lines of the proxy's log ----------------------------------------------------------------------


class Request(NamedTuple):
    """A request of the client: what the proxy's access line says of it."""

    began: float
    method: str
    place: tuple[str, ...]  # container and object, or one of them, or none
    query: str
    status: int
    received: int
    sent: int

    @property
    def size(self) -> int:
        """Bytes of the body, whichever way it went."""
        return max(self.received, self.sent)


_ACCESS = re.compile(
    r" \d\d/[A-Z][a-z]{2}/\d{4}/\d\d/\d\d/\d\d (?P<method>\S+) (?P<path>\S+) HTTP/1\.\d (?P<status>\d+)"
    r" \S+ \S+ \S+ (?P<received>\S+) (?P<sent>\S+) \S+ tx\S+ \S+ \S+ (?P<source>\S+) \S+ (?P<began>[\d.]+) "
)


def parse_access_line(line: str) -> Request | None:
    """Return the request of an access line; None for other lines, and for requests of middleware."""
    found = _ACCESS.search(line)
    if found is None or found["source"] != "-":
        return None
    path, _, query = unquote(found["path"]).partition("?")
    place = [each for each in path.split("/", 4)[3:] if each] if path.startswith("/v1/") else ["", path]
    received, sent = (0 if each == "-" else int(each) for each in (found["received"], found["sent"]))
    began, status = float(found["began"]), int(found["status"])
    return Request(began, found["method"], tuple(place), query, status, received, sent)


def is_of_no_account(request: Request) -> bool:
    """Whether a request asks for a token, or what the cluster can do."""
    return request.place[:1] == ("",)


_ON_ACCOUNT = {"GET": "list_account", "HEAD": "head_account", "POST": "post_account"}
_ON_CONTAINER = {
    "GET": "list",
    "HEAD": "head_container",
    "PUT": "create_container",
    "POST": "post_container",
    "DELETE": "delete_container",
}


def name_operation(request: Request, written: set[tuple[str, ...]]) -> str:
    """Return the name of ssbench's operation that is such a request.

    ``written`` has the objects that exist, and is brought up to date.
    """
    method, place, query = request.method, request.place, request.query
    if "bulk-delete" in query:
        found = "bulk_delete"
    elif len(place) < 2:
        found = (_ON_CONTAINER if place else _ON_ACCOUNT)[method]
    elif method in {"GET", "HEAD"} and request.status == 404:
        found = "missing"
    elif method == "GET":
        found = "tempurl" if "temp_url_sig" in query else "range" if request.status == 206 else "read"
    elif method == "PUT":
        found = "update" if place in written else "create"
        written.add(place)
    else:
        found = method.lower()
        if method == "DELETE":
            written.discard(place)
    return found


# -- What a phase consisted of ---------------------------------------------------------------------


def quantile(values: list[int], share: float) -> int:
    """Return the value below which so much of them is."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def summarize(
    requests: list[Request], name_object: Callable[[str], str], written: set[tuple[str, ...]]
) -> dict[str, Any]:
    """Return what a phase consisted of: kinds of requests with their shares and sizes, and their order."""
    others = Counter(
        "info" if each.place[1] == "/info" else "token" for each in requests if is_of_no_account(each)
    )
    requests = sorted(each for each in requests if not is_of_no_account(each))
    named = []
    for each in requests:
        what = name_object(each.place[1]) if len(each.place) > 1 else ""
        named.append((f"{name_operation(each, written)} {what}".rstrip(), each))
    by_kind: dict[str, list[Request]] = defaultdict(list)
    by_object: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for kind, each in named:
        by_kind[kind].append(each)
        if len(each.place) > 1:
            by_object[each.place].append(kind)
    kinds = {}
    for kind, alike in sorted(by_kind.items(), key=lambda item: -len(item[1])):
        sizes = [each.size for each in alike]
        kinds[kind] = {
            "count": len(alike),
            "percent": round(100 * len(alike) / len(requests), 1),
            "methods": dict(Counter(each.method for each in alike).most_common()),
            "statuses": dict(Counter(str(each.status) for each in alike).most_common()),
            "bytes": {
                "least": min(sizes),
                "median": quantile(sizes, 0.5),
                "most": max(sizes),
                "all": sum(sizes),
            },
        }
    followed: dict[str, Counter[str]] = defaultdict(Counter)
    for (kind, _), (after, _) in pairwise(named):
        followed[kind][after] += 1
    order = Counter(", ".join(squeeze(own)) for own in by_object.values())
    return {
        "requests": len(requests),
        "besides": dict(others),
        "kinds": kinds,
        "of_one_object": dict(order.most_common(12)),
        "followed_by": {kind: dict(after.most_common(3)) for kind, after in followed.items()},
    }


def squeeze(kinds: list[str]) -> Iterator[str]:
    """Yield kinds in order, those that repeat once, with how often."""
    place = 0
    while place < len(kinds):
        times = next((n for n, each in enumerate(kinds[place:]) if each != kinds[place]), len(kinds) - place)
        yield f"{times} x {kinds[place]}" if times > 1 else kinds[place]
        place += times


def print_phase(name: str, phase: dict[str, Any]) -> None:
    """Print a phase as tables."""
    besides = "".join(f", {count} for {what}" for what, count in phase["besides"].items())
    print(f"\n{name}: {phase['requests']} requests{besides}. {phase['what']}")
    for kind, row in phase["kinds"].items():
        sizes = row["bytes"]
        statuses = " ".join(f"{status}:{count}" for status, count in row["statuses"].items())
        print(
            f"  {kind:28}{row['count']:5}{row['percent']:7.1f} %  bytes {sizes['least']:,} to"
            f" {sizes['most']:,}, median {sizes['median']:,}; {statuses}"
        )
    print("  of one object:")
    for order, count in phase["of_one_object"].items():
        print(f"    {count:4} x {order}")


#: The proxy writes a line after it has answered.
_LOG_SECONDS = 1.0


class Recorder:
    """A Swift, the folder of a client, and what the proxy has logged of each phase."""

    def __init__(self, swift: LocalSwift, folder: Path, name_object: Callable[[str], str]) -> None:
        self.swift = swift
        self.folder = folder
        self.phases: dict[str, dict[str, Any]] = {}
        self._name_object = name_object
        self._written: set[tuple[str, ...]] = set()
        self._log = swift.servers[0].log
        self._read = 0

    @contextmanager
    def phase(self, name: str, what: str) -> Iterator[None]:
        """Record what is requested meanwhile."""
        time.sleep(_LOG_SECONDS)
        self._read = self._log.stat().st_size
        yield
        time.sleep(_LOG_SECONDS)
        with self._log.open("rb") as log:
            log.seek(self._read)
            lines = log.read().decode(errors="replace").splitlines()
        requests = [each for line in lines if (each := parse_access_line(line)) is not None]
        self.phases[name] = {"what": what, **summarize(requests, self._name_object, self._written)}

    def run(self, *command: str | Path, **more: str) -> None:
        """Run a client, which has to succeed. ``more`` are variables of its environment."""
        environment = {
            **os.environ,
            "HOME": str(self.folder),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "ST_AUTH": self.swift.auth_url,
            "ST_USER": self.swift.user,
            "ST_KEY": self.swift.key,
            **more,
        }
        done = subprocess.run(
            [str(each) for each in command],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        if done.returncode:
            sys.exit(
                f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
            )


def make_bytes(size: int, seed: int) -> bytes:
    """Return bytes that do not compress."""
    return random.Random(seed).randbytes(size)


def make_files(folder: Path, sizes: list[int], seed: int = 0) -> None:
    """Fill a folder with files of these sizes, eight in each of its folders."""
    for place, size in enumerate(sizes):
        file = folder / f"folder-{place // 8}" / f"file-{place:03}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(make_bytes(size, seed * 1000 + place))


#: Files as people have them: many small ones, few large.
FILES = [20 * KB, 80 * KB, 3 * KB, 400 * KB, 1 * KB, 150 * KB, 2 * MB, 8 * KB] * 8


# -- The applications ------------------------------------------------------------------------------


_REGISTRY_CONFIG = """\
version: 0.1
log: {{level: warn}}
storage:
  {cache}
  swift:
    authurl: {auth}
    authversion: 1
    username: {user}
    password: {key}
    container: registry
    prefix: ""
http: {{addr: "127.0.0.1:{port}"}}
"""

_INSECURE = ("--insecure-policy", "copy")

#: Layers of three images, each with a configuration beside them.
LAYERS = [[30 * MB, 4 * MB], [12 * MB, 150 * KB], [48 * MB, 900 * KB]]


def write_image(folder: Path, sizes: list[int], seed: int) -> None:
    """Write an image as a folder of OCI's layout."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def keep(data: bytes, kind: str) -> dict[str, object]:
        digest = sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        return {
            "mediaType": f"application/vnd.oci.image.{kind}",
            "digest": f"sha256:{digest}",
            "size": len(data),
        }

    layers = []
    for place, size in enumerate(sizes):
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            member = tarfile.TarInfo(f"file-{place}")
            member.size = size
            tar.addfile(member, io.BytesIO(make_bytes(size, seed * 10 + place)))
        layers.append(keep(archive.getvalue(), "layer.v1.tar"))
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": ["PATH=/usr/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [each["digest"] for each in layers]},
        "history": [{"created_by": "x" * 300}] * 8,
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": keep(json.dumps(config).encode(), "config.v1+json"),
        "layers": layers,
    }
    entry = keep(json.dumps(manifest).encode(), "manifest.v1+json")
    entry["annotations"] = {"org.opencontainers.image.ref.name": "latest"}
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
    (folder / "oci-layout").write_text(json.dumps({"imageLayoutVersion": "1.0.0"}))


@contextmanager
def serve_registry(recorder: Recorder, *, cache: bool = True) -> Iterator[str]:
    """Serve a registry on Swift, whose start is not in the record; yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = recorder.folder / "registry.yml"
    swift = recorder.swift
    config.write_text(
        _REGISTRY_CONFIG.format(
            auth=swift.auth_url,
            user=swift.user,
            key=swift.key,
            port=port,
            cache="cache: {blobdescriptor: inmemory}" if cache else "delete: {enabled: true}",
        )
    )
    with (recorder.folder / "registry.log").open("ab") as log:
        process = subprocess.Popen(["docker-registry", "serve", str(config)], stdout=log, stderr=log)
    try:
        ends = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/", timeout=2).close()
                break
            except OSError:
                if time.monotonic() > ends or process.poll() is not None:
                    sys.exit((recorder.folder / "registry.log").read_text())
                time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=20)


def record_registry(recorder: Recorder) -> None:
    """Push images to a registry, and pull them from one that was started again."""
    folder = recorder.folder
    for number, sizes in enumerate(LAYERS, 1):
        write_image(folder / f"image-{number}", sizes, number)
    what = "3 images, one after the other, each of 2 layers (150 kB to 48 MB) and a configuration, by skopeo"
    pushes = {
        f"oci:{folder}/image-{number}:latest": f"team/app-{number}:latest"
        for number in range(1, len(LAYERS) + 1)
    }
    with serve_registry(recorder) as address, recorder.phase("push", f"Push of {what}."):
        for source, image in pushes.items():
            recorder.run(
                "skopeo", *_INSECURE, "--dest-tls-verify=false", source, f"docker://{address}/{image}"
            )
    for name, cache in (("pull", True), ("pull without cache", False)):
        with (
            serve_registry(recorder, cache=cache) as address,
            recorder.phase(
                name,
                f"Pull of {what}. The registry was started before{'' if cache else ' and caches nothing'}.",
            ),
        ):
            for image in pushes.values():
                target = f"dir:{folder}/{name}-{image.replace('/', '-')}".replace(":latest", "")
                recorder.run(
                    "skopeo", *_INSECURE, "--src-tls-verify=false", f"docker://{address}/{image}", target
                )


def name_registry_object(path: str) -> str:
    """Return what an object of the registry's driver is."""
    if path.startswith("segments/") or "/segments/" in path:
        return "segment"
    if "/_uploads/" in path:
        return "state" if path.endswith(("startedat", "hashstates")) or "/hashstates/" in path else "upload"
    if path.endswith("/link"):
        return "link"
    return "blob" if path.endswith("/data") else "folder"


def record_restic(recorder: Recorder) -> None:
    """Back up a folder twice, and restore it."""
    source, where = recorder.folder / "data", {"RESTIC_PASSWORD": "x", "RESTIC_REPOSITORY": "swift:restic:/"}
    make_files(source, [*FILES, 30 * MB, 60 * MB, 20 * MB])
    with recorder.phase("init", "Making the repository."):
        recorder.run("restic", "init", **where)
    with recorder.phase("backup", "Backup of 67 files, 131 MB, into an empty repository."):
        recorder.run("restic", "backup", source, **where)
    make_files(source, FILES[:16], seed=1)
    with recorder.phase("next backup", "The next backup, after 16 files of 5.3 MB changed."):
        recorder.run("restic", "backup", source, **where)
    with recorder.phase("restore", "Restore of all 67 files, 131 MB, with an empty cache."):
        shutil.rmtree(recorder.folder / "cache", ignore_errors=True)
        recorder.run("restic", "restore", "latest", "--target", recorder.folder / "restored", **where)


def name_restic_object(path: str) -> str:
    """Return what a file of a repository is."""
    folder = path.strip("/").split("/")[0]
    return {"data": "pack", "snapshots": "snapshot", "locks": "lock", "keys": "key"}.get(folder, folder)


def record_rclone(recorder: Recorder) -> None:
    """Copy a folder, bring it up to date, and copy it back."""
    source, back = recorder.folder / "data", recorder.folder / "back"
    (recorder.folder / "rclone.conf").write_text("[swift]\ntype = swift\nenv_auth = false\n")
    swift = recorder.swift
    where = {
        "RCLONE_CONFIG": str(recorder.folder / "rclone.conf"),
        "RCLONE_SWIFT_USER": swift.user,
        "RCLONE_SWIFT_KEY": swift.key,
        "RCLONE_SWIFT_AUTH": swift.auth_url,
    }
    make_files(source, FILES)
    with recorder.phase("copy", "rclone copy of 64 files in 8 folders, 21 MB, into a new container."):
        recorder.run("rclone", "copy", source, "swift:rclone", **where)
    make_files(source, FILES[:8], seed=1)
    with recorder.phase("sync", "rclone sync of the same files, after 8 of them changed."):
        recorder.run("rclone", "sync", source, "swift:rclone", **where)
    with recorder.phase("down", "rclone copy of the container to an empty folder."):
        recorder.run("rclone", "copy", "swift:rclone", back, **where)


def record_swift(recorder: Recorder) -> None:
    """Upload a folder, large files in segments, and download it."""
    program = (sys.executable, "-c", "from swiftclient.shell import main; main()")  # what "swift" is
    source = recorder.folder / "data"
    make_files(source, FILES)
    with recorder.phase("upload", "swift upload of 64 files, 21 MB, into a new container."):
        recorder.run(*program, "upload", "--object-name", "data", "plain", source)
    large = recorder.folder / "large"
    make_files(large, [24 * MB, 9 * MB, 40 * MB, 17 * MB])
    with recorder.phase("upload -S", "swift upload -S 5000000 of 4 files of 9 to 40 MB."):
        recorder.run(*program, "upload", "-S", str(5 * MB), "--object-name", "large", "plain", large)
    with recorder.phase("download", "swift download of the whole container."):
        recorder.run(*program, "download", "plain", "--output-dir", recorder.folder / "down")


def name_swift_object(path: str) -> str:
    """Return what an object of ``swift upload`` is."""
    return "segment" if re.search(r"/slo/[\d.]+/\d+/\d+/\d{8}$", path) else "file"


def name_file(path: str) -> str:
    """Return what any object of a copied folder is."""
    return "file"


class Application(NamedTuple):
    """A client that is recorded."""

    programs: tuple[str, ...]
    package: str  # of Debian; empty: PyPI's python-swiftclient
    record: Callable[[Recorder], None]
    name_object: Callable[[str], str]


APPLICATIONS = {
    "registry": Application(
        ("docker-registry", "skopeo"), "docker-registry", record_registry, name_registry_object
    ),
    "restic": Application(("restic",), "restic", record_restic, name_restic_object),
    "rclone": Application(("rclone",), "rclone", record_rclone, name_file),
    "swift": Application((), "", record_swift, name_swift_object),
}


def find_version(application: Application) -> str:
    """Return the package of a client, with its version."""
    if not application.package:
        return f"python-swiftclient {version('python-swiftclient')} (PyPI)"
    command = ["dpkg-query", "-W", "-f", "${Package} ${Version} (Debian)", application.package]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def record(name: str, application: Application) -> dict[str, Any]:
    """Run a client and return its record."""
    if missing := [each for each in application.programs if shutil.which(each) is None]:
        sys.exit(f"{name} needs {' and '.join(missing)}: sudo apt-get install {' '.join(missing)}")
    # The registry's driver signs with SHA-1, as clients did for long.
    digests = {"use": "egg:swift#tempurl", "allowed_digests": "sha1 sha256 sha512"}
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalSwift(layout=Layout(access_logs=True), filters={"tempurl": digests}) as swift,
    ):
        recorder = Recorder(swift, Path(folder), application.name_object)
        application.record(recorder)
    return {
        "application": name,
        "version": find_version(application),
        "swift": f"swift {version('swift')} (PyPI), one proxy, one replica",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "phases": recorder.phases,
    }


def main() -> None:
    """Record those that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[*APPLICATIONS, []], help="default: all")
    parser.add_argument("--keep", action="store_true", help="write the records to --folder")
    parser.add_argument("--folder", type=Path, default=HERE)
    arguments = parser.parse_args()
    for name in arguments.names or APPLICATIONS:
        found = record(name, APPLICATIONS[name])
        print(f"\n{name}: {found['version']}, {found['date']}, {found['swift']}")
        for phase, row in found["phases"].items():
            print_phase(phase, row)
        if arguments.keep:
            (arguments.folder / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
