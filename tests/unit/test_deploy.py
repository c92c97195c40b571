"""The recipes of deploy/: they name options and files that exist. ``tox -e deploy`` carries them out."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from ssbench.cli import master, worker_options

DEPLOY = Path(__file__).parents[2] / "deploy"
FILES = sorted(
    path
    for path in DEPLOY.rglob("*")
    if path.is_file() and path.name != "scenario.yaml" and path.suffix not in {".pyc", ".patch"}
)

#: Options of other programs.
OTHERS = {
    "--no-deps", "--no-cache-dir", "--build-arg", "--layers", "--rm", "--from", "--now",
    "--nodes", "--ntasks", "--ntasks-per-node", "--nodelist", "--overlap", "--kill-on-bad-exit", "--wait",
    "--job-name", "--cpus-per-task", "--output", "--requeue", "--no-requeue", "--array", "--wrap",
    "--help", "--syntax-check", "--plugin-paths",
    "--variant", "--include", "--network", "--use-aliases",
}  # fmt: skip


def ours() -> set[str]:
    made = [master.find_sub_parsers(master.parser([*master.COMMANDS]))[name] for name in master.COMMANDS]
    return {each for parser in [*made, worker_options.parser()] for each in parser._option_string_actions}


def test_options_exist() -> None:
    known = ours() | OTHERS
    for path in FILES:
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", path.read_text()):
            assert option in known, f"{path}: {option}"


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix in {".yaml", ".yml"}], ids=str)
def test_yaml_is_read(path: Path) -> None:
    assert [*yaml.safe_load_all(path.read_text())]


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.read_text().startswith("#!")], ids=lambda path: path.name
)
def test_scripts_are_of_their_shell(path: Path) -> None:
    shell = path.read_text().partition("\n")[0].removeprefix("#!")
    subprocess.run([shell, "-n", path], check=True)
    if path.suffix != ".sbatch":
        assert path.stat().st_mode & 0o111


def test_the_readme_names_all_folders() -> None:
    text = (DEPLOY / "README.rst").read_text()
    assert text.startswith("Which files do I need?\n")
    for folder in DEPLOY.iterdir():
        if folder.is_dir():
            assert f"<{folder.name}/" in text
    for name in re.findall(r"<([a-z]+/[^>]*)>", text):
        assert (DEPLOY / name).exists()


def test_workers_and_secrets_fit_together() -> None:
    """Workers as many as the master expects, and no password where workers run."""
    (workers,) = yaml.safe_load_all((DEPLOY / "kubernetes" / "workers.yaml").read_text())
    _, job = yaml.safe_load_all((DEPLOY / "kubernetes" / "master.yaml").read_text())
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert f"--expect-workers={workers['spec']['completions']}@300" in container["args"]
    assert "ssbench-swift" in str(job)
    assert "ssbench-swift" not in str(workers)
    service = yaml.safe_load((DEPLOY / "kubernetes" / "service.yaml").read_text())
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    compose = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())
    assert "environment" not in compose["services"]["worker"]
