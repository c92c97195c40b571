"""What commands say of options that they refuse."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ssbench.base.errors import ExitCode
from ssbench.cli.master import main


def refuse(words: Sequence[str], capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> str:
    """Call a command that must end with the exit code of a wrong usage; return what it says of that."""
    try:
        code: object = main([*words])
    except SystemExit as error:  # of argparse
        code = error.code
    assert code == ExitCode.USAGE
    return capsys.readouterr().err + caplog.text
