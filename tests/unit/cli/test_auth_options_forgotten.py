"""What is dropped of the options of one account where another is meant."""

from __future__ import annotations

import argparse

from ssbench.cli import auth_options


def given_options() -> argparse.Namespace:
    """Return a namespace in which each option of authentication has a value."""
    parser = argparse.ArgumentParser(add_help=False)
    auth_options.add_auth_arguments(parser)
    names = vars(parser.parse_args([])).keys() - {"hide_secrets"}  # no option
    return argparse.Namespace(**dict.fromkeys(names, "given"))


def test_all_that_says_which_account_it_is_is_forgotten() -> None:
    """What stays says how servers are trusted, or names accounts of its own."""
    arguments = given_options()
    auth_options.forget_account(arguments)
    kept = {name for name, value in vars(arguments).items() if value is not None}
    trust = {"auth_option_OS_CACERT", "auth_option_OS_CERT", "auth_option_OS_KEY", "auth_insecure"}
    assert kept == {*trust, "credentials"}


def test_a_store_that_takes_no_token_keeps_all_else() -> None:
    arguments = given_options()
    auth_options.forget_tokens(arguments)
    assert [name for name, value in vars(arguments).items() if value is None] == ["auth_token"]
