"""The image of deploy/container, built from Debian's packages without a registry, and a run in it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from deploy_tools import DEPLOY, environment, need

#: Debian's and Python's packages come over the network.
pytestmark = pytest.mark.timeout(1800)

PORTS = ("--zmq-work-port", "23579", "--zmq-results-port", "23580")


class Images:
    """A storage of images and containers of its own; each container is one of the image under test."""

    def __init__(self, folder: Path) -> None:
        storage = folder / "storage.conf"
        storage.write_text(
            f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'
        )
        self._variables = environment(
            CONTAINERS_STORAGE_CONF=str(storage), STORAGE_DRIVER="vfs", BUILDAH_ISOLATION="chroot"
        )

    def run(self, *command: object, **variables: str) -> str:
        """Return what a command prints."""
        done = subprocess.run(
            [*map(str, command)],
            env=self._variables | variables,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}: {done.stderr[-4000:]}"
        return done.stdout

    def inside(self, *command: str) -> str:
        """Return what a command in the container ``master`` prints."""
        return self.run("buildah", "run", "master", "--", *command)

    @contextmanager
    def worker(self) -> Iterator[subprocess.Popen[str]]:
        """A worker in the container ``worker``, until it has served a run."""
        command = ["ssbench-worker", "--zmq-host", "127.0.0.1", *PORTS, "--runs", "1"]
        process = subprocess.Popen(
            ["buildah", "run", "worker", "--", *command],
            env=self._variables,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


@pytest.mark.privileged("debootstrap needs root")
def test_a_run_in_an_image_without_a_registry_and_not_as_root(tmp_path: Path) -> None:
    need("apt-get install buildah debootstrap", "buildah", "debootstrap")
    images = Images(tmp_path)
    images.run(DEPLOY / "container" / "debian-base", "python-debian")
    certificates = ("--volume", "/etc/ssl/certs:/etc/ssl/certs:ro")
    build = (DEPLOY / "container" / "build-with-buildah", "ssbench", "--network", "host", *certificates)
    images.run(*build, BASE="localhost/python-debian")
    for name in ("master", "worker"):
        images.run("buildah", "from", "--name", name, "localhost/ssbench")
    assert images.inside("id", "-u") == "65532\n"
    with images.worker() as worker:
        run = ["ssbench-master", "run-scenario", "-f", "very_small", "--noop", "-o", "500", *PORTS]
        report = json.loads(images.inside(*run, "--expect-workers", "1", "--json", "-"))
        assert report["operations"][0]["figures"]["count"] == 500
        worker.communicate(timeout=60)
        assert worker.returncode == 0
    (image,) = json.loads(images.run("buildah", "images", "--json", "localhost/ssbench"))
    assert float(image["size"].removesuffix(" MB")) < 300
