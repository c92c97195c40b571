"""``ssbench-master local-swift``: serve the embedded Swift by hand."""

from __future__ import annotations

import argparse
import logging
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ssbench.cli import output_file
from ssbench.cli.options import add_force, port
from ssbench.cli.output_file import ReaderGoneError
from ssbench.errors import ClusterError, ExitCode
from ssbench.local_swift import LocalSwift

DESCRIPTION = (
    "Serve a real OpenStack Swift on this machine until Ctrl-C, for trials. Prints the lines that tell a "
    "shell how to authenticate with it. Without --directory it keeps its data in a temporary folder, which "
    "is removed at the end. Needs Swift's packages: pip install swift eventlet"
)

_log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument("--directory", metavar="DIR", help="keep the data there, and serve what is there")
    parser.add_argument("--port", type=port, metavar="PORT", help="port to serve at (default: any free one)")
    parser.add_argument(
        "--bind-ip",
        default="127.0.0.1",
        metavar="IP",
        help="address to serve at (default: %(default)s)",
    )
    parser.add_argument(
        "--env-file",
        type=Path,
        metavar="FILE",
        help="write the lines into this file when Swift is ready, and remove it when Swift ends (stdout)",
    )
    add_force(parser)
    parser.add_argument(
        "--policy",
        action="append",
        metavar="NAME",
        help="a storage policy, the first one is the default; may be repeated (default: gold and silver)",
    )


def run(arguments: argparse.Namespace) -> ExitCode:
    """Serve until interrupted; raises UsageError, and ClusterError when a server ends by itself."""
    policies = arguments.policy or ("gold", "silver")
    env_file: Path | None = arguments.env_file
    try:
        if env_file:
            output_file.check(env_file, force=arguments.force)
            # Nobody who waits for the file is to find that of another Swift.
            env_file.unlink(missing_ok=True)
        with (
            LocalSwift(
                arguments.directory, port=arguments.port, bind_ip=arguments.bind_ip, policies=policies
            ) as swift,
            _variables_told(swift, env_file),
        ):
            _log.info("Swift with %s in %s; Ctrl-C ends it", " and ".join(policies), swift.directory)
            while all(server.pid for server in swift.servers):
                time.sleep(0.5)
            ended = next(server for server in swift.servers if not server.pid)
            raise ClusterError(f"the {ended.name} server ended by itself{ended.tail()}")
    except KeyboardInterrupt:
        return ExitCode.OK


@contextmanager
def _variables_told(swift: LocalSwift, env_file: Path | None) -> Iterator[None]:
    """Write what a shell needs to the file, which is removed in the end, or to standard output."""
    variables = {"ST_AUTH": swift.auth_url, "ST_USER": swift.user, "ST_KEY": swift.key}
    with suppress(ReaderGoneError), output_file.writing(env_file or Path("-")) as out:
        out.writelines(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    try:
        yield
    finally:
        if env_file:
            env_file.unlink(missing_ok=True)
