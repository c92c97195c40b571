"""All of a release but the upload: ``tox -e release``.

From what is committed, it builds sdist and wheel twice, compares the bytes, checks them, installs the wheel
as users do (pip, pipx, uv), runs a benchmark with it, and leaves in dist/: both files, a list of what was
installed (CycloneDX), its licences, and SHA256SUMS. ``-- --rehearse`` does so for a version without a date.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import source_version

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
RUN = ["run-scenario", "-f", "smoke", "--local-swift", "--workers", "1"]


def main() -> None:
    """Make the release; the first fault ends it with a line that says what is wrong."""
    version = described("--rehearse" in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        built = [build(work / name) for name in ("first", "second")]
        if digests(built[0]) != digests(built[1]):
            raise SystemExit(f"two builds differ: {digests(built[0])} {digests(built[1])}")
        shutil.rmtree(DIST, ignore_errors=True)
        shutil.copytree(built[0], DIST)
        wheel = next(DIST.glob("*.whl"))
        run("twine", "check", "--strict", *map(str, sorted(DIST.iterdir())))
        try_installers(wheel, work)
        python = installed(wheel, work / "venv")
        run(str(python.with_name("ssbench-master")), *RUN, "--results-dir", str(work / "results"))
        run("cyclonedx-py", "environment", str(python), "-o", str(DIST / f"ssbench-{version}.cdx.json"))
        run("pip-licenses", f"--python={python}", "--format=csv", f"--output-file={DIST / 'licences.csv'}")
    sums = "".join(f"{digest}  {name}\n" for name, digest in digests(DIST).items())
    (DIST / "SHA256SUMS").write_text(sums)
    print(sums + f"ready: git push origin v{version}, then twine upload dist/*.whl dist/*.tar.gz")


def described(rehearse: bool) -> str:
    """Return the version, once changelog, tag and commit agree on it."""
    version = source_version.find_version(ROOT)
    own = re.match(r"[\d.]*\d", version)
    number = own[0] if own and ".dev" in version else version
    begins = re.search(r"^\d.*", (ROOT / "CHANGELOG.rst").read_text(), re.MULTILINE)
    heading = begins[0] if begins else ""
    faults = []
    if not re.fullmatch(rf"{re.escape(number)} \(\d{{4}}-\d\d-\d\d\)", heading):
        faults.append(f"CHANGELOG.rst begins with {heading!r}, expected '{number} (YYYY-MM-DD)'")
    if version != number:
        faults.append(f"this is {version}; a release has a tag: git tag -a v{number}")
    if output("git", "status", "--porcelain"):
        faults.append("there are changes that are not committed; only what is committed is released")
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults and not rehearse:
        raise SystemExit("not releasable; --rehearse goes on nevertheless")
    return version


def build(target: Path) -> Path:
    """Build what is committed, at the time of its commit, into ``target``."""
    source = target.with_name(f"{target.name}-source")
    source.mkdir()
    run("sh", "-c", f"git archive HEAD | tar x -C '{source}'")
    epoch = output("git", "log", "-1", "--format=%ct")
    run(sys.executable, "-m", "build", "-o", str(target), str(source), SOURCE_DATE_EPOCH=epoch)
    return target


def installed(wheel: Path, folder: Path) -> Path:
    """Install the wheel with a Swift to try it on, and return the Python that has them."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(str(python), "-m", "pip", "install", "-q", "-c", "constraints.txt", f"{wheel}[swift,html]")
    return python


def try_installers(wheel: Path, work: Path) -> None:
    """Install the wheel with pipx and uv into folders of their own, and ask each for the version."""
    home, tools = work / "home", work / "tools"
    run("pipx", "install", str(wheel), PIPX_HOME=str(home), PIPX_BIN_DIR=str(home / "bin"))
    run(str(home / "bin" / "ssbench-master"), "--version")
    run("uv", "tool", "install", "-q", str(wheel), UV_TOOL_DIR=str(tools), UV_TOOL_BIN_DIR=str(tools / "bin"))
    run(str(tools / "bin" / "ssbench-master"), "--version")


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file in ``folder``, by its name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def run(*command: str, **variables: str) -> None:
    """Run a command at the top of the repository; where it fails, so does the release."""
    print("$", *command, flush=True)
    if subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, check=False).returncode:
        raise SystemExit(f"failed: {' '.join(command)}")


def output(*command: str) -> str:
    """Return what a command prints."""
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
