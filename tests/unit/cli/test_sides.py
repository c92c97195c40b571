"""The option of sides: accounts, stores and APIs that are compared in one run."""

from __future__ import annotations

import io
import sys
from dataclasses import replace

import pytest
from asked_commands import ask
from golden_words import GoldenWords

from ssbench.base.errors import ClusterError, UsageError
from ssbench.cli import sides
from ssbench.run.bench_options import RunSide
from ssbench.run.trial_swift import TrialSwift
from ssbench.store.swift.auth import authenticate_swift


def arguments(*ab, **changes):
    return ask("run-scenario", ab=list(ab), **changes)


def test_the_option():
    assert sides.parse_sides(arguments()) == ()
    found = sides.parse_sides(arguments("old=http://a:8080/v1/AUTH_x/", "new=https://b/v1/AUTH_x"))
    assert found == (RunSide("old", "http://a:8080/v1/AUTH_x"), RunSide("new", "https://b/v1/AUTH_x"))
    assert sides.parse_sides(arguments("a=gold", "b=tin"))[1] == RunSide("b", policy="tin")


def test_swifts_to_be_started_are_sides(tmp_path, golden_words: GoldenWords):
    settings = tmp_path / "swift.yaml"
    settings.write_text("filters: [encryption]")
    asked = ask("run-scenario", "--swift-config=+ratelimit", ab=["old=2.37.4", f"new={settings}"])
    asked = sides.ask_for_swifts(asked, "--ab", asked.ab)
    assert asked.local_swift is True
    assert sides.parse_sides(asked) == (
        RunSide("old", swift=TrialSwift(release="2.37.4", filters=("ratelimit",), access_logs=True)),
        RunSide("new", swift=TrialSwift(filters=("encryption", "ratelimit"), access_logs=True)),
    )
    equal = sides.parse_sides(arguments("a=2.37.4", "b=2.37.4", local_swift=True))
    assert [str(each) for each in equal] == ["a=2.37.4", "b=2.37.4"]
    with golden_words.raises(UsageError):
        sides.ask_for_swifts(arguments("a=2.37.4", "b=2.38.3", local_swift="2.36.4"), "--ab", ["a=2.37.4"])
    for texts in (["a=gold", "b=tin"], ["a=http://h/v1/a", "b=@some/file"]):
        assert not sides.ask_for_swifts(arguments(*texts), "--ab", texts).local_swift


def test_swifts_to_be_started_are_stores(golden_words: GoldenWords):
    given = sides.parse_stores(["old=2.37.4", "new=2.38.3"], local_swift=True)
    stores = sides.make_named_stores(ask("suite", "quick", local_swift=True), [*given], given, {})
    assert [(each.name, each.swift.release) for each in stores] == [("old", "2.37.4"), ("new", "2.38.3")]
    with golden_words.raises(UsageError):
        sides.parse_stores(["old=2.37.4", "s3"], local_swift=True)


def test_swifts_of_a_suite_are_stores_of_which_some_share_one(golden_words: GoldenWords):
    said = {"a": {"release": "2.37.4", "filters": ["ratelimit"]}, "b": {"api": "s3", "replicas": "3"}}
    asked = sides.ask_for_swifts(ask("suite", "features"), "the suite features", always=True)
    assert asked.local_swift is True
    stores = sides.make_named_stores(asked, ["a", "b"], {}, {}, said)
    assert [(each.name, each.api) for each in stores] == [("a", "swift"), ("b", "s3")]
    assert [each.swift for each in stores] == [
        TrialSwift(release="2.37.4", filters=("ratelimit",), access_logs=True),
        TrialSwift(replicas=3, access_logs=True),
    ]
    [alone] = sides.make_named_stores(asked, ["a"], {}, {}, said)
    assert alone.swift == TrialSwift(release="2.37.4", filters=("ratelimit",)), "it is compared with none"
    with golden_words.raises(UsageError):
        sides.ask_for_swifts(ask("suite", "features", local_swift="2.36.4"), "the suite x", always=True)


@pytest.mark.parametrize(
    "said",
    [
        {"api": "s4"},
        {"release": "./python"},
        {"filters": ["paste:a:b"]},
        {"filters": "slo"},
        {"filters": ["slow"]},
        {"relaese": "2.37.4"},
    ],
)  # fmt: skip
def test_a_suite_of_others_starts_no_programs(said, golden_words: GoldenWords):
    with pytest.raises(UsageError) as error:
        sides.make_named_stores(ask("suite", "features", local_swift=True), ["a"], {}, {}, {"a": said})
    golden_words(str(error.value))


@pytest.mark.parametrize(
    "side", ["a=http://me:secret@h/v1/x", "a b=http://me:secret@h/v1/x", "a=ftp://me:secret@h"]
)
def test_a_url_with_a_password_is_refused_and_not_shown(side):
    with pytest.raises(UsageError) as error:
        sides.parse_sides(arguments(side, "b=http://h/v1/y"))
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("wrong", "changes"),
    [
        (("a", "b=x"), {}),
        (("a=", "b=x"), {}),
        (("a b=x", "b=y"), {}),
        (("a=x", "a=y"), {}),
        (("a=x", "b=x"), {}),
        (("a=x", "b=http://h/v1/a"), {}),
        (("a=ftp://h", "b=http://h/v1/a"), {}),
        (("a=http://g/v1/a", "b=http://h/v1/a"), {"local_swift": True}),
        (("a=http://g/v1/a", "b=http://h/v1/a"), {"auth_storage_urls": ["http://x"]}),
        (("a=@", "b=@f"), {}),
        (("s3=@", "b=@f"), {}),
        (("s3=@", "s3=@"), {}),
        (("swift=@", "s3=s3+http://h"), {}),
        (("a=s3+ftp://h", "b=http://h/v1/a"), {}),
        (("a=@f", "b=@f"), {}),
        (("a=2.37.4", "b=gold"), {}),
        (("a=2.37.4", "b=no/such"), {"local_swift": True}),
        (("a=@f", "b=gold"), {}),
        (("a=@f", "b=@g"), {"local_swift": True}),
        (("a=@f", "b=@g"), {"auth_storage_urls": ["http://x"]}),
    ],
)
def test_wrong_values_are_named(wrong, changes, golden_words: GoldenWords):
    with golden_words.raises(UsageError):
        sides.parse_sides(arguments(*wrong, **changes))


def with_accounts(tmp_path, one, two, *options):
    """What two files with variables of accounts make, beside options."""
    files = []
    for number, text in enumerate((one, two)):
        files.append(tmp_path / f"{number}.env")
        files[-1].write_text(text)
    ab = [f"{name}=@{file}" for name, file in zip("ab", files, strict=True)]
    given = ask("run-scenario", *options, ab=ab)
    return sides.make_side_credentials(
        given, (RunSide("a"), RunSide("b")), {"ST_USER": "nobody", "ST_KEY": "of the environment"}
    )


def test_accounts_come_from_files(tmp_path, golden_words: GoldenWords):
    one = "# the first\nexport ST_USER=t:one ST_KEY='a b $x'\n\nST_AUTH=http://h/auth/v1.0 # there\n"
    two = "ST_USER=t:two\nST_KEY=k\n"
    found = with_accounts(tmp_path, one, two, "-A", "http://g/auth")
    assert [(each.user, each.key, each.auth_url) for each in found] == [
        ("t:one", "a b $x", "http://g/auth"),
        ("t:two", "k", "http://g/auth"),
    ]
    # Both authenticate at one URL, so that the URL does not tell which of them failed.
    for each in found:
        with pytest.raises(ClusterError, match=f"^{each.name}: http://127.0.0.1:1/: cannot"):
            authenticate_swift(replace(each, auth_url="http://127.0.0.1:1/"))
    assert [each.name for each in found] == ["side a", "side b"]
    with golden_words.raises(UsageError):
        with_accounts(tmp_path, one, two)
    with pytest.raises(UsageError, match="the same credentials"):
        with_accounts(tmp_path, one, one)


@pytest.mark.parametrize("line", ["read -sr secret", "ST_KEY = secret", "ST_KEY='secret", "1=secret"])
def test_a_line_that_is_no_variable_is_named_and_not_shown(tmp_path, line):
    with pytest.raises(UsageError) as error:
        with_accounts(tmp_path, f"ST_USER=x\n{line}\n", "")
    assert "line 2: expected NAME=VALUE" in str(error.value)
    assert "secret" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    given = arguments(f"a=@{tmp_path}/none", "b=@x")
    with pytest.raises(UsageError, match="none: No such file"):
        sides.make_side_credentials(given, (RunSide("a"), RunSide("b")), {})


def test_what_prints_the_comparison_is_loaded_before_the_run(monkeypatch, tmp_path, caplog):
    comparer = sides.SidesComparer(None, lambda: [])
    for name in (
        "comparison.comparison_report",
        "comparison.paired_sides",
        "results.reading",
        "statistics.summary",
    ):
        monkeypatch.setitem(sys.modules, f"ssbench.{name}", None)
    comparer.print(tmp_path / "none.stat", io.StringIO())
    assert "none.stat" in caplog.text


def test_the_two_apis_of_one_account_are_sides(golden_words: GoldenWords):
    found = sides.parse_sides(arguments("swift=@", "s3=@", local_swift=True))
    assert [(side.name, side.api, side.has_account) for side in found] == [
        ("swift", "swift", True),
        ("s3", "s3", True),
    ]
    golden_words(str(found[1]))


def test_urls_of_two_apis_are_sides_with_credentials_of_their_own():
    given = arguments("old=http://h/v1/AUTH_a", "new=s3+http://h")
    parsed = sides.parse_sides(given)
    assert [(side.storage_url, side.api) for side in parsed] == [
        ("http://h/v1/AUTH_a", "swift"),
        ("s3+http://h", "s3"),
    ]
    environ = {"ST_AUTH": "http://h/auth/v1.0", "ST_USER": "a:u", "ST_KEY": "k", "HOME": "/nonexistent"}
    found = sides.make_side_credentials(given, parsed, environ)
    assert [each.storage_urls for each in found] == [("http://h/v1/AUTH_a",), ("s3+http://h",)]
    assert [each.name for each in found] == ["side old", "side new"]
