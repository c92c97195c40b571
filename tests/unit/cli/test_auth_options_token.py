"""A token that was left over in the environment, beside a user and a password."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from asked_commands import ask_auth

from ssbench.cli.auth_options import make_credentials
from ssbench.store.credentials import Credentials

CASE = Path(__file__).parents[2] / "data" / "cases" / "34-token-left-over" / "openrc.sh"
VARIABLES = dict(word.split("=", 1) for word in shlex.split(CASE.read_text().replace("export", "")))
UNTYPED = {name: value for name, value in VARIABLES.items() if name != "OS_AUTH_TYPE"}
YESTERDAY = VARIABLES["OS_AUTH_TOKEN"]
STORAGE = ("-S", "http://h/v1/AUTH_a")


def credentials(environ: dict[str, str], *words: str) -> Credentials:
    return make_credentials(ask_auth(*words), environ)


@pytest.mark.parametrize(
    ("environ", "words", "version", "token"),
    [
        # Without a storage URL a password wins, with one the token, unless a type decides.
        (VARIABLES, (), "3", None),
        (UNTYPED, (), "3", None),
        (VARIABLES | {"OS_AUTH_TYPE": "v3password"}, (), "3", None),
        (UNTYPED, STORAGE, "none", YESTERDAY),
        (VARIABLES, STORAGE, "3", None),
        (VARIABLES | {"OS_AUTH_TYPE": "v3token"}, (), "3", YESTERDAY),
        # What was given as an option is meant.
        (VARIABLES, ("--os-auth-token", "mine"), "3", "mine"),
        (VARIABLES, ("--os-auth-token", "mine", "--os-auth-type", "password"), "3", None),
        (VARIABLES, (*STORAGE, "-T", "mine"), "none", "mine"),
        # Nothing but a token.
        ({n: v for n, v in UNTYPED.items() if n != "OS_PASSWORD"}, (), "3", YESTERDAY),
    ],
)
def test_which_of_password_and_token_is_sent(
    environ: dict[str, str], words: tuple[str, ...], version: str, token: str | None
) -> None:
    found = credentials(environ, *words)
    assert (found.version, found.token) == (version, token)
