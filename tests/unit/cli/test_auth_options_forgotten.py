"""What is dropped of the options of one account where another is meant."""

from __future__ import annotations

from asked_commands import ask_auth

from ssbench.cli import auth_options


def test_all_that_says_which_account_it_is_is_forgotten() -> None:
    """What stays says how servers are trusted, or names accounts of its own."""
    words = [
        word for each in auth_options.AUTH_OPTIONS for word in (each.flags[-1], f"given for {each.variable}")
    ]
    given = ask_auth(*words, "-S", "http://h", "-T", "token", "--credentials", "file", "--insecure")
    kept = auth_options.forget_account(given)
    assert {name for name, value in kept.auth_values.items() if value} == {"OS_CACERT", "OS_CERT", "OS_KEY"}
    assert (kept.auth_storage_urls, kept.auth_token) == (None, None)
    assert (kept.credentials, kept.auth_insecure) == (given.credentials, True)
    assert all(given.auth_values.values())


def test_no_secret_is_shown() -> None:
    assert "secret" not in repr(ask_auth("-K", "secret", "-T", "secret"))
