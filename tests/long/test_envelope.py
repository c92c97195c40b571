"""The envelope of a real Swift, and what is done again of one that is whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from json_records import valid
from processes import Fleet
from s3_runs import variables

from ssbench.base.errors import ExitCode
from ssbench.local_swift import Layout, LocalSwift
from ssbench.local_swift.configuration import make_tempauth_options


@pytest.mark.timeout(400)
def test_the_envelope_of_a_swift(fleet: Fleet, tmp_path: Path) -> None:
    def measure(name: str, *more: str) -> tuple[dict, str]:
        run = fleet.master(
            *("envelope", "--minutes", 1.5, "--sizes", "4kB", "--operations", "write,read", "--local-swift"),
            *("--workers", 2, "--results-dir", tmp_path, "--json", tmp_path / f"{name}.json", *more),
        )
        assert run.end(350) == ExitCode.OK, run.err
        return valid((tmp_path / f"{name}.json").read_text(), "envelope"), run.err

    first, said = measure("first")
    assert [each["name"] for each in first["cells"]] == ["4kB.write", "4kB.read"]
    for cell in first["cells"]:
        assert cell["runs"] >= 2
        assert cell["one_user"]["count"] > 0
        assert 0 <= cell["users_low"] <= cell["users_high"]
    assert all(each["seconds"] > 1 for each in first["mixed"])
    files = sorted(tmp_path.glob("envelope.*.stat.gz"))
    assert len(files) == sum(each["runs"] for each in first["cells"]) + len(first["mixed"])
    assert "condition ok" in said

    # All that was decided follows from these files.
    second, said = measure("second", "--resume")
    assert said.count("Done already: ") == len(files)
    assert sorted(tmp_path.glob("envelope.*.stat.gz")) == files
    assert second["cells"] == first["cells"]
    assert second["mixed"] == first["mixed"]


@pytest.mark.timeout(400)
def test_a_rate_limit_is_named(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "swift.yaml").write_text(
        "filters: [ratelimit]\n"
        "proxy-server:\n"
        "  filter:ratelimit: {container_ratelimit_0: 2, max_sleep_time_seconds: 0, rate_buffer_seconds: 1}\n"
    )
    run = fleet.master(
        *("envelope", "--minutes", 0.8, "--sizes", "4kB", "--operations", "write", "--retries", 0),
        *("--local-swift", "--swift-config", tmp_path / "swift.yaml", "--workers", 1),
        *("--results-dir", tmp_path, "--json", tmp_path / "limited.json"),
    )
    run.end(350)
    (cell,) = valid((tmp_path / "limited.json").read_text(), "envelope")["cells"]
    assert cell["bounded_by"].startswith("the rate limit of the store (HTTP 498)")


@pytest.mark.timeout(400)
def test_a_rate_limit_over_s3_is_named(fleet: Fleet, tmp_path: Path) -> None:
    """s3api makes 503 (SlowDown) of ratelimit's 498.

    The filter stands behind the authentication: before it, requests of S3 are for an account that is named as
    their key, which has no containers, and the filter limits none that are empty.
    """
    limit = {
        "use": "egg:swift#ratelimit",
        "container_ratelimit_0": "2",
        "max_sleep_time_seconds": "0",
        "rate_buffer_seconds": "1",
    }
    with LocalSwift(authentication={**make_tempauth_options(3600), "ratelimit": limit}) as swift:
        run = fleet.master(
            *("envelope", "--minutes", 0.8, "--sizes", "4kB", "--operations", "write", "--retries", 0),
            *("-S", f"s3+{swift.address}", "--workers", 1, "--results-dir", tmp_path),
            *("--json", tmp_path / "limited.json", "--html", tmp_path / "limited.html"),
            environment=variables(swift),
        )
        run.end(350)
    (cell,) = valid((tmp_path / "limited.json").read_text(), "envelope")["cells"]
    bound = "the store: requests fail (HTTP 503, over S3 also the answer of a rate limit)"
    assert cell["bounded_by"].startswith(bound)
    assert bound in (tmp_path / "limited.html").read_text()


@pytest.mark.timeout(400)
def test_logs_name_the_device_that_bounds_it(fleet: Fleet, tmp_path: Path) -> None:
    """Also those that come later."""
    layout = Layout(replicas=3, devices=6, object_servers=6, proxies=2, access_logs=True)
    with LocalSwift(layout=layout) as swift:
        # Its requests wait for one another.
        swift.slow("d3", 0.03, where="block")
        words = (
            *("envelope", "--minutes", 1.5, "--sizes", "4kB", "--operations", "read", "--workers", 1),
            *("--holds", "read.p99 <= 200ms", "-A", swift.auth_url, "-U", swift.user, "-K", swift.key),
            *("--results-dir", tmp_path, "--json", tmp_path / "found.json", "--force"),
        )

        def measure(*more: str | Path) -> dict:
            run = fleet.master(*words, *more)
            assert run.end(350) == ExitCode.OK, run.err
            (cell,) = valid((tmp_path / "found.json").read_text(), "envelope")["cells"]
            return cell

        before = measure()
        assert before["bounded_by"].startswith("the store: latency")  # on a shared host, perhaps
        assert before["by_logs"] is None
        cell = measure("--resume", "--swift-logs", swift.log_directory)
    assert cell["bounded_by"] == before["bounded_by"] + "; by its logs d3 on object-3"
    assert f".4kB.read-{cell['beyond']['users']}." in cell["by_logs"]["file"]
    assert cell["beyond"] == before["beyond"]
    assert cell["by_logs"]["p99_of_others"] < cell["by_logs"]["p99"] / 2


@pytest.mark.timeout(400)
def test_the_envelope_of_both_apis_of_a_swift(fleet: Fleet, tmp_path: Path) -> None:
    run = fleet.master(
        *("envelope", "--minutes", 3, "--sizes", "4kB", "--operations", "write,read", "--local-swift"),
        *("--store", "swift", "--store", "s3", "--workers", 2, "--results-dir", tmp_path),
        *("--json", tmp_path / "both.json"),
    )
    assert run.end(350) == ExitCode.OK, run.err
    found = valid((tmp_path / "both.json").read_text(), "envelope")
    names = ["swift.4kB.write", "s3.4kB.write", "swift.4kB.read", "s3.4kB.read"]
    assert [each["name"] for each in found["cells"]] == names
    for cell in found["cells"]:
        assert cell["one_user"]["count"] > 0
        assert cell["one_user"]["failed"] == 0
    assert (found["stores"]["before"], found["stores"]["after"]) == ("swift", "s3")
    assert [each["name"] for each in found["stores"]["rows"]] == ["4kB.write", "4kB.read"]
