"""Several accounts: how a scenario says so, how work is spread, credentials in a list, what is shown."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asked_commands import ask_auth
from chi_square import misfit
from golden_words import GoldenWords
from result_rows import many

from ssbench.base.errors import ExitCode, ScenarioError, UsageError
from ssbench.cli import auth_options, master
from ssbench.document.elements import View
from ssbench.document.renderers.text import render
from ssbench.reports import run_tables, scenario_outlook
from ssbench.reports.writing import ReportOptions, make_run_report
from ssbench.results.block import LOST_CAUSE, Failure, ResultBlock, join_blocks
from ssbench.results.result_fields import UNKNOWN_NUMBER
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.run.group_run import accounts_of_sessions, make_group_runs, merge_container_sets
from ssbench.run.result_rows import ResultAddresses
from ssbench.scenario.consistency import override
from ssbench.scenario.draws import Workload
from ssbench.scenario.names import make_account_names, split_container_number
from ssbench.scenario.scenario_reading import check_scenario_text
from ssbench.statistics.summary import summarize
from ssbench.store.credentials import Session
from ssbench.store.request_options import parse_addresses
from ssbench.store.swift.store import session_in_account as session_in

SCENARIO = """
name: tenants
sizes: [{name: small, size_min: 1kB, size_max: 2kB}]
initial_files: {small: 60}
profile: {read: 9, create: 1}
user_count: 4
operation_count: 100
container_count: 3
"""


def test_what_the_documentation_shows_is_valid(golden_words: GoldenWords) -> None:
    text = (Path(__file__).parents[3] / "doc" / "scenarios.rst").read_text("utf-8")
    section = text.partition("Several accounts\n----------------\n")[2]
    example = section.partition(".. code-block:: yaml\n")[2].partition("\nThere are ")[0]
    scenario = check_scenario_text(example, "example")
    assert (scenario.accounts, scenario.account_base, scenario.container_numbers) == (100, "tenant", 200)
    golden_words(" ".join(render(scenario_outlook.make_outlook_document(scenario, View()), View()).split()))


def test_all_faults_are_reported_together(golden_words: GoldenWords) -> None:
    wrong = "accounts: 1001\naccount_base: a/b\nuser_cuont: 3\n"
    with pytest.raises(ScenarioError) as caught:
        check_scenario_text(SCENARIO + wrong, "file")
    assert str(caught.value).count("\n") == 2
    golden_words(str(caught.value))
    assert "account_base: expected 1 to 64 letters" in str(caught.value)
    with golden_words.raises(ScenarioError):
        check_scenario_text(SCENARIO + "account_base: a\n", "file")
    with golden_words.raises(ScenarioError):
        check_scenario_text(SCENARIO.replace("count: 3", "count: 10000000") + "accounts: 1000\n", "file")
    with golden_words.raises(UsageError):
        override(check_scenario_text(SCENARIO, "file"), accounts=1000, container_count=10_000_000)


def test_objects_and_operations_are_spread_evenly() -> None:
    scenario = check_scenario_text(SCENARIO + "accounts: 5\n", "file")
    workload = Workload(scenario, 1)
    containers = [container for _, _, container, _ in islice(workload.draws(), 20_000)]
    places = Counter(split_container_number(each, 5) for each in containers)
    assert set(places) == {(account, container) for account in range(5) for container in range(3)}
    assert misfit([*places.values()], [1 / 15] * 15) < 1
    initial = Counter(container % 5 for _, container, _, _ in workload.initial_objects())
    assert set(initial.values()) == {12}


def test_one_account_draws_what_it_drew() -> None:
    one = check_scenario_text(SCENARIO, "file")
    same = override(one, accounts=1)
    draws = [[*islice(Workload(each, 7).draws(), 5000)] for each in (one, same)]
    assert draws[0] == draws[1]


def test_each_account_is_a_place() -> None:
    scenario = check_scenario_text(SCENARIO + "accounts: 3\n", "file")
    (part,) = make_group_runs(scenario, 1, None)
    assert [place.account for place in part.places] == [0, 1, 2]
    assert len(merge_container_sets(part.places)) == 3


def test_the_accounts_of_a_reseller_admin_are_named_beside_its_own(golden_words: GoldenWords) -> None:
    session = Session(("http://a:8080/v1/AUTH_admin", "http://b:8080/v1/AUTH_admin"), "token")
    assert make_account_names("tenant", 2) == ["tenant1", "tenant2"]
    assert session_in(session, "tenant2").storage_urls == (
        "http://a:8080/v1/AUTH_tenant2",
        "http://b:8080/v1/AUTH_tenant2",
    )
    for url in ("http://ceph/swift/v1", "http://a/v1/0123456789abcdef"):
        with golden_words.raises(UsageError):
            session_in(Session((url,)), "tenant1")


def test_workers_get_one_token_once() -> None:
    sessions = [Session((f"http://a/v1/AUTH_{number}",), "token") for number in range(2)]
    assert accounts_of_sessions(sessions[:1]) == []
    assert accounts_of_sessions(sessions) == [(["http://a/v1/AUTH_0"], None), (["http://a/v1/AUTH_1"], None)]
    sessions[1] = Session(("http://a/v1/AUTH_1",), "other")
    assert [token for _, token in accounts_of_sessions(sessions)] == ["token", "other"]


# -- a list of credentials --------------------------------------------------------------------


def read(folder: Path, text: str, *options: str, **environ: str) -> list[Any]:
    path = folder / "list.yaml"
    path.write_text(text)
    path.chmod(0o600)
    asked = ask_auth("--credentials", str(path), *options)
    return [*auth_options.read_account_credentials(asked, environ)]


def test_a_list_has_what_differs_and_variables_hold_secrets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    text = "- {user: 'a:x', key_env: KEY_A}\n- {user: 'b:x', key: two, auth_url: 'http://other/auth'}\n"
    environ = {"KEY_A": "one", "OS_STORAGE_URL": "http://s/v1/AUTH_c", "OS_AUTH_TOKEN": "t", "ST_USER": "no"}
    first, second = read(tmp_path, text, "-A", "http://auth/v1.0", **environ)
    assert (first.user, first.key, first.auth_url) == ("a:x", "one", "http://auth/v1.0")
    assert (second.user, second.key, second.auth_url) == ("b:x", "two", "http://other/auth")
    assert [each.name for each in (first, second)] == ["credentials 1", "credentials 2"]
    assert not caplog.messages
    caplog.set_level(logging.WARNING)
    path = tmp_path / "list.yaml"
    path.chmod(0o644)
    auth_options.read_account_credentials(
        ask_auth("--credentials", str(path), "-A", "http://a/v1.0"), environ
    )
    golden_words(caplog.messages)


def test_an_entry_wins_over_what_the_command_line_calls_by_another_name(tmp_path: Path) -> None:
    same = "os_auth_url: http://k/v3, os_project_name: p, os_user_domain_id: d, os_project_domain_id: d"
    text = (
        f"- {{os_username: ann, os_password: pa, {same}}}\n- {{os_username: bob, os_password: pb, {same}}}\n"
    )
    found = read(tmp_path, text, "-A", "http://auth/v1.0", "-U", "test:tester", "-K", "testing")
    assert [(each.user, each.key) for each in found] == [("ann", "pa"), ("bob", "pb")]
    assert {each.auth_url for each in found} == {"http://k/v3"}


def test_child_processes_do_not_inherit_the_variables_that_a_list_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENANT_KEY", "secret")
    path = tmp_path / "list.yaml"
    path.write_text("- {user: 'a:x', key_env: TENANT_KEY}\n")
    arguments = ask_auth("--credentials", str(path), "-A", "http://a/v1.0")
    assert [each.key for each in auth_options.read_account_credentials(arguments, os.environ)] == ["secret"]
    assert "TENANT_KEY" not in os.environ


def test_a_key_that_may_hold_a_secret_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, "- {user: 'a:x', key:Hidden-1}\n", "-A", "http://auth/v1.0")
    assert "Hidden" not in str(caught.value)


@pytest.mark.parametrize(
    "words",
    [
        ["--account-base", "x"],
        ["--accounts", "1", "--account-base", "test/backups"],
        ["--accounts", "1001"],
    ],
)
def test_names_of_accounts_to_clean_are_checked(
    words: list[str], capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    store = ["-S", "http://127.0.0.1:9/v1/AUTH_test", "-T", "t"]
    assert master.main(["cleanup-containers", *store, "--yes", *words]) == ExitCode.USAGE
    golden_words(capsys.readouterr().err)


def test_all_faults_of_a_list_are_reported_together_without_values(tmp_path: Path) -> None:
    text = (
        "- {usr: 'a:hidden1', key: hidden2}\n- {user: 'b:x', key: 12345678}\n"
        "- {user: 'c:x', key_env: NONE}\n- {user: 'd:x', key: hidden3, key_env: KEY}\n- hidden4\n"
        "- {user: 'e:x'}\n- {user: 'f:x', key: hidden5}\n- {user: 'f:x', key: hidden5}\n"
    )
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text, "-A", "http://auth/v1.0", KEY="hidden6")
    lines = str(caught.value).split("\n")
    assert [line.partition(": ")[0].rpartition(":")[2] for line in lines] == list("123456" + "8")
    for part in (
        "unknown key 'usr'; did you mean user?",
        "key: expected a text, in quotes where it is a number",
        "key_env: the environment has no variable of the name that it gives",
        "key: expected this or key_env, not both",
        "expected a mapping such as {user: ..., key_env: ...}",
        "no way to authenticate",
        "the same as entry 7",
    ):
        assert part in str(caught.value)
    assert "hidden" not in str(caught.value)
    assert "12345678" not in str(caught.value)
    with pytest.raises(UsageError, match="leave out -S"):
        read(tmp_path, text, "-S", "http://s/v1/AUTH_a")
    with pytest.raises(UsageError, match="expected a list"):
        read(tmp_path, "user: a", "-A", "http://auth/v1.0")


# -- what is shown ----------------------------------------------------------------------------


class _Run:
    """The results of a run in ``count`` accounts, of which each one is slower than the one before."""

    current = True
    warnings = ()
    size_classes = ("small",)

    def __init__(self, count: int) -> None:
        self.run = RunDescription(
            check_scenario_text(SCENARIO + f"accounts: {count}\n", "file"),
            accounts=tuple(make_account_names("AUTH_t", count)),
        )
        self.summary = RunSummary(ended=0.0)
        self._count = count

    def blocks(self) -> list[ResultBlock]:
        found = []
        for account in range(self._count):
            own = many(range(40), last_byte=np.full(40, 0.01 * (account + 1)))
            failures = {3: Failure("HTTP 401", "", {})} if account == 1 else {}
            columns = {name: getattr(own, name) for name in own.given}
            found.append(ResultBlock(40, {**columns, "account": np.full(40, account)}, failures))
        return [join_blocks(found)]

    def again(self) -> _Run:
        return self

    def close(self) -> None:
        pass


@pytest.mark.parametrize("count", [3, 20])
def test_a_report_says_how_accounts_differ(count: int) -> None:
    statistics = summarize(_Run(count))
    assert [each.number for each in statistics.accounts] == [*range(count)]
    assert statistics.accounts[1].errors == {"HTTP 401": 1}
    assert sum(each.figures.count for each in statistics.accounts) == statistics.total.count == 40 * count - 1
    note, table = run_tables.make_account_elements(statistics)
    text = note.text.replace("\N{NO-BREAK SPACE}", " ")
    assert f"median 10.0 ms to {10 * count:.1f} ms (slowest AUTH_t{count})" in text
    assert "errors in 1, 1 of them in AUTH_t2" in text
    assert len(table.rows) == min(count, 10)
    assert table.rows[0][0] == f"AUTH_t{count}"
    assert table.rows[-1][0] == "AUTH_t1"
    if count == 3:
        assert table.rows[1][-1] == "1 x HTTP 401"
    else:
        assert table.title.endswith("by median, of 20")


def test_operations_of_lost_workers_are_counted_by_account_too() -> None:
    run = _Run(3)
    (block,) = run.blocks()
    lost = ResultBlock(
        len(block),
        {name: getattr(block, name) for name in block.given},
        {50: Failure(LOST_CAUSE, "", {}), 60: Failure(LOST_CAUSE, "", {}), 90: Failure("HTTP 503", "", {})},
    )
    run.blocks = lambda: [lost]
    statistics = summarize(run)
    assert statistics.total.lost == 2
    assert [each.figures.lost for each in statistics.accounts] == [0, 2, 0]
    made = json.loads(make_run_report("json", statistics, ReportOptions()))
    assert [each["figures"]["lost"] for each in made["accounts"]] == [0, 2, 0]


def test_a_run_with_one_account_says_nothing_of_it() -> None:
    run = _Run(1)
    blocks = [many(range(40), last_byte=np.full(40, 0.01))]
    run.blocks = lambda: blocks
    assert [*run_tables.make_account_elements(summarize(run))] == []


# -- addresses --------------------------------------------------------------------------------


def test_addresses_are_read_with_their_host(golden_words: GoldenWords) -> None:
    assert parse_addresses("Swift=10.0.0.1,::1") == {"swift": ["10.0.0.1", "::1"]}
    for wrong in (
        "swift",
        "=10.0.0.1",
        "swift=",
        "swift=name",
        "swift=10.0.0.1,10.0.0.1",
        "swift=10.0.0.256",
        "swift:8080=10.0.0.1",
        "http://swift=10.0.0.1",
        " swift =10.0.0.1",
    ):
        with golden_words.raises(ValueError):
            parse_addresses(wrong)


def test_addresses_are_numbered_as_they_come() -> None:
    found = ResultAddresses()
    assert [found.number(each) for each in ("b", "a", "b")] == [0, 1, 0]
    assert found.names() == ("b", "a")
    assert [found.number(str(each)) for each in range(2000)][-1] == UNKNOWN_NUMBER
