"""The stores of a suite: what ``--store`` says, and which credentials each has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from asked_commands import ask
from golden_words import GoldenWords

from ssbench.base.errors import UsageError
from ssbench.cli import sides
from ssbench.cli.suite import SuiteAsked
from ssbench.run.bench_options import NamedStore

ST = {"ST_AUTH": "http://h/auth/v1.0", "ST_USER": "test:tester", "ST_KEY": "testing"}
AWS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"}
SWIFT_URL, S3_URL = "http://h:8080/v1/AUTH_a", "s3+http://h:8080"

Made = Callable[..., dict[str, NamedStore]]


def parse(*options: str) -> SuiteAsked:
    return ask("suite", "quick", *options)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    def make(environ: dict[str, str], *options: str, names: tuple[str, ...] = ()) -> dict[str, NamedStore]:
        arguments = parse(*options)
        given = sides.parse_stores(arguments.store, local_swift=arguments.local_swift)
        found = sides.make_named_stores(
            arguments, names or [*given], given, {"HOME": str(tmp_path), **environ}
        )
        return {each.name: each for each in found}

    return make


def test_both_apis_of_the_account_have_its_credentials(made: Made) -> None:
    found = made(ST, names=("swift", "s3"))
    swift, s3 = found["swift"].credentials, found["s3"].credentials
    assert swift is not None
    assert s3 is not None
    assert (swift.user, swift.storage_urls, swift.name) == ("test:tester", (), "store swift")
    # By itself: the S3 API of the server that has the account.
    assert (s3.user, s3.storage_urls, s3.name) == ("test:tester", ("s3+",), "store s3")


def test_the_s3_api_is_at_the_servers_of_the_storage_url(made: Made) -> None:
    found = made(AWS, "-S", SWIFT_URL, "-T", "token", names=("swift", "s3"))
    swift, s3 = found["swift"].credentials, found["s3"].credentials
    assert swift is not None
    assert s3 is not None
    assert (swift.version, swift.token, swift.storage_urls) == ("none", "token", (SWIFT_URL,))
    assert (s3.version, s3.user, s3.token, s3.storage_urls) == ("s3", "a", None, (S3_URL,))


def test_a_store_has_a_url_or_the_variables_of_a_file(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "new.env"
    file.write_text("ST_AUTH=http://n/auth/v1.0\nST_USER=new:user\nexport ST_KEY=k\n")
    found = made(ST, "--store", f"old={SWIFT_URL}/", "--store", f"new=@{file}", "--store", "s3")
    assert [*found] == ["old", "new", "s3"]
    old, new = found["old"].credentials, found["new"].credentials
    assert old is not None
    assert new is not None
    assert (old.user, old.storage_urls) == ("test:tester", (SWIFT_URL,))
    assert (new.user, new.auth_url) == ("new:user", "http://n/auth/v1.0")


def test_a_store_of_a_file_gets_nothing_of_the_account_of_the_options(made: Made, tmp_path: Path) -> None:
    file, ca = tmp_path / "new.env", tmp_path / "ca.pem"
    file.write_text("OS_STORAGE_URL=http://n/v1/AUTH_n\nOS_AUTH_TOKEN=own\n")
    ca.touch()
    options = ("-A", "http://h/auth", "-U", "a:b", "-K", "k", "--os-cacert", str(ca))
    new = made({}, *options, "-S", SWIFT_URL, "-T", "secret", "--store", f"new=@{file}")["new"].credentials
    assert new is not None
    assert (new.token, new.storage_urls, new.ca_file) == ("own", ("http://n/v1/AUTH_n",), str(ca))
    file.write_text("ST_AUTH=http://n/auth/v1.0\nST_USER=new:user\nST_KEY=own\n")
    new = made({}, *options, "--store", f"new=@{file}")["new"].credentials
    assert new is not None
    assert (new.auth_url, new.user, new.key) == ("http://n/auth/v1.0", "new:user", "own")


def test_the_local_swift_has_credentials_of_its_own(made: Made) -> None:
    found = made({}, "--local-swift", names=("swift", "s3"))
    assert [(each.name, each.api, each.credentials) for each in found.values()] == [
        ("swift", "swift", None),
        ("s3", "s3", None),
    ]


@pytest.mark.parametrize(
    ("environ", "options", "names"),
    [
        ({}, ["-S", SWIFT_URL, "-T", "t"], ["s3"]),
        ({}, ["-S", S3_URL], ["s3"]),
        (AWS, ["-S", S3_URL], ["swift"]),
        ({}, [], ["swift"]),
        (ST, ["--store", "old=@none.env"], []),
        (ST, ["--store", "old"], []),
        (ST, ["--store", "old=@"], []),
        (ST, ["--store", "a b=http://h/v1/x"], []),
        (ST, ["--store", "old=nonsense"], []),
        (ST, ["--store", "s3", "--store", "s3"], []),
        (ST, ["--store", f"old={SWIFT_URL}", "--local-swift"], []),
    ],
)
def test_what_is_wrong_is_one_line(
    made: Made, environ: dict[str, str], options: list[str], names: list[str], golden_words: GoldenWords
) -> None:
    with golden_words.raises(UsageError):
        made(environ, *options, names=tuple(names))
