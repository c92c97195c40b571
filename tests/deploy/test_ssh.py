"""deploy/ssh/start-workers over a real sshd on loopback, which ends with the test."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from deploy_tools import DEPLOY, environment, need
from processes import Fleet, free_ports
from runs import outcome, write_scenario

from ssbench.base.errors import ExitCode

#: Two names of this host.
HOSTS = "127.0.0.1,127.0.0.2"


@pytest.fixture
def ssh_config(tmp_path: Path) -> Iterator[Path]:
    """Start an sshd that takes one key; yield the file that lets ssh find it."""
    need("apt-get install openssh-server openssh-client", "sshd", "ssh", "ssh-keygen")
    (port,) = free_ports(1)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    # What sshd changes into before it knows who comes.
    Path("/run/sshd").mkdir(exist_ok=True)
    path = environment()["PATH"]
    (tmp_path / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nListenAddress 127.0.0.2\nHostKey {tmp_path}/host\n"
        f"AuthorizedKeysFile {tmp_path}/user.pub\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
        f"PidFile none\nMaxStartups 100\nSetEnv PATH={path}\n"
    )
    (tmp_path / "ssh_config").write_text(
        f"Host *\nPort {port}\nIdentityFile {tmp_path}/user\nIdentitiesOnly yes\nBatchMode yes\n"
        f"LogLevel ERROR\nStrictHostKeyChecking no\nUserKnownHostsFile {tmp_path}/known\n"
    )
    log = tmp_path / "sshd.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            ["/usr/sbin/sshd", "-D", "-e", "-f", tmp_path / "sshd_config"], stderr=output, process_group=0
        )
    try:
        end = time.monotonic() + 60
        while "listening" not in log.read_text():
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        yield tmp_path / "ssh_config"
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("program", ["clush", "pdsh", "ssh"])
def test_workers_over_ssh(program: str, ssh_config: Path, tmp_path: Path) -> None:
    need("apt-get install pdsh clustershell", program)
    with ExitStack() as stack:
        fleet = stack.enter_context(Fleet(tmp_path))
        assert fleet.master("keygen", tmp_path / "fleet.key").end() == ExitCode.OK
        ports = f"--zmq-work-port {fleet.work_port} --zmq-results-port {fleet.results_port}"
        start = subprocess.Popen(
            [DEPLOY / "ssh" / "start-workers", "127.0.0.1", tmp_path / "fleet.key", HOSTS, "2"],
            env=environment(WITH=program, SSH_CONFIG=str(ssh_config), OPTIONS=ports),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
        )
        stack.callback(_end, start)
        run = fleet.run(
            write_scenario(tmp_path, user_count=16),
            *("--noop", "--expect-workers", 4, "--zmq-key", tmp_path / "fleet.key", "-r", 1),
        )
        assert run.end(150) == ExitCode.OK, run.err
        # Workers end with their master, and so does what started them.
        said, _ = start.communicate(timeout=100)
        assert start.returncode == 0, said
        assert said.count("joined") == 0
    summary = outcome(fleet.stats).summary
    assert summary is not None
    assert len(summary.workers) == 4


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
