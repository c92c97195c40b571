"""What pyproject.toml cannot say: an sdist whose bytes depend only on the files in it; all else is there."""

from __future__ import annotations

import gzip
import os
import tarfile
from pathlib import Path

from setuptools import setup
from setuptools.command.sdist import sdist


class ReproducibleSdist(sdist):
    """An sdist with the time of ``SOURCE_DATE_EPOCH`` (seconds since 1970) and no user, where that is set.

    setuptools heeds that variable in wheels only; see https://reproducible-builds.org/specs/source-date-epoch/.
    """

    def make_archive(self, base_name, format, root_dir=None, base_dir=None, owner=None, group=None):  # noqa: D102
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        if epoch is None or format != "gztar":
            return super().make_archive(base_name, format, root_dir, base_dir, owner, group)
        target = Path(f"{base_name}.tar.gz")
        target.parent.mkdir(parents=True, exist_ok=True)

        def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.mtime = int(epoch)
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            return member

        files = sorted(path for path in Path(base_dir).rglob("*") if path.is_file())
        with (
            target.open("wb") as raw,
            gzip.GzipFile("", "wb", mtime=int(epoch), fileobj=raw) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for path in files:
                archive.add(path, filter=plain)
        return str(target)


setup(cmdclass={"sdist": ReproducibleSdist})
