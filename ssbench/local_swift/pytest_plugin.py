"""A Swift for the tests of others.

Their conftest.py has ``pytest_plugins = ["ssbench.local_swift.pytest_plugin"]``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ssbench.local_swift import LocalSwift
from ssbench.store.stores import Credentials


@pytest.fixture(scope="session")
def ssbench_swift() -> Iterator[Credentials]:
    """Start a real Swift on loopback (needs the extra ``swift``); it ends with the test session."""
    with LocalSwift() as swift:
        yield Credentials(version="1.0", auth_url=swift.auth_url, user=swift.user, key=swift.key)
