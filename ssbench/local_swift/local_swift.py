"""``ssbench-master local-swift``: serve the embedded Swift until Ctrl-C."""

from __future__ import annotations

import argparse
import logging
import shlex
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from ssbench.base import interruption
from ssbench.base.errors import ClusterError, ExitCode, UsageError
from ssbench.base.untrusted import read_small_file
from ssbench.cli import output_file
from ssbench.cli.options import (
    FILE,
    FORCE_OPTION,
    PORT,
    SECONDS,
    Argument,
    ValueKind,
    add_options,
    make_argument_type,
    positive_int,
)
from ssbench.fleet.addresses import is_loopback
from ssbench.local_swift import Layout, LocalSwift
from ssbench.local_swift.configuration import SlowTarget
from ssbench.local_swift.run_options import CORES_SETTING, SwiftAsked, add_setting_arguments, parse_release

EXAMPLE = "ssbench-master local-swift --env-file swift.env --duration 3600"

DESCRIPTION = (
    "Serve a real OpenStack Swift on this machine until Ctrl-C, for trials. Prints shell commands that set"
    " the environment variables to authenticate with it. Without --directory its data is in a temporary"
    " folder, which is removed at the end. Needs: pip install swift eventlet"
)

_log = logging.getLogger(__name__)

#: What each file with variables has, and how long it is at most.
_ENV_VARIABLES = {"ST_AUTH", "ST_USER", "ST_KEY", "SWIFT_LOGS", "SWIFT_RECON"}
_MAX_ENV_BYTES = 65536


@dataclass(frozen=True, kw_only=True)
class LocalSwiftAsked(SwiftAsked):
    """What the command is asked."""

    release: str | None
    directory: str | None
    port: int | None
    bind_ip: str
    env_file: Path | None
    force: bool
    policy: Sequence[str] | None
    duration: float | None
    replicas: int | None
    devices: int | None
    object_servers: int | None
    proxies: int | None
    slow: Sequence[str]
    fail: Sequence[str]


ASKED = LocalSwiftAsked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    add_options(
        parser,
        Argument(
            "--directory",
            ValueKind("DIR"),
            "folder for the data, which is kept for the next time",
            default_text="a temporary one",
        ),
        Argument("--port", PORT, "port to serve on", default_text="any free port"),
        Argument("--bind-ip", ValueKind("IP"), "address to serve on", "127.0.0.1"),
        Argument(
            "--env-file",
            FILE,
            "write the shell commands to FILE when Swift is ready, and remove it at the end",
            default_text="standard output",
        ),
        FORCE_OPTION,
        Argument(
            "--policy",
            ValueKind("NAME[:ec:DATA+PARITY]"),
            "storage policy, with erasure coding as in slim:ec:2+1; may be repeated, the first is the default"
            " policy",
            default_text="gold and silver",
            repeated=True,
        ),
        Argument("--duration", SECONDS, "seconds to serve", default_text="until Ctrl-C"),
        Argument(
            "--release",
            ValueKind("RELEASE", make_argument_type(parse_release)),
            "serve this version of Swift, as 2.37.4, which is installed into the user's cache the first time,"
            " or the Swift of a Python or a checkout (a path)",
            default_text="the Swift that is installed here",
        ),
    )
    add_setting_arguments(parser)
    number = ValueKind("NUMBER", positive_int)
    add_options(
        parser.add_argument_group("a larger Swift", "All of it on this machine, each server a process."),
        Argument("--replicas", number, "replicas of everything without erasure coding", default_text="1"),
        Argument(
            "--devices",
            number,
            "devices, called d1, d2, ..., distributed over the object servers",
            default_text="as needed",
        ),
        Argument(
            "--object-servers", number, "object servers, called object-1, object-2, ...", default_text="1"
        ),
        Argument(
            "--proxies",
            number,
            "proxy servers, called proxy-1, proxy-2, ..., which share their tokens",
            default_text="1",
        ),
        Argument(
            "--slow",
            ValueKind("TARGET:DELAY[:SHARE[:WHERE]]"),
            "delay a share of the requests to a device, an object server or a proxy, as in d3:30ms:0.33;"
            " WHERE is request (before the application), open (where the object is opened), block (the same,"
            " and its whole process is blocked) or commit; may be repeated",
            default=[],
            repeated=True,
        ),
        Argument(
            "--fail",
            ValueKind("DEVICE"),
            "have the object server answer 507 for this device; may be repeated",
            default=[],
            repeated=True,
        ),
    )


def run(asked: LocalSwiftAsked) -> ExitCode:
    """Serve until interrupted; raises UsageError, and ClusterError when a server ends by itself."""
    # SIGTERM too, because a shell makes background jobs ignore Ctrl-C.
    with interruption.hold_signals(signal.SIGTERM):
        try:
            return _serve(asked)
        except KeyboardInterrupt:
            return ExitCode.OK
        finally:
            interruption.forget_signals()  # it has ended, and removed everything


def _serve(asked: LocalSwiftAsked) -> ExitCode:
    env_file = asked.env_file
    if env_file:
        output_file.check_output(env_file, force=asked.force or _is_left_behind(env_file))
        # A program that waits for the file must not read one that an earlier Swift left.
        _remove_env_file(env_file)
    with _make_local_swift(asked) as swift, _publish_variables(swift, env_file):
        _warn_of_others(swift)
        _log.info(
            "Swift %s with %s in %s, logs in %s; %s ends it",
            swift.version,
            " and ".join(swift.policies),
            swift.directory,
            swift.log_directory,
            f"Ctrl-C or the end of {asked.duration:g} s" if asked.duration else "Ctrl-C",
        )
        deadline = time.monotonic() + (asked.duration or float("inf"))
        while all(server.pid for server in swift.servers):
            left = deadline - time.monotonic()
            if left <= 0:
                return ExitCode.OK
            interruption.sleep_interruptibly(min(0.5, left))
        ended = next(server for server in swift.servers if not server.pid)
        raise ClusterError(f"the {ended.name} server ended by itself{ended.tail()}")


def _is_left_behind(env_file: Path) -> bool:
    """Whether a file is one that we wrote for a Swift which was killed, and could not remove it."""
    try:
        words = [
            shlex.split(line) for line in read_small_file(env_file, _MAX_ENV_BYTES).decode().splitlines()
        ]
        found = dict(word.split("=", 1) for _, word in words)
        url = urlsplit(found["ST_AUTH"])
        if (
            {word[0] for word in words} != {"export"}
            or not found.keys() >= _ENV_VARIABLES
            or not url.hostname
        ):
            return False
        with socket.create_connection((url.hostname, url.port or 80), timeout=2):
            return False
    except ConnectionRefusedError:
        _log.info("%s: was left by a Swift that is gone, and is replaced", env_file)
        return True
    except (OSError, ValueError, KeyError):
        return False


def _warn_of_others(swift: LocalSwift) -> None:
    """Warn where other hosts may reach it."""
    if not is_loopback(swift.bind_ip):
        _log.warning(
            "Other hosts may reach %s: whoever does can read, write and delete everything in this Swift."
            " The user (%s) and the key (%s) are no secret, nor are those that may use all accounts (%s, %s)",
            *(swift.bind_ip, swift.user, swift.key, swift.admin, swift.admin_key),
        )


def _make_local_swift(asked: LocalSwiftAsked) -> LocalSwift:
    """Make it, not started yet; raises UsageError."""
    if any(each.startswith(CORES_SETTING) for each in asked.swift_config):
        raise UsageError(
            f"--swift-config {CORES_SETTING}: only a run keeps servers and load apart (taskset does too)"
        )
    wanted = asked.make_trial_swift(asked.release or True)
    swift = LocalSwift(
        asked.directory,
        port=asked.port,
        bind_ip=asked.bind_ip,
        policies=asked.policy or wanted.policies or ("gold", "silver"),
        layout=Layout(
            replicas=asked.replicas or wanted.replicas,
            devices=asked.devices,
            object_servers=asked.object_servers or 1,
            proxies=asked.proxies or 1,
            access_logs=True,
        ),
        swift_settings=wanted.settings,
        swift_filters=wanted.filters,
        release=wanted.release,
    )
    for text in asked.slow:
        slow = SlowTarget.parse(text)
        swift.slow(slow.target, slow.delay, slow.share, slow.where)
    for device in asked.fail:
        swift.fail(device)
    return swift


@contextmanager
def _publish_variables(swift: LocalSwift, env_file: Path | None) -> Iterator[None]:
    """Write the shell commands to the file, which is removed at the end, or to standard output."""
    variables = {
        "ST_AUTH": swift.auth_url,
        "ST_USER": swift.user,
        "ST_KEY": swift.key,
        "SWIFT_LOGS": str(swift.log_directory),
        "SWIFT_RECON": " ".join(swift.recon_urls.values()),
    }
    if len(swift.proxies) > 1:
        variables["SWIFT_PROXIES"] = " ".join(swift.storage_urls)
    with output_file.open_output(env_file or Path("-")) as out:
        out.writelines(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    try:
        with (
            nullcontext()
            if env_file is None
            else interruption.undo_on_interrupt(partial(_remove_env_file, env_file))
        ):
            yield
    finally:
        if env_file:
            _remove_env_file(env_file)


def _remove_env_file(env_file: Path) -> None:
    """Remove a file with variables, if it is there; leave a pipe, a device and standard output alone."""
    if output_file.is_standard_output_name(env_file) or output_file.is_stream_path(env_file):
        return
    try:
        env_file.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{env_file}: cannot be removed: {error.strerror}") from None
