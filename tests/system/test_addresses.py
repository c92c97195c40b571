"""A host with several addresses: which are used, and what is said of each and of one that refuses."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
from fault_server import FaultServer, Reply, Request
from processes import Fleet
from runs import TOKEN, Store, write_scenario

from ssbench.base.errors import ExitCode
from ssbench.results.block import join_blocks
from ssbench.results.reading import open_results
from ssbench.statistics.summary import summarize


class Signed(Store):
    """A part of a store at one address, which its transaction ids begin with."""

    def __init__(self, address: str, whole: Store) -> None:
        super().__init__()
        self.sizes = whole.sizes
        self._address = address

    def __call__(self, request: Request) -> Reply:
        reply = super().__call__(request)
        headers = (("X-Trans-Id", f"tx{self._address}-{len(self.counts)}"),)
        return Reply(reply.status, reply.body, headers, delay=0.002)


def test_addresses_are_used_in_turn_and_one_that_refuses_is_left_out(fleet: Fleet, tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path, operation_count=300)
    whole, page, made = Store(), tmp_path / "page.html", tmp_path / "report.json"
    with (
        FaultServer(host="127.0.0.1", rule=Signed("127.0.0.1", whole)) as first,
        FaultServer(host="127.0.0.2", port=first.port, rule=Signed("127.0.0.2", whole)),
    ):
        url = first.url.replace("127.0.0.1", "localhost")
        # Nobody listens at the third one.
        resolve = "localhost=127.0.0.1,127.0.0.2,127.0.0.3"
        options = ("-S", url, "-T", TOKEN, "--resolve", resolve, "--report", "summary")
        run = fleet.run(scenario, "--workers", 1, "--html", page, "--json", made, *options)
        assert run.end() == ExitCode.OK, run.err
    block = join_blocks(list(open_results(fleet.stats).blocks()))
    numbers = summarize(open_results(fleet.stats))
    assert sorted(numbers.address_names) == ["127.0.0.1", "127.0.0.2"]
    # What each result says is what the server at that address says.
    told = [str(each).removeprefix("tx").partition("-")[0] for each in block.trans_id]
    assert told == [numbers.address_names[number] for number in block.address.tolist()]
    assert all(np.bincount(block.address) > 30)
    assert {numbers.address_names[each.number]: each.figures.count for each in numbers.addresses} == Counter(
        told
    )
    assert not numbers.total.failed
    said = [each for each in numbers.warnings if "connections to 127.0.0.3 failed" in each]
    assert len(said) == 1
    report = json.loads(made.read_text())
    assert [each["name"] for each in report["addresses"]] == [*numbers.address_names]
    assert report["run"]["options"]["resolve"] == resolve
    assert "2 addresses: " in run.out
    assert "127.0.0.2" in page.read_text()


def test_one_address_is_nothing_to_tell(fleet: Fleet, tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path, operation_count=20)
    with FaultServer(rule=Store()) as server:
        run = fleet.run(scenario, "--workers", 1, "-S", server.url, "-T", TOKEN)
        assert run.end() == ExitCode.OK, run.err
    block = join_blocks(list(open_results(fleet.stats).blocks()))
    assert "address" not in block.given
    assert "account" not in block.given
    assert summarize(open_results(fleet.stats)).addresses == ()
