"""The version of this package, and how packages are added to it where it is installed."""

import sys
from pathlib import Path

from ssbench.base.errors import UsageError

#: The number of the release that this is, or is on the way to; the tag decides (``.ci/source_version.py``).
NUMBER = "1.0.0"


def _read_version() -> str:
    """Return the version that was built or installed; that of a development state where nothing was."""
    try:
        return Path(__file__).with_name("version.txt").read_text("ascii").strip()
    except OSError:
        return f"{NUMBER}.dev0"


__version__ = _read_version()


def describe_install(packages: str, extra: str) -> str:
    """Return the command that adds packages, those of an extra, to where this program is installed."""
    receipt = Path(sys.prefix) / "uv-receipt.toml"
    if receipt.exists():
        return f"uv tool install '{_find_uv_source(receipt)}[{extra}]'"
    if (Path(sys.prefix) / "pipx_metadata.json").exists():
        return f"pipx inject ssbench {packages}"
    return f"pip install {packages} (or '.[{extra}]' in a clone of ssbench)"


def describe_zstd_lack() -> str:
    """Say what can be done about a file that nothing here can unpack."""
    return f"compressed by zstd: {describe_install('zstandard', 'zstd')}, or unpack it first (zstd -d)"


def check_swift_installed(needing: str, instead: str = "") -> None:
    """Raise UsageError where the packages of Swift are missing, which ``needing`` needs.

    ``instead`` says what else can be done.
    """
    import importlib.metadata  # noqa: PLC0415 - --help does without

    for package in ("swift", "eventlet"):
        try:
            importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            raise UsageError(
                f"{needing} needs the package {package!r}:"
                f" {describe_install('swift eventlet', 'swift')}{instead}"
            ) from None


def _find_uv_source(receipt: Path) -> str:
    """Return what uv installed as a tool: a folder or a wheel, or else the name of the package."""
    import tomllib  # noqa: PLC0415 - --help does without

    try:
        asked = tomllib.loads(receipt.read_text(encoding="utf-8"))["tool"]["requirements"]
        own = next(each for each in asked if each["name"] == "ssbench")
        return next((str(own[key]) for key in ("path", "directory", "editable") if key in own), "ssbench")
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        return "ssbench"
