"""Options of ssbench-worker."""

from __future__ import annotations

import pytest
from golden_words import GoldenWords

from ssbench.cli import worker


def test_a_host_of_the_worker_with_a_port_is_refused(capsys, golden_words: GoldenWords):
    with pytest.raises(SystemExit) as end:
        worker.main(["--zmq-host", "master-host:13579", "1"])
    assert end.value.code == 2
    golden_words(capsys.readouterr().err)


def test_the_help_of_the_worker_begins_with_an_example(capsys):
    with pytest.raises(SystemExit):
        worker.main(["--help"])
    assert capsys.readouterr().out.startswith("example: ssbench-worker")
