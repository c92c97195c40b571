"""deploy/slurm/ssbench.sbatch on a real Slurm of one host: munged, slurmctld and slurmd, on loopback."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from deploy_tools import DEPLOY, environment, need
from processes import Fleet, free_ports
from runs import alive, outcome, write_scenario

from ssbench.base.errors import ExitCode

_PACKAGES = "apt-get install slurmctld slurmd slurm-client munge"


def wait_until(condition: Callable[[], object], what: Callable[[], str], patience: float = 100.0) -> None:
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, what()
        time.sleep(0.2)


class Slurm:
    """A Slurm with one node. A context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stack = ExitStack()
        self.environment = environment(SLURM_CONF=str(folder / "slurm.conf"))

    def _daemon(self, *command: object) -> None:
        name = Path(str(command[0])).name
        with (self.folder / f"{name}.out").open("wb") as output:
            process = subprocess.Popen(
                [*map(str, command)],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                process_group=0,
            )

        def end() -> None:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

        self._stack.callback(end)

    def __enter__(self) -> Slurm:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def _start(self) -> None:
        folder, name = self.folder, socket.gethostname()
        controller, node, *_ = free_ports(3)
        for each in ("state", "spool"):
            (folder / each).mkdir()
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        (folder / "slurm.conf").write_text(
            f"ClusterName=test\nSlurmctldHost={name}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\n"
            f"AuthType=auth/munge\nCredType=cred/munge\nAuthInfo=socket={folder}/munge.socket\n"
            f"SlurmctldPort={controller}\nSlurmdPort={node}\nStateSaveLocation={folder}/state\n"
            f"SlurmdSpoolDir={folder}/spool\nSlurmctldPidFile={folder}/slurmctld.pid\n"
            f"SlurmdPidFile={folder}/slurmd.pid\nSlurmctldLogFile={folder}/slurmctld.log\n"
            f"SlurmdLogFile={folder}/slurmd.log\nProctrackType=proctrack/pgid\nTaskPlugin=task/none\n"
            "JobAcctGatherType=jobacct_gather/none\nSelectType=select/cons_tres\n"
            "SelectTypeParameters=CR_Core\nReturnToService=2\n"
            "SlurmdParameters=config_overrides\nSwitchType=switch/none\nMpiDefault=none\nKillWait=60\n"
            f"NodeName={name} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN\n"
            f"PartitionName=all Nodes={name} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4\n"
        )
        (folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
        self._daemon(
            *("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket"),
            *(f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log"),
            *(f"--seed-file={folder}/munged.seed", "--origin=127.0.0.1"),
        )
        wait_until((folder / "munge.socket").exists, self.logs)
        self._daemon("slurmctld", "-D", "-f", folder / "slurm.conf")
        self._daemon("slurmd", "-D", "-f", folder / "slurm.conf")
        wait_until(lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T"), self.logs)

    def ask(self, *command: object) -> str:
        found = subprocess.run(
            [*map(str, command)],
            check=False,
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return found.stdout + found.stderr

    def state(self, job: str) -> str:
        return self.ask("squeue", "-h", "-t", "all", "-j", job, "-o", "%T").strip()

    def logs(self) -> str:
        """What the daemons and the jobs wrote last."""
        return "\n".join(
            f"{path.name}: {path.read_text(errors='replace')[-2000:]}"
            for pattern in ("*.out", "*.log")
            for path in self.folder.glob(pattern)
        )

    def __exit__(self, *_: object) -> None:
        self._stack.close()


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Slurm]:
    need(_PACKAGES, "slurmctld", "slurmd", "sbatch", "munged")
    folder = tmp_path / "slurm"
    folder.mkdir(mode=0o755)
    with Slurm(folder) as running:
        yield running


@pytest.mark.privileged("slurmd has to be root")
@pytest.mark.timeout(600)
def test_a_run_is_a_job(slurm: Slurm, tmp_path: Path) -> None:
    work, results = free_ports(2)
    scenario = write_scenario(tmp_path, user_count=16)
    ports = ["--zmq-work-port", work, "--zmq-results-port", results]
    script = tmp_path / "ssbench.sbatch"
    # Ports of its own, so that other tests have theirs; all else is the recipe.
    text = (DEPLOY / "slurm" / "ssbench.sbatch").read_text()
    script.write_text(text.replace("--zmq-key", " ".join(map(str, [*ports, "--zmq-key"]))))
    stats = tmp_path / "run.stat.gz"
    options = ["-f", scenario, "--noop", "-s", stats]

    said = slurm.ask("sbatch", "--parsable", "--ntasks", 3, script, *options, "-r", 1)
    job = said.strip()
    assert job.isdecimal(), said + slurm.logs()
    wait_until(lambda: slurm.state(job) in {"COMPLETED", "FAILED", ""}, slurm.logs, 200)
    log = (slurm.folder / f"ssbench-{job}.log").read_text()
    assert slurm.state(job) == "COMPLETED", log + slurm.logs()
    summary = outcome(stats).summary
    assert summary is not None
    assert len(summary.workers) == 3
    assert {worker.label for worker in summary.workers} == {f"task {number}" for number in range(3)}
    assert not list(slurm.folder.glob(".ssbench-*.key"))

    # scancel ends the srun that passes the output on, but lets the run end and its stat file be whole.
    said = slurm.ask("sbatch", "--parsable", "--ntasks", 2, script, *options, "--force", "-r", 600)
    job = said.strip()
    log_file = slurm.folder / f"ssbench-{job}.log"
    wait_until(
        lambda: log_file.exists() and "Starting the benchmark" in log_file.read_text(), slurm.logs, 200
    )
    slurm.ask("scancel", job)
    wait_until(lambda: slurm.state(job) in {"CANCELLED", "COMPLETED", "FAILED", ""}, slurm.logs, 200)

    def interrupted() -> bool:
        summary = outcome(stats).summary
        return summary is not None and summary.interrupted

    wait_until(interrupted, slurm.logs, 100)


@pytest.mark.privileged("slurmd has to be root")
@pytest.mark.timeout(600)
def test_workers_as_jobs_are_put_back_and_killed(slurm: Slurm, tmp_path: Path) -> None:
    """Of workers that are jobs, one is put back into the queue and one is killed during a run."""
    with Fleet(tmp_path) as fleet:
        command = (
            f"exec ssbench-worker --zmq-host 127.0.0.1 --zmq-work-port {fleet.work_port}"
            f" --zmq-results-port {fleet.results_port} --runs 1 --idle-exit 10m"
        )
        jobs = [
            slurm.ask("sbatch", "--parsable", "--requeue", "--ntasks", 1, "--wrap", command).strip()
            for _ in range(3)
        ]
        assert all(job.isdecimal() for job in jobs), str(jobs) + slurm.logs()
        run = fleet.run(
            write_scenario(tmp_path, user_count=12),
            *("--noop", "--expect-workers", 3, "-r", 600, "--rate", 100),
        )
        run.wait_for("Starting the benchmark", 200)

        slurm.ask("scontrol", "requeue", jobs[0])
        run.wait_for("has ended", 100)
        # Slurm lets such a job wait for two minutes, unless it is told not to.
        wait_until(lambda: slurm.state(jobs[0]) == "PENDING", slurm.logs)
        slurm.ask("scontrol", "update", f"JobId={jobs[0]}", "StartTime=now")
        run.wait_for(r"(?s)has ended.*joined \(", 200)

        joined = [int(pid) for pid in re.findall(r"\(pid (\d+)\) joined", run.err)]
        os.kill(next(pid for pid in joined if alive(pid)), signal.SIGKILL)
        run.wait_for("not been heard of", 100)
        run.signal(signal.SIGINT)
        assert run.end(100) == ExitCode.INTERRUPTED, run.err
        wait_until(lambda: not {"RUNNING", "COMPLETING"} & set(map(slurm.state, jobs)), slurm.logs)
    found = outcome(fleet.stats)
    assert found.summary is not None
    assert len(found.summary.workers) == 4
