"""What commands are asked by a command line, as the programs read it."""

from __future__ import annotations

from typing import Any

from ssbench.cli import master
from ssbench.cli.asked import make_asked
from ssbench.cli.auth_options import AuthAsked, add_auth_arguments
from ssbench.cli.parser import Parser


def ask_auth(*words: str) -> AuthAsked:
    """Return what is asked by options of authentication alone."""
    parser = Parser()
    add_auth_arguments(parser)
    return make_asked(AuthAsked, vars(parser.parse_args(words)))


def ask(*words: str, settings: bool = False, **changes: Any) -> Any:
    """Return the record of a command; ``settings``: with what files and variables set.

    ``changes`` replace what was parsed.
    """
    made = master.parser(words)
    if settings:
        master._use_settings(made, words)
    parsed = made.parse_args(words)
    return make_asked(parsed.module.ASKED, {**vars(parsed), **changes})
