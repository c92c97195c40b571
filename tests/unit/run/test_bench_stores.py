"""The stores of a bench: with credentials of their own, or the account over an API; all are tried first."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from golden_words import GoldenWords

from ssbench.base.errors import AuthenticationError, UsageError
from ssbench.fleet.addresses import BindAddress
from ssbench.local_swift import Layout
from ssbench.run import bench
from ssbench.run.bench import Bench
from ssbench.run.bench_options import BenchOptions, NamedStore, RunOptions, RunSide
from ssbench.run.trial_swift import TrialSwift
from ssbench.scenario.scenario_reading import read_scenario
from ssbench.store.credentials import Credentials

SCENARIO = read_scenario("very_small")
OWN = Credentials(version="1.0", auth_url="http://h/auth", user="u", key="k")
OTHER = Credentials(version="1.0", auth_url="http://other/auth", user="u", key="k")
STORES = (
    NamedStore(name="swift", api="swift"),
    NamedStore(name="s3", api="s3"),
    NamedStore(name="other", credentials=OTHER),
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Credentials]:
    """What was authenticated with."""
    made: list[Credentials] = []

    class Tokens:
        sessions: Sequence[Any] = ()

        def __init__(self, credentials: Sequence[Credentials], names: Sequence[str] = ()) -> None:
            made.extend(credentials)
            if credentials[0].user == "refused":
                raise AuthenticationError(f"{credentials[0].name}: refused")

    monkeypatch.setattr(bench, "TokenSource", Tokens)
    return made


def options(*stores: NamedStore) -> BenchOptions:
    return BenchOptions(address=BindAddress("127.0.0.1", 0, 0), credentials=OWN, stores=stores)


def test_every_store_is_tried_once_before_the_first_run(asked: list[Credentials]) -> None:
    with Bench(options(*STORES)) as opened:
        for name in ("other", "swift", "s3", "other"):
            opened.check(SCENARIO, RunOptions(store=name))
        assert [(each.auth_url, each.storage_urls, each.name) for each in asked] == [
            ("http://h/auth", (), "store swift"),
            ("http://h/auth", ("s3+",), "store s3"),
            ("http://other/auth", (), ""),
        ]
        opened.check(SCENARIO, RunOptions())
        assert asked[3:] == [OWN]


class StartedSwift(AbstractContextManager["StartedSwift"]):
    """In place of a local Swift, whose servers take seconds to start."""

    def __init__(self, **options: Any) -> None:
        self.version = options["release"]
        self.log_directory = Path(self.version)

    def __exit__(self, *_: object) -> None:
        pass

    def restart_ended(self) -> None:
        pass

    def credentials(self, *, all_accounts: bool) -> Credentials:
        return replace(OWN, auth_url=f"http://{self.version}/")


@pytest.fixture
def titles() -> list[str]:
    """What messages call the Swifts that were made."""
    return []


@pytest.fixture
def together() -> list[int]:
    """How many were started at once."""
    return []


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, together: list[int], titles: list[str]) -> list[str]:
    """The releases that were started."""
    found: list[str] = []

    def start(**options: Any) -> StartedSwift:
        found.append(options["release"])
        titles.append(options["title"])
        return StartedSwift(**options)

    local_swift = SimpleNamespace(
        LocalSwift=start, Layout=Layout, start_swifts=lambda swifts: together.append(len(swifts))
    )
    monkeypatch.setattr(bench, "import_local_swift", lambda: local_swift)
    return found


def test_each_side_has_a_swift_of_its_own(
    asked: list[Credentials], started: list[str], together: list[int], titles: list[str]
) -> None:
    equal = TrialSwift(release="2.37.4")
    sides = (RunSide("a", swift=equal), RunSide("b", swift=equal))
    with Bench(BenchOptions(address=BindAddress("127.0.0.1", 0, 0), local_swift=True)) as opened:
        for _ in range(2):
            opened.check(SCENARIO, RunOptions(sides=sides))
        assert opened.list_access_logs(RunOptions(sides=sides)) == []
    assert started == ["2.37.4", "2.37.4"]
    assert together == [2]
    assert [each.name for each in asked] == ["side a", "side b"]
    assert titles == ["the local Swift 2.37.4 for side a", "the local Swift 2.37.4 for side b"]


def test_the_logs_of_both_are_known(asked: list[Credentials], started: list[str]) -> None:
    sides = tuple(
        RunSide(name, swift=TrialSwift(release=name, access_logs=True)) for name in ("2.38.3", "2.37.4")
    )
    with Bench(BenchOptions(address=BindAddress("127.0.0.1", 0, 0), local_swift=True)) as opened:
        opened.check(SCENARIO, RunOptions(sides=sides))
        assert opened.list_access_logs(RunOptions(sides=sides)) == [Path("2.38.3"), Path("2.37.4")]


def test_runs_that_are_compared_start_theirs_together(
    asked: list[Credentials], started: list[str], together: list[int], titles: list[str]
) -> None:
    runs = [(SCENARIO, RunOptions(swift=TrialSwift(release=name))) for name in ("2.37.4", "2.38.3", "2.37.4")]
    with Bench(BenchOptions(address=BindAddress("127.0.0.1", 0, 0), local_swift=True)) as opened:
        opened.start_swifts([*runs, (SCENARIO, RunOptions(noop=True, swift=TrialSwift(release="2.36.0")))])
        for each in runs:
            opened.check(*each)
    assert started == ["2.37.4", "2.38.3"]
    assert titles == ["the local Swift 2.37.4", "the local Swift 2.38.3"]
    assert together == [2]
    assert [each.auth_url for each in asked] == ["http://2.37.4/", "http://2.38.3/"]


def test_each_store_has_a_swift_of_its_own(asked: list[Credentials], started: list[str]) -> None:
    stores = tuple(NamedStore(name=name, swift=TrialSwift(release=name)) for name in ("2.37.4", "2.38.3"))
    shared = BenchOptions(address=BindAddress("127.0.0.1", 0, 0), local_swift=True, stores=stores)
    with Bench(shared) as opened:
        for name in ("2.38.3", "2.37.4"):
            opened.check(SCENARIO, RunOptions(store=name))
    assert started == ["2.37.4", "2.38.3"]
    assert [each.auth_url for each in asked] == ["http://2.37.4/", "http://2.38.3/"]


def test_stores_that_name_their_api_share_a_swift(asked: list[Credentials], started: list[str]) -> None:
    swift = TrialSwift(release="2.37.4")
    stores = tuple(NamedStore(name=f"over-{api}", api=api, swift=swift) for api in ("swift", "s3"))
    shared = BenchOptions(address=BindAddress("127.0.0.1", 0, 0), local_swift=True, stores=stores)
    with Bench(shared) as opened:
        for store in stores:
            opened.check(SCENARIO, RunOptions(store=store.name))
    assert started == ["2.37.4"]
    assert [each.storage_urls for each in asked] == [(), ("s3+",)]


def test_one_that_refuses_is_known_before_the_others_run(asked: list[Credentials]) -> None:
    refused = NamedStore(name="bad", credentials=Credentials(version="1.0", user="refused", name="store bad"))
    with Bench(options(STORES[0], refused)) as opened, pytest.raises(AuthenticationError, match="store bad"):
        opened.check(SCENARIO, RunOptions(store="swift"))


def test_a_no_op_run_asks_no_store(asked: list[Credentials]) -> None:
    with Bench(options(*STORES)) as opened:
        opened.check(SCENARIO, RunOptions(store="s3", noop=True))
    assert not asked


def test_what_cannot_be_is_said(golden_words: GoldenWords) -> None:
    with Bench(options(*STORES)) as opened, pytest.raises(UsageError, match="of swift, s3, other, not 'x'"):
        opened.check(SCENARIO, RunOptions(store="x"))
    with golden_words.raises(UsageError):
        RunOptions(store="s3", sides=(RunSide("a", policy="x"), RunSide("b", policy="y")))
