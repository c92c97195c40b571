"""Recipes that are checked by the tools that will read them, with a planted fault that these find."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from deploy_tools import DEPLOY, environment, need


def run(*command: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*map(str, command)],
        check=False,
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=110,
    )


def kubernetes(folder: Path) -> str:
    """Render the kustomization, with a key and the variables that its user puts there."""
    shutil.copytree(DEPLOY / "kubernetes", folder)
    (folder / "fleet.key").write_text("{}")
    (folder / "swift.env").write_text("ST_AUTH=http://swift/auth/v1.0\n")
    rendered = run("kubectl", "kustomize", folder)
    assert rendered.returncode == 0, rendered.stderr
    return rendered.stdout


def faults(rendered: str) -> list[str]:
    import kubernetes_validate  # type: ignore[import-not-found] # noqa: PLC0415 - may be missing

    found = []
    for document in yaml.safe_load_all(rendered):
        try:
            kubernetes_validate.validate(document, "1.32", strict=True)
        except kubernetes_validate.ValidationError as error:
            found.append(f"{document['kind']}: {error.message}")
    return found


def test_kubernetes(tmp_path: Path) -> None:
    need("Kubernetes' own packages", "kubectl")
    if importlib.util.find_spec("kubernetes_validate") is None:
        pytest.skip("pip install kubernetes-validate")
    rendered = kubernetes(tmp_path / "as-it-is")
    kinds = sorted(each["kind"] for each in yaml.safe_load_all(rendered))
    assert kinds == [
        *("ConfigMap", "Job", "Job", "NetworkPolicy", "NetworkPolicy", "PersistentVolumeClaim"),
        *("Secret", "Secret", "Service"),
    ]
    assert "image: registry.example.org/ssbench:1.0.0" in rendered
    assert faults(rendered) == []
    assert faults(rendered.replace("completionMode: Indexed", "completionMode: 7"))
    assert faults(rendered.replace("clusterIP: None", "clusterIp: None"))


def test_compose(tmp_path: Path) -> None:
    need("pip install check-jsonschema", "check-jsonschema")
    text = (DEPLOY / "compose" / "compose.yaml").read_text()
    compose = tmp_path / "compose.yaml"

    def checked(text: str) -> subprocess.CompletedProcess[str]:
        compose.write_text(text)
        command = Path(sys.executable).parent / "check-jsonschema"
        return run(command, "--builtin-schema", "vendor.compose-spec", compose)

    assert checked(text).returncode == 0, checked(text).stdout
    assert "cap_dropp" in checked(text.replace("cap_drop:", "cap_dropp:")).stdout
    assert checked(text.replace("tmpfs: [/tmp]", "tmpfs: {a: b}")).returncode != 0


def test_systemd(tmp_path: Path) -> None:
    need("systemd", "systemd-analyze")
    unit = tmp_path / "ssbench-worker@1.service"
    text = (DEPLOY / "systemd" / "ssbench-worker@.service").read_text()
    unit.write_text(text)
    verified = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit)
    assert verified.returncode == 0, verified.stderr
    assert "ssbench-worker" not in verified.stderr, verified.stderr
    unit.write_text(text.replace("TimeoutStopSec=20", "TimeoutStop=soon"))
    assert "TimeoutStop" in run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit).stderr


def test_ansible(tmp_path: Path) -> None:
    need("pip install ansible-core", "ansible-playbook")
    shutil.copytree(DEPLOY / "ansible", tmp_path / "ansible")
    check = [
        *(Path(sys.executable).parent / "ansible-playbook", "--syntax-check"),
        *("-i", "inventory.ini", "workers.yml"),
    ]
    passed = run(*check, cwd=tmp_path / "ansible")
    assert passed.returncode == 0, passed.stderr
    book = tmp_path / "ansible" / "workers.yml"
    book.write_text(book.read_text().replace("ansible.builtin.pip", "ansible.builtin.pipp"))
    assert run(*check, cwd=tmp_path / "ansible").returncode != 0
