"""Several accounts: of a reseller admin against a real Swift; of a list, one token of which is refused."""

from __future__ import annotations

import csv
import io
import json
import threading
from collections import Counter
from pathlib import Path

import pytest
import swiftclient
from fault_server import FaultServer, Reply, Request
from processes import Fleet
from runs import Store, write_scenario

from ssbench.base.errors import ExitCode
from ssbench.cli.master import main
from ssbench.local_swift import LocalSwift
from ssbench.results.reading import open_results
from ssbench.statistics.summary import summarize

USERS = ("a:x", "b:x", "c:x")


@pytest.mark.timeout(300)
def test_a_reseller_admin_uses_many_accounts(
    swift: LocalSwift,
    monkeypatch: pytest.MonkeyPatch,
    container_base: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for name, value in (("AUTH", swift.auth_url), ("USER", swift.admin), ("KEY", swift.admin_key)):
        monkeypatch.setenv(f"ST_{name}", value)
    tenant = f"{container_base}-t".replace(".", "-")
    scenario = write_scenario(
        tmp_path,
        accounts=4,
        account_base=tenant,
        container_base=container_base,
        operation_count=80,
        initial_files={"tiny": 20},
        profile={"create": 2, "read": 5, "update": 1, "delete": 1, "head_account": 1},
        crud_profile=None,
    )
    stats, made, page = (tmp_path / name for name in ("a.stat.gz", "a.json", "a.html"))
    run = ["run-scenario", "-f", str(scenario), "--workers", "1", "-s", str(stats), "--verify", "-v"]
    code = main([*run, "--json", str(made), "--html", str(page), "--report", "summary"])
    captured = capfd.readouterr()
    assert code == ExitCode.OK, captured.err

    # Each account has its containers, and what is left in it; no mark of the run.
    _, token = swiftclient.get_auth(swift.auth_url, swift.admin, swift.admin_key)
    left = Counter[str]()
    for number in range(1, 5):
        url = swift.storage_url.replace("AUTH_test", f"AUTH_{tenant}{number}")
        names = [each["name"] for each in swiftclient.get_account(url, token)[1]]
        assert names == [f"{container_base}_00000{place}" for place in range(2)]
        for name in names:
            left[url] += len(swiftclient.get_container(url, token, name)[1])
    assert len(left) == 4
    statistics = summarize(open_results(stats))
    # Now and then none of them is a delete.
    deleted = sum(each.count for each in statistics.sections[1:] if each.operation.name == "delete")
    assert 20 - deleted <= left.total() <= 20

    # The accounts add up to the whole, in each report.
    assert statistics.run.accounts == tuple(f"AUTH_{tenant}{number}" for number in range(1, 5))
    assert sum(each.figures.count for each in statistics.accounts) == 80
    report = json.loads(made.read_text())
    assert [each["name"] for each in report["accounts"]] == [*statistics.run.accounts]
    assert report["run"]["scenario"]["accounts"] == 4
    assert "4 accounts: " in captured.out
    assert f"AUTH_{tenant}4" in captured.out
    assert f"AUTH_{tenant}4" in page.read_text()
    assert "4 accounts" in page.read_text()
    assert main(["export", "-s", str(stats), "-o", str(tmp_path / "a.csv")]) == ExitCode.OK
    rows = csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text()))
    assert {row["account"] for row in rows} == {*statistics.run.accounts}

    # Without the rights the reason is said.
    monkeypatch.setenv("ST_USER", swift.user)
    monkeypatch.setenv("ST_KEY", swift.key)
    assert main([*run, "--force"]) == ExitCode.CLUSTER
    assert "has to be a reseller admin's" in capfd.readouterr().err
    monkeypatch.setenv("ST_USER", swift.admin)
    monkeypatch.setenv("ST_KEY", swift.admin_key)

    clean = ["cleanup-containers", "-b", container_base, "--accounts", "4", "--account-base", tenant]
    assert main([*clean, "--yes", "--json", str(tmp_path / "clean.json")]) == ExitCode.OK
    cleaned = json.loads((tmp_path / "clean.json").read_text())
    assert (cleaned["matched"], len(cleaned["accounts"])) == (8, 4)
    assert cleaned["deleted"]["objects"] == left.total()
    assert not any(swiftclient.get_account(url, token)[1] for url in left)


class Tenants(Store):
    """Authenticates users of version 1, each to an account of its own, and takes its latest token alone.

    The token of the second one is no longer taken once ``after`` objects of its account were asked for.
    """

    def __init__(self, after: int) -> None:
        super().__init__()
        self.url = ""
        self.logins: Counter[str] = Counter()
        self._after = after
        self._asked = 0
        self._valid: dict[str, str] = {}
        self._counting = threading.Lock()

    def __call__(self, request: Request) -> Reply:
        if request.target.startswith("/auth"):
            user = request.headers["x-auth-user"]
            if request.headers["x-auth-key"] != f"key of {user}":
                return Reply(401)
            account = f"AUTH_{user[0]}"
            self.logins[account] += 1
            self._valid[account] = token = f"token-{account}-{self.logins[account]}"
            return Reply(
                200, headers=(("X-Storage-Url", f"{self.url}/v1/{account}"), ("X-Auth-Token", token))
            )
        account = request.target.split("/")[2].partition("?")[0]
        with self._counting:
            if account == "AUTH_b" and "/tiny_" in request.target:
                self._asked += 1
                if self._asked == self._after:
                    self._valid[account] = "none of those that were given"
        if request.headers.get("x-auth-token") != self._valid.get(account):
            return Reply(401)
        return super().__call__(request)


def test_a_refused_token_is_renewed_for_its_account_alone(fleet: Fleet, tmp_path: Path) -> None:
    # Without deletes, which may leave no object in one account.
    crud = [2, 7, 1, 0]
    scenario = write_scenario(tmp_path, operation_count=300, initial_files={"tiny": 30}, crud_profile=crud)
    listed = tmp_path / "list.yaml"
    listed.write_text("".join(f"- {{user: '{user}', key: 'key of {user}'}}\n" for user in USERS))
    listed.chmod(0o600)
    rule = Tenants(after=60)
    with FaultServer(rule=rule) as server:
        rule.url = server.url.partition("/v1")[0]
        options = ("--credentials", listed, "-A", f"{rule.url}/auth/v1.0")
        run = fleet.run(scenario, "--workers", 1, "--json", tmp_path / "r.json", *options)
        assert run.end() == ExitCode.OK, run.err
        assert "no longer takes the token of account 2 of 3" in run.err
    assert rule.logins == {"AUTH_a": 1, "AUTH_b": 2, "AUTH_c": 1}
    numbers = summarize(open_results(fleet.stats))
    assert numbers.run.accounts == ("AUTH_a", "AUTH_b", "AUTH_c")
    assert numbers.total.count == 300
    assert not numbers.errors
    assert numbers.retries["HTTP 401"] >= 1
    # Secrets are in no file of the run.
    for path in (fleet.stats, tmp_path / "r.json"):
        assert b"key of" not in path.read_bytes()
    assert "key of" not in json.dumps(numbers.run.options)
    assert {each.split("/")[2] for each in rule.objects()} == {"AUTH_a", "AUTH_b", "AUTH_c"}
