"""The sub-command conformance, against a real Swift: it carries out everything, and nothing is left."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import swiftclient
from json_records import valid

from ssbench.local_swift import LocalSwift

PAGE = Path(__file__).parents[2] / "doc" / "stores.rst"


def test_swift_does_what_the_documentation_says(swift: LocalSwift, account: swiftclient.Connection) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ssbench.cli.master", "conformance", "--json", "-"],
        env={"ST_AUTH": swift.auth_url, "ST_USER": swift.user, "ST_KEY": swift.key},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    report = valid(done.stdout, "conformance")
    rows = re.findall(r"\* - ``(.+)``\n     - .*\n     - (\w+)", PAGE.read_text())
    assert [(each["name"], each["verdict"]) for each in report["checks"]] == rows
    _, containers = account.get_account(prefix="ssbench-conformance")
    assert containers == []
    assert not {name for name, key in account.head_account().items() if "temp-url-key" in name and key}
