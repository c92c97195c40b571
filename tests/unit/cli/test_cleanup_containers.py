"""``cleanup-containers``, against an account that is names only."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from asked_commands import ask
from fault_server import FaultServer, Reply, Request
from golden_words import GoldenWords
from stand_in_account import StandInAccount

from ssbench.base.errors import ExitCode, UsageError
from ssbench.cli import cleanup_containers
from ssbench.run import account_cleaner, terminal
from ssbench.run.run_marks import RunMark
from ssbench.store.swift import containers


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(account_cleaner, "_DELETION_PAUSES", (0.01, 0.01))
    monkeypatch.setattr(account_cleaner, "_TICK_SECONDS", 0.01)
    monkeypatch.setattr(containers, "_RETRY_PAUSES", (0.01,))
    for name in [*map(str, os.environ)]:
        if name.startswith(("ST_", "OS_", "SWIFT_")):
            monkeypatch.delenv(name)


@pytest.fixture
def account() -> StandInAccount:
    made = StandInAccount()
    made.hold({"ssbench_000000": ["a", "b"], "ssbench_000001_gold": ["c"], "mine": ["d"]})
    return made


@pytest.fixture
def server(account: StandInAccount) -> Iterator[FaultServer]:
    with FaultServer(rule=account) as running:
        yield running


def clean(*options: object) -> ExitCode:
    return cleanup_containers.run(ask("cleanup-containers", *map(str, options)))


def at(server: FaultServer) -> tuple[str, ...]:
    return ("-S", server.url, "-T", "token")


def test_what_ssbench_named_goes_and_is_counted(
    server: FaultServer, account: StandInAccount, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    found = tmp_path / "found.json"
    assert clean(*at(server), "--json", found) == ExitCode.OK
    assert account.containers == {"mine": ["d"]}
    assert any(line.startswith("Deleted 2 containers and 3 objects in ") for line in caplog.messages)
    report = json.loads(found.read_text())
    assert (report["matched"], report["in_use"], report["exit_code"]) == (2, {}, 0)
    deleted = report["deleted"]
    assert (deleted["containers"], deleted["objects"], deleted["failed"]) == (2, 3, 0)


def test_a_policy_chooses_among_them(server: FaultServer, account: StandInAccount) -> None:
    assert clean(*at(server), "--policy", "gold") == ExitCode.OK
    assert {*account.containers} == {"mine", "ssbench_000000"}


def test_where_there_is_none_their_names_are_said(
    server: FaultServer, account: StandInAccount, caplog: pytest.LogCaptureFixture
) -> None:
    assert clean(*at(server), "-b", "other", "-p", "gold") == ExitCode.OK
    assert caplog.messages == ["No matching containers (other_000000_gold and so on)"]
    assert len(account.containers) == 3


def test_containers_of_runs_over_both_apis_are_pointed_to(
    server: FaultServer, account: StandInAccount, caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    names = ("ssbench-000000", "ssbench-kv-000000", "ssbench-kv-000001-gold_segments", "ssbench-big-000000")
    others = {"mine", "ssbench-notes", "ssbench-x_000000", "ssbench2-000000", "ssbenchmark-000000"}
    account.hold({name: ["a"] for name in (*names, *others)})
    assert clean(*at(server)) == ExitCode.OK
    golden_words(caplog.messages)
    assert clean(*at(server), "--container-base", "ssbench-") == ExitCode.OK
    assert {*account.containers} == {*names[1:], *others}
    for base in ("ssbench-big-", "ssbench-kv-"):
        assert clean(*at(server), "--container-base", base) == ExitCode.OK
    assert {*account.containers} == others


def test_they_are_pointed_to_after_others_were_deleted(
    server: FaultServer, account: StandInAccount, caplog: pytest.LogCaptureFixture
) -> None:
    account.hold({"ssbench_000000": ["a"], "ssbench-kv-000000": ["b"], "ssbench-kv-000000-gold": []})
    hint = "Not deleted: %s (%s and so on) of suites or runs over the S3 API; to delete them, give %s"
    assert clean(*at(server), "--policy", "gold") == ExitCode.OK
    own = "--container-base ssbench-kv-"
    assert caplog.messages[-1] == hint % ("1 container", "ssbench-kv-000000-gold", own)
    assert clean(*at(server)) == ExitCode.OK
    assert {*account.containers} == {"ssbench-kv-000000", "ssbench-kv-000000-gold"}
    assert caplog.messages[-1] == hint % ("2 containers", "ssbench-kv-000000", own)


def test_the_account_is_listed_once_and_what_appears_meanwhile_stays(
    server: FaultServer, account: StandInAccount, caplog: pytest.LogCaptureFixture
) -> None:
    listings = []

    def rule(request: Request) -> Reply:
        asked = urlsplit(request.target)
        if asked.path.count("/") == 2 and "marker" not in parse_qs(asked.query):
            listings.append(asked.query)
        reply = account(request)
        if request.method == "DELETE":
            account.containers.setdefault("ssbench_000009", ["new"])
        return reply

    account.hold({"ssbench_000000": [], "ssbench-kv-000000": []})
    server.rule = rule
    assert clean(*at(server)) == ExitCode.OK
    assert {*account.containers} == {"ssbench-kv-000000", "ssbench_000009"}
    assert caplog.messages[-1].startswith("Not deleted: 1 container (ssbench-kv-000000 and so on)")
    assert len(listings) == 1, listings


def test_what_could_not_be_deleted_is_an_error(
    server: FaultServer, account: StandInAccount, caplog: pytest.LogCaptureFixture
) -> None:
    def rule(request: Request) -> Reply:
        forbidden = request.method == "DELETE" and request.target.endswith("/ssbench_000000/a")
        return Reply(403) if forbidden else account(request)

    server.rule = rule
    assert clean(*at(server)) == ExitCode.FAILED
    assert account.containers == {"mine": ["d"], "ssbench_000000": ["a"]}
    assert "2 deletes failed; run it again when the cause is gone" in caplog.messages
    assert [record.levelname for record in caplog.records].count("ERROR") == 3


def test_where_nothing_succeeds_it_ends(server: FaultServer, account: StandInAccount) -> None:
    account.hold({"ssbench_000000": [f"o{number}" for number in range(20)]})
    server.rule = lambda request: Reply(503, delay=0.1) if request.method == "DELETE" else account(request)
    assert clean(*at(server), "--give-up-after", "0.2", "--concurrency", "1") == ExitCode.CLUSTER


@pytest.mark.parametrize(("given", "left"), [((), 3), (("--in-use",), 1)])
def test_containers_of_a_run_that_is_under_way_stay(
    server: FaultServer,
    account: StandInAccount,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    given: tuple[str, ...],
    left: int,
    golden_words: GoldenWords,
) -> None:
    mark = RunMark(run="1f", host="h", pid=1)
    used = ["ssbench_000000", "ssbench_000001_gold"]
    monkeypatch.setattr("ssbench.run.run_marks.containers_in_use", lambda *_: dict.fromkeys(used, mark))
    code = clean(*at(server), *given)
    assert len(account.containers) == left
    if given:
        assert code == ExitCode.OK
    else:
        assert code == ExitCode.FAILED
        golden_words(caplog.messages)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "left"), [("y\n", 1), (" YES \n", 1), ("\n", 3), ("n\n", 3), ("", 3)])
def test_on_a_terminal_it_asks(
    server: FaultServer,
    account: StandInAccount,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    answer: str,
    left: int,
) -> None:
    said = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setattr(terminal, "drain_output", lambda: None)
    assert clean(*at(server)) == ExitCode.OK
    question = f"Delete 2 containers of {server.url} (ssbench_000000 ... ssbench_000001_gold)? [y/N] "
    assert question in said.getvalue()
    assert len(account.containers) == left
    assert ("Nothing was deleted" in caplog.messages) == (left == 3)
    if left == 3:
        account.hold({"ssbench_000000": []})
        assert clean(*at(server), "--yes") == ExitCode.OK
        assert not account.containers


@pytest.mark.parametrize(
    "options",
    [
        ("--account-base", "x"),
        ("--accounts", "1000001"),
        ("--accounts", "2", "--account-base", "a/b"),
    ],
)
def test_wrong_accounts(server: FaultServer, options: tuple[str, ...], golden_words: GoldenWords) -> None:
    with pytest.raises(UsageError) as caught:
        clean(*at(server), *options)
    golden_words(str(caught.value))
    assert not server.requests


class Accounts:
    """Several accounts behind one authentication; the storage URL says which is meant."""

    def __init__(self, *names: str) -> None:
        self.accounts = {name: StandInAccount() for name in names}
        self.url = ""

    def __call__(self, request: Request) -> Reply:
        if request.target.startswith("/auth"):
            name = "AUTH_" + request.headers["x-auth-user"].partition(":")[0]
            return Reply(200, headers=(("X-Storage-Url", f"{self.url}/{name}"), ("X-Auth-Token", "t")))
        return self.accounts[request.target.split("/")[2].partition("?")[0]](request)


@pytest.mark.parametrize("way", ["names", "credentials"])
def test_several_accounts(way: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Accounts("AUTH_admin", "AUTH_ssbench1", "AUTH_ssbench2")
    for each in store.accounts.values():
        each.hold({"ssbench_000000": ["a"], "mine": []})
    first, second, third = store.accounts.values()
    with FaultServer(rule=store) as server:
        store.url = server.url.rpartition("/")[0]
        auth = server.url.rpartition("/v1")[0] + "/auth/v1.0"
        if way == "names":
            options = ["-A", auth, "-U", "admin:a", "-K", "k", "--accounts", "2"]
        else:
            users = [
                {"user": f"ssbench{number}:{user}", "key": "k", "auth_url": auth}
                for number, user in ((1, "u"), (2, "u"), (2, "v"))
            ]
            (tmp_path / "users.json").write_text(json.dumps(users))
            options = ["--credentials", str(tmp_path / "users.json")]
        assert clean(*options) == ExitCode.OK
    assert "ssbench_000000" in first.containers
    assert [*second.containers] == [*third.containers] == ["mine"]
    assert sum("1 container to delete" in line for line in caplog.messages) == 2
