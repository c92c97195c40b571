"""Which version of authentication the values mean, and what they lack for it."""

from __future__ import annotations

from typing import Any

import pytest
from golden_words import GoldenWords
from hypothesis import given
from hypothesis import strategies as st

from ssbench.base.errors import UsageError
from ssbench.cli.auth_options import (
    AUTH_OPTIONS,
    AUTH_TYPES,
    check_auth_complete,
    choose_cloud,
    choose_version,
)
from ssbench.store.credentials import AuthVersion

NAMES = [option.variable for option in AUTH_OPTIONS]
TRIO = {"ST_AUTH": "http://h/auth/v1.0", "ST_USER": "a:u", "ST_KEY": "k"}
KEYSTONE = {
    "OS_AUTH_URL": "http://h:5000/v3",
    "OS_USERNAME": "u",
    "OS_PASSWORD": "p",
    "OS_PROJECT_NAME": "q",
    "OS_USER_DOMAIN_NAME": "d",
    "OS_PROJECT_DOMAIN_NAME": "d",
}


def values(*several: dict[str, str], **own: str) -> dict[str, str | None]:
    found: dict[str, str | None] = dict.fromkeys(NAMES)
    for each in (*several, own):
        found |= each
    return found


def version(given: dict[str, str], *variables: dict[str, str], url: str = "", **environ: str) -> AuthVersion:
    return choose_version(values(given), values(*variables, given), url, environ)


def lacking(wanted: AuthVersion, *several: dict[str, str], **own: str) -> str:
    with pytest.raises(UsageError) as caught:
        check_auth_complete(wanted, values(*several, **own))
    return str(caught.value)


@pytest.mark.parametrize(
    ("expected", "given_", "variables", "environ"),
    [
        ("1.0", TRIO, {}, {}),
        ("1.0", {}, TRIO, {}),
        ("3", {}, KEYSTONE, {}),
        ("3", {"ST_USER": "a:u"}, KEYSTONE, {}),  # two of three are no version 1
        ("1.0", {}, TRIO | KEYSTONE, {}),
        ("2.0", {"ST_AUTH_VERSION": "2"}, TRIO, {}),
        ("2.0", {"ST_AUTH_VERSION": "v2.0"}, TRIO, {}),
        ("3", {"OS_IDENTITY_API_VERSION": "3"}, TRIO, {}),
        ("3", {"ST_AUTH_VERSION": "3", "OS_IDENTITY_API_VERSION": "2"}, TRIO, {}),
        ("2.0", {}, TRIO | {"ST_AUTH_VERSION": "2"}, {}),
        # The trio as options wins over a variable of Keystone, but not over its own variable.
        ("1.0", TRIO, {"OS_IDENTITY_API_VERSION": "3"}, {"OS_AUTH_VERSION": "3"}),
        ("3", TRIO, {"ST_AUTH_VERSION": "3"}, {}),
        ("3", {}, TRIO, {"OS_AUTH_VERSION": "3"}),
        ("2.0", {}, TRIO | {"OS_IDENTITY_API_VERSION": "3"}, {"OS_AUTH_VERSION": "2"}),
        # Asked for version 1, with nothing of it: what is there decides.
        ("3", {"ST_AUTH_VERSION": "1"}, KEYSTONE, {}),
        # A type decides, except for a password.
        ("1.0", {}, KEYSTONE | {"OS_AUTH_TYPE": "v1password"}, {}),
        ("2.0", {}, TRIO | {"OS_AUTH_TYPE": "v2password"}, {}),
        ("3", TRIO, {"OS_AUTH_TYPE": "v3applicationcredential"}, {}),
        ("1.0", TRIO, {"OS_AUTH_TYPE": "password"}, {}),
    ],
)
def test_the_version_that_values_mean(
    expected: str, given_: dict[str, str], variables: dict[str, str], environ: dict[str, str]
) -> None:
    assert version(given_, variables, **environ) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://h:5000/v2.0", "2.0"),
        ("http://h:5000/v2.0/", "2.0"),
        ("http://h:5000/identity/v2", "2.0"),
        ("http://h:5000/v3", "3"),
        ("http://v2.example.com", "3"),
        ("http://h:5000/v2.0/tokens", "3"),
        ("", "3"),
    ],
)
def test_a_url_may_say_version_2(url: str, expected: str) -> None:
    """As of swift: what follows the last slash, unless a domain is given, which version 2 has none of."""
    own = {"OS_USERNAME": "u"}
    assert version({}, own, url=url) == expected
    for domain in ("OS_USER_DOMAIN_ID", "OS_PROJECT_DOMAIN_NAME"):
        assert version({}, own, {domain: "d"}, url=url) == "3"


@pytest.mark.parametrize("wrong", ["4", "two", "v", "2.5", "vv3", "-1"])
def test_another_version_is_refused(wrong: str) -> None:
    for given_, variable in (({"ST_AUTH_VERSION": wrong}, {}), ({}, {"OS_IDENTITY_API_VERSION": wrong})):
        with pytest.raises(UsageError, match=f"version '{wrong}': expected 1, 2 or 3"):
            version(given_, TRIO, variable)


def test_another_type_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError) as caught:
        version(TRIO, {"OS_AUTH_TYPE": "kerberos"})
    assert str(caught.value).startswith("authentication type 'kerberos': expected one of password, ")
    assert all(each in str(caught.value) for each in AUTH_TYPES)


@pytest.mark.parametrize(
    ("given_", "variables", "expected"),
    [
        ({}, {}, None),
        ({}, {"OS_CLOUD": "c"}, "c"),
        ({"OS_CLOUD": "c"}, {}, "c"),
        ({"OS_CLOUD": "c"}, TRIO, "c"),
        ({"OS_CLOUD": "c", "ST_AUTH": "u"}, {}, "c"),
        ({}, TRIO | {"OS_CLOUD": "c"}, None),
        ({}, {"ST_AUTH": "u", "OS_CLOUD": "c"}, "c"),  # one of three alone is not version 1
        ({"ST_AUTH": "u"}, {"OS_CLOUD": "c"}, None),
        ({"OS_AUTH_URL": "u"}, {"OS_CLOUD": "c"}, None),
    ],
)
def test_which_cloud(given_: dict[str, str], variables: dict[str, str], expected: str | None) -> None:
    assert choose_cloud(values(given_), values(variables, given_)) == expected


BY_ID = {
    "OS_AUTH_URL": "u",
    "OS_USER_ID": "1",
    "OS_PASSWORD": "p",
    "OS_PROJECT_ID": "2",
}


@pytest.mark.parametrize(
    ("wanted", "given_"),
    [
        ("1.0", TRIO),
        ("1.0", {"OS_AUTH_URL": "u", "OS_USERNAME": "n", "OS_PASSWORD": "p"}),
        ("3", KEYSTONE),
        ("3", BY_ID),
        ("3", {"OS_AUTH_URL": "u", "OS_AUTH_TOKEN": "t"}),
        ("3", {"ST_AUTH": "u", "OS_AUTH_TOKEN": "t", "OS_PROJECT_ID": "2"}),
        (
            "3",
            {
                "OS_AUTH_URL": "u",
                "OS_APPLICATION_CREDENTIAL_ID": "i",
                "OS_APPLICATION_CREDENTIAL_SECRET": "s",
            },
        ),
        ("2.0", {"OS_AUTH_URL": "u", "OS_USERNAME": "n", "OS_PASSWORD": "p", "OS_TENANT_NAME": "t"}),
        ("2.0", {"ST_AUTH": "u", "ST_USER": "t:n", "ST_KEY": "p"}),
        ("2.0", {"OS_AUTH_URL": "u", "OS_USERNAME": "t:n", "OS_PASSWORD": "p"}),
    ],
)
def test_what_is_enough(wanted: AuthVersion, given_: dict[str, str], golden_words: GoldenWords) -> None:
    """And each value is needed."""
    check_auth_complete(wanted, values(given_))
    for name in given_:
        rest = {each: value for each, value in given_.items() if each != name}
        if name == "OS_PROJECT_ID" and "OS_AUTH_TOKEN" in given_:
            continue  # a token is of a project anyway
        golden_words(lacking(wanted, rest))


def test_what_is_not_enough_says_both_ways() -> None:
    half = lacking("1.0", ST_USER="a:u")
    assert "version 1 lacks ST_AUTH, ST_KEY (-A, -U, -K)" in half
    assert "version 3 lacks OS_AUTH_URL, OS_USERNAME or OS_USER_ID, OS_PASSWORD, OS_PROJECT_NAME" in half
    assert "OS_USER_DOMAIN_NAME or OS_USER_DOMAIN_ID" in half
    assert "--local-swift" in half


def test_keystone_is_named_in_words_of_keystone_only() -> None:
    text = lacking("3", TRIO)
    assert "version 1 lacks" not in text
    assert "version 3 lacks OS_PROJECT_NAME or OS_PROJECT_ID" in text
    text = lacking("3", OS_USERNAME="u")
    assert "version 3 lacks OS_AUTH_URL, OS_PASSWORD, OS_PROJECT_NAME" in text


@pytest.mark.parametrize(
    ("given_", "lacks"),
    [
        (BY_ID | {"OS_PROJECT_ID": ""}, "OS_PROJECT_NAME or"),
        ({"OS_AUTH_URL": "u", "OS_AUTH_TYPE": "v3token"}, "OS_AUTH_TOKEN"),
        ({"OS_AUTH_URL": "u", "OS_AUTH_TYPE": "v3applicationcredential"}, "OS_APPLICATION_CREDENTIAL_SECRET"),
        ({"OS_AUTH_URL": "u", "OS_AUTH_TOKEN": "t", "OS_PROJECT_NAME": "p"}, "OS_PROJECT_DOMAIN_NAME or"),
    ],
)
def test_what_each_way_of_keystone_needs(given_: dict[str, str], lacks: str) -> None:
    assert lacks in lacking("3", {name: value for name, value in given_.items() if value})


def test_with_nothing_at_all_it_says_how_to_begin(golden_words: GoldenWords) -> None:
    text = lacking("1.0")
    golden_words(text)
    assert "lacks" not in text


_versions: Any = st.sampled_from(["1.0", "2.0", "3"])


@given(st.dictionaries(st.sampled_from(NAMES), st.just("5ecret")), _versions)
def test_no_message_shows_a_value(some: dict[str, str], wanted: AuthVersion) -> None:
    text = "no way to authenticate: "
    try:
        check_auth_complete(wanted, values(some))
    except UsageError as error:
        text = str(error)
    assert text.startswith("no way to authenticate: ")
    assert "5ecret" not in text
