"""``ssbench-master``: run scenarios, report on them, clean up after them.

The sub-command ``some-name`` is the module ``some_name``, of this package or of the leaf that it is for
(``cluster/attribute.py``, ``local_swift/local_swift.py``). It has DESCRIPTION, EXAMPLE, ``add_arguments`` and
``run``.
"""

from __future__ import annotations

import importlib
import os
import sys
from argparse import SUPPRESS, Namespace, _SubParsersAction
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cache

from ssbench.base import interruption
from ssbench.base.errors import ExitCode, SsbenchError, UsageError, did_you_mean
from ssbench.base.version import __version__
from ssbench.cli import own_program
from ssbench.cli.parser import Parser

#: Sub-command -> what the help says of it. Only the module of the sub-command that is asked for is imported,
#: and what takes long to import (numpy, ZeroMQ, gevent) only by ``run``; what only some calls need by these.
COMMANDS = {
    "run-scenario": "run a scenario and report on it",
    "suite": "run a suite of scenarios, and make one table of them",
    "prepare": "upload the initial objects of a scenario, for runs with --prepared",
    "check-scenario": "say what a scenario would do, or what is wrong with it",
    "report-scenario": "print the report of a stat file",
    "merge": "make one stat file of those of several masters",
    "compare": "compare runs: what changed, and how certain that is",
    "noise": "tell how much equal runs differ, and what it takes to show a change",
    "envelope": "measure what a store can do, by size and operation, in an hour, say",
    "age": "tell from how many objects on a store becomes slower, while it is filled",
    "list": "list the runs in a folder of stat files",
    "conformance": "tell which operations a store carries out, refuses or ignores",
    "attribute": "tell which node was slow, from the logs of Swift",
    "traffic": "tell what the users of a store do, from its logs, and make a scenario of it",
    "export": "write the results of a stat file as CSV, JSON lines or Parquet",
    "schema": "print the JSON Schema of what --json of a sub-command writes",
    "cleanup-containers": "delete the containers that benchmarks made, and everything in them",
    "kill-workers": "tell all connected workers to exit",
    "keygen": "make a key file: only workers that have it can connect",
    "config": "show which options are set, and where: by a file, a variable or a default",
    "completion": "print a script that makes a shell complete commands and options",
    "local-swift": "serve a real Swift on this machine until Ctrl-C, for trials",
}

#: Modules of leaves; and of ``run-scenario`` that of its options, as the other imports all that a run needs.
_MODULES = {
    "attribute": "ssbench.cluster.attribute",
    "local-swift": "ssbench.local_swift.local_swift",
    "traffic": "ssbench.traffic.traffic",
    "run-scenario": "ssbench.cli.run_scenario_options",
}

#: What is meant by other words in the place of a sub-command.
_OTHER_COMMANDS = {
    "version": "--version",
    **dict.fromkeys(("bench", "benchmark", "start", "test"), "run-scenario"),
    **dict.fromkeys(("report", "show", "analyze", "analyse"), "report-scenario"),
    "find": "run-scenario --find",
    "sweep": "run-scenario --sweep",
    **dict.fromkeys(("clean", "cleanup", "delete"), "cleanup-containers"),
    **dict.fromkeys(("ls", "runs", "history"), "list"),
    **dict.fromkeys(("diff", "cmp"), "compare"),
    **dict.fromkeys(("check", "validate"), "check-scenario"),
    **dict.fromkeys(("settings", "env"), "config"),
}

#: Sub-commands that work where a file with settings is wrong.
_COMMANDS_WITHOUT_SETTINGS = ("config", "completion", "schema", "keygen")

_VERBOSE_HELP = "log DEBUG lines too, with time stamps"
_QUIET_HELP = "log warnings and errors only; show no progress"

#: What asks for help, followed by the name of a sub-command or of a topic.
_HELP_WORDS = ("help", "--help", "-h")

_EXIT_CODES = {
    ExitCode.OK: "success",
    ExitCode.FAILED: "it ran to its end, but something failed",
    ExitCode.USAGE: "the command line or a file is wrong",
    ExitCode.CLUSTER: "Swift was unreachable, or refused a request",
    ExitCode.WORKERS: "no worker connected, or all were lost",
    ExitCode.THRESHOLD: "a condition of --fail-if is true, or more operations failed than run-scenario"
    " --give-up-after allows",
    ExitCode.UNDECIDED: "a condition of --fail-if, or of run-scenario --find, is undecided, or there are too"
    " few equal runs for noise",
    ExitCode.NOT_DELIVERED: "an open loop did not reach the requested rate",
    ExitCode.INTERRUPTED: "interrupted",
}

#: Those of every sub-command, and the further ones of some.
_USUAL_CODES = {ExitCode.OK, ExitCode.USAGE, ExitCode.INTERRUPTED}
_FURTHER_CODES = {
    "run-scenario": set(ExitCode),
    "suite": set(ExitCode),
    "noise": set(ExitCode) - {ExitCode.NOT_DELIVERED},
    "envelope": set(ExitCode) - {ExitCode.NOT_DELIVERED},
    "prepare": {ExitCode.FAILED, ExitCode.CLUSTER, ExitCode.WORKERS},
    "age": {ExitCode.FAILED, ExitCode.CLUSTER, ExitCode.WORKERS},
    "report-scenario": {ExitCode.FAILED, ExitCode.THRESHOLD, ExitCode.UNDECIDED, ExitCode.NOT_DELIVERED},
    "compare": {ExitCode.FAILED, ExitCode.THRESHOLD, ExitCode.UNDECIDED},
    "cleanup-containers": {ExitCode.FAILED, ExitCode.CLUSTER},
    "export": {ExitCode.FAILED},
    "kill-workers": {ExitCode.FAILED},
    "conformance": {ExitCode.FAILED, ExitCode.CLUSTER},
    "local-swift": {ExitCode.CLUSTER},
}
_TOPICS_HELP = "Further pages: ssbench-master help auth, exit-codes, scenarios or suites"


def parser(argv: Sequence[str]) -> Parser:
    """Return the parser, with the options of the sub-commands that are in ``argv``."""
    made = Parser(
        prog="ssbench-master",
        description=f"Benchmark suite for OpenStack Swift, ssbench version {__version__}",
        example="ssbench-master run-scenario -f smoke --local-swift --workers 2",
        epilog=_TOPICS_HELP,
        other_names=_OTHER_COMMANDS,
    )
    made.add_argument("--version", action="version", version=f"ssbench {__version__}")
    made.add_argument("-v", "--verbose", action="store_true", help=_VERBOSE_HELP)
    made.add_argument("-q", "--quiet", action="store_true", help=_QUIET_HELP)
    commands = made.add_subparsers(title="sub-commands", metavar="SUBCOMMAND", required=True)
    for name, summary in COMMANDS.items():
        if name not in argv:  # a parser that nobody asks takes longer than all else here
            commands.add_parser(name, help=summary, add_help=False)
            continue
        with own_program.import_faster():
            module = importlib.import_module(_MODULES.get(name) or f"ssbench.cli.{name.replace('-', '_')}")
        command = commands.add_parser(
            name,
            usage=getattr(module, "USAGE", None),
            example=module.EXAMPLE,
            brief=getattr(module, "BRIEF", ()),
            help=summary,
            description=module.DESCRIPTION,
            epilog=_describe_exit_codes(_USUAL_CODES | _FURTHER_CODES.get(name, set())),
        )
        module.add_arguments(command)
        # After the sub-command too. With a default they would undo the same option before it.
        command.add_argument("-v", "--verbose", action="store_true", default=SUPPRESS, help=_VERBOSE_HELP)
        command.add_argument("-q", "--quiet", action="store_true", default=SUPPRESS, help=_QUIET_HELP)
        command.add_opposites()
        command.set_defaults(module=module, refuse=command.error, refuse_unknown=command.refuse_arguments)
    return made


def make_command_parsers() -> Mapping[str, Parser]:
    """Return the parsers of the sub-commands that have settings, and that of ssbench-worker as ``worker``."""
    from ssbench.cli import worker_options

    names = [name for name in COMMANDS if name not in _COMMANDS_WITHOUT_SETTINGS]
    made = find_sub_parsers(parser(names))
    return {**{name: made[name] for name in names}, "worker": worker_options.parser()}


def find_sub_parsers(made: Parser) -> Mapping[str, Parser]:
    """Return the parsers of the sub-commands of ``made`` by their names."""
    (action,) = (each for each in made._actions if isinstance(each, _SubParsersAction))
    return action.choices


def _use_settings(made: Parser, argv: Sequence[str]) -> None:
    """Let the environment and files set what the command line does not; raises UsageError."""
    command = next((each for each in argv if not each.startswith("-")), "")
    if command in COMMANDS and command not in _COMMANDS_WITHOUT_SETTINGS:
        from ssbench.cli import settings

        settings.use_settings(command, find_sub_parsers(made)[command], cache(make_command_parsers), argv)


def _describe_exit_codes(codes: Container[ExitCode]) -> str:
    """Return the last line of the help of a sub-command, on its exit codes."""
    numbers = ", ".join(str(int(code)) for code in _EXIT_CODES if code in codes)
    return f"Exit codes {numbers}: ssbench-master help exit-codes"


def _format_exit_codes() -> str:
    """Return the page on all exit codes."""
    import textwrap

    lines = ["Exit codes of ssbench-master:"]
    for code, text in _EXIT_CODES.items():
        names = [name for name in COMMANDS if code in _USUAL_CODES | _FURTHER_CODES.get(name, set())]
        of = "" if len(names) == len(COMMANDS) else f" ({', '.join(names)})"
        lines += textwrap.wrap(
            f"{int(code):5}  {text}{of}", 80, subsequent_indent=" " * 7, break_on_hyphens=False
        )
    return "\n".join(lines) + "\n"


def _format_topic(name: str) -> str:
    """Return a page that is not the help of a sub-command."""
    if name == "auth":
        from ssbench.cli import auth_options

        return auth_options.format_auth_help()
    if name == "exit-codes":
        return _format_exit_codes()
    from ssbench.scenario import scenario_files as files

    return _format_shipped(
        files.list_shipped_scenarios() if name == "scenarios" else files.list_shipped_suites()
    )


def _format_shipped(entries: Iterable[tuple[str, str]]) -> str:
    """Return names with what each is for: for a program a line each, on a terminal within its width."""
    from ssbench.cli.output_file import measure_terminal
    from ssbench.document.columns import wrap_words

    width = measure_terminal(sys.stdout)
    lines = [f"{name:20}  {purpose}" for name, purpose in entries]
    if width is not None:
        lines = [row for each in lines for row in wrap_words(each.split(" "), 22, columns=max(width, 40))]
    return "\n".join(lines) + "\n"


_TOPICS = ("auth", "exit-codes", "scenarios", "suites")


def _print_page(argv: Sequence[str]) -> bool:
    """Print what is not the help of a sub-command: the first screen, or the page of a topic."""
    if not argv:
        page = _format_first_screen(__version__, COMMANDS)
    elif len(argv) > 1 and argv[-2] in _HELP_WORDS and argv[-1] in _TOPICS:
        page = _format_topic(argv[-1])
    else:
        if argv[0] == "help" and len(argv) == 2 and argv[1] not in COMMANDS and not argv[1].startswith("-"):
            topics = [*COMMANDS, *_TOPICS]
            raise UsageError(
                f"{argv[1]!r} is not one of {', '.join(topics)}{did_you_mean(argv[1], topics)}"
                " (see 'ssbench-master --help')"
            )
        return False
    from ssbench.cli.output_file import open_standard_output

    with open_standard_output() as out:
        out.write(page)
    return True


def main(argv: list[str] | None = None) -> int:
    """Run ``ssbench-master``; return its exit code. Without arguments the process ends at once after it."""
    if argv is not None:
        return _main(argv)
    own_program.hide_secret_options(sys.argv[1:])
    interruption.handle_interrupts("ssbench-master")
    own_program.end_without_freeing()
    return own_program.note_exit_code(_main(sys.argv[1:]))


def _main(argv: list[str]) -> int:
    try:
        if _print_page(argv):
            return ExitCode.OK
        if argv[0] == "help":
            argv = [*argv[1:], "--help"]
        made = parser(argv)
        _use_settings(made, argv)
        arguments, unknown = made.parse_known_args(argv)
        if unknown:  # the parser of all sub-commands would name its own help
            arguments.refuse_unknown(unknown)
        with own_program.explain_memory_errors():
            return _run_command(arguments)
    except SsbenchError as error:
        from ssbench.run import terminal

        terminal.write_line(f"ssbench-master: error: {error}")
        return error.exit_code
    except KeyboardInterrupt:  # where another program calls this
        sys.stderr.write("ssbench-master: interrupted\n")
        return ExitCode.INTERRUPTED


def _run_command(arguments: Namespace) -> int:
    """Do what was asked for; return the exit code."""
    # Here, because --help does without.
    import logging

    from ssbench.cli import output_file, settings
    from ssbench.cli.asked import make_asked

    log = logging.getLogger(__name__)
    output_file.set_up_logging(verbose=arguments.verbose, quiet=arguments.quiet)
    for warning in settings.describe_mistyped(make_command_parsers, os.environ):
        log.warning("%s", warning)
    try:
        asked = make_asked(arguments.module.ASKED, vars(arguments))
        asked.hide_secrets()
        code: ExitCode = arguments.module.run(asked)
    except SsbenchError as error:
        more = (
            settings.describe_option_sources(arguments.sources, str(error))
            if isinstance(error, UsageError)
            else ""
        )
        log.error("%s%s", error, more)
        return error.exit_code
    except KeyboardInterrupt:
        log.error("Interrupted")
        return ExitCode.INTERRUPTED
    return code


_FIRST_SCREEN = """\
ssbench {version}, a benchmark for OpenStack Swift
Try it:     ssbench-master run-scenario -f smoke --local-swift --workers 2
Your Swift: ssbench-master run-scenario -f small --workers 2   (see help auth)
Look again: ssbench-master report-scenario last
Clean up:   ssbench-master cleanup-containers
Help:       ssbench-master COMMAND --help, ssbench-master help auth
"""


def _format_first_screen(version: str, commands: Iterable[str]) -> str:
    """Return some eight lines of 80 columns at most."""
    import textwrap

    wrapped = textwrap.wrap(
        "Commands:   " + ", ".join(commands), 80, subsequent_indent=" " * 12, break_on_hyphens=False
    )
    return _FIRST_SCREEN.format(version=version) + "\n".join(wrapped) + "\n"


if __name__ == "__main__":
    sys.exit(main())
