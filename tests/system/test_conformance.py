"""What a real Swift does of what it is asked, and what is said of one that ignores some of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import swiftclient
from json_records import valid
from processes import run_master
from s3_runs import read_documented

from ssbench.local_swift import LocalSwift


def test_swift_does_what_the_documentation_says(
    swift: LocalSwift, account: swiftclient.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("AUTH", swift.auth_url), ("USER", swift.user), ("KEY", swift.key)):
        monkeypatch.setenv(f"ST_{name}", value)
    account.put_container("another")  # S3 lists all buckets, whatever is asked for
    done = run_master("conformance", "--json", "-")
    assert done.returncode == 0, done.stderr + done.stdout
    report = valid(done.stdout, "conformance")
    assert {each["name"]: each["verdict"] for each in report["checks"]} == read_documented("Swift")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", swift.user)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", swift.key)
    done = run_master("conformance", "--json", "-", "-S", f"s3+{swift.address}")
    by_s3 = valid(done.stdout, "conformance")
    assert {each["name"]: each["verdict"] for each in by_s3["checks"]} == read_documented("Swift, S3 API")
    account.delete_container("another")
    _, containers = account.get_account(prefix="ssbench-conformance")
    assert containers == []
    assert not {name for name, key in account.head_account().items() if "temp-url-key" in name and key}


#: What drops the condition, as some stores do.
FILTER = """
def filter_factory(conf, **_):
    def make(app):
        class Deaf:
            def __call__(self, env, start_response):
                if env.get('HTTP_IF_NONE_MATCH') == '*':
                    del env['HTTP_IF_NONE_MATCH']
                return app(env, start_response)
        return Deaf()
    return make
"""

SCENARIO = """
name: conditions
sizes: [{name: tiny, size: 1kB}]
initial_files: {tiny: 5}
profile: {conditional: 1, create_only: 1, look: 1}
operations: [{name: look, steps: [create, conditional, delete]}]
operation_count: 40
user_count: 2
container_base: deaf
container_count: 1
"""


@pytest.mark.long
def test_a_run_says_by_name_what_the_store_ignores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deaf.py").write_text(FILTER)
    (tmp_path / "conditions.yaml").write_text(SCENARIO)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    filters = {"deaf": {"paste.filter_factory": "deaf:filter_factory"}}
    with LocalSwift(filters=filters, policies=["only"]) as swift:
        for name, value in (("AUTH", swift.auth_url), ("USER", swift.user), ("KEY", swift.key)):
            monkeypatch.setenv(f"ST_{name}", value)
        monkeypatch.delenv("PYTHONPATH")
        found = run_master("conformance", "--json", "-")
        assert found.returncode == 1, found.stderr
        checks = valid(found.stdout, "conformance")["checks"]
        ignored = {each["name"] for each in checks if each["verdict"] == "ignored"}
        assert ignored == {"conditional", "create_only"}
        options = [
            "-f",
            tmp_path / "conditions.yaml",
            "-s",
            tmp_path / "run",
            "--workers",
            "1",
            "--json",
            "-",
        ]
        done = run_master("run-scenario", *options)
        report = valid(done.stdout, "report")
    assert report["errors"] == []
    warned = [each for each in report["warnings"] if "the store accepts but ignores" in each]
    assert [each.partition(":")[0] for each in warned] == ["conditional", "create_only"]
    assert "operations send the ETag" in warned[0]
    assert report["counters"]["features_ignored"] == 2
    assert all(each in done.stderr for each in warned)
