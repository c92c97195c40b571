"""A real Keystone on loopback, in a process of its own: ``with Keystone(folder) as keystone``.

Needs the packages of the dependency group ``keystone``; the process runs ``keystone_process.py``.
"""

from __future__ import annotations

import select
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("keystone_process.py")

CONFIGURATION = """
[DEFAULT]
log_file = {folder}/keystone.log
[database]
connection = sqlite:///{folder}/keystone.sqlite
[fernet_tokens]
key_repository = {folder}/keys
[fernet_receipts]
key_repository = {folder}/keys
[credential]
key_repository = {folder}/credential-keys
[cache]
enabled = true
backend = oslo_cache.dict
[identity]
password_hash_rounds = 4
[token]
expiration = {expiration}
"""


PASSWORD = "admin-password"


class Keystone:
    """Tokens live for ``expiration`` seconds. ``url`` has no version at its end.

    There are the user ``admin``, the project ``admin`` and the domain ``default``.
    """

    password = PASSWORD

    def __init__(self, folder: Path, expiration: int) -> None:
        self.folder = folder
        self.expiration = expiration
        self.url = ""

    def __enter__(self) -> Keystone:
        (self.folder / "keystone.conf").write_text(
            CONFIGURATION.format(folder=self.folder, expiration=self.expiration)
        )
        with (self.folder / "stderr").open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "ignore", str(PROGRAM), str(self.folder), PASSWORD],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        assert self.process.stdout is not None
        if select.select([self.process.stdout], [], [], 60)[0]:
            self.url = self.process.stdout.readline().decode().strip()
        if not self.url:
            self.__exit__()
            raise RuntimeError((self.folder / "stderr").read_text())
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
