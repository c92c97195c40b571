"""The options that say how the embedded Swift is configured, for its own command and for runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ssbench.base.errors import UsageError
from ssbench.cli.asked import Asked, UnfitOptions, fit_options
from ssbench.cli.options import Argument, OptionParser, ValueKind, add_options, make_argument_type
from ssbench.cli.parser import ValueAfterEquals
from ssbench.run.core_split import parse_cores
from ssbench.run.trial_swift import SHARED_CORES, TrialSwift, is_release, names_settings_file

#: What a value of --swift-config begins with that names cores.
CORES_SETTING = "cores="


def add_swift_arguments(parser: OptionParser) -> None:
    """Add the options of runs."""
    add_options(
        parser,
        Argument(
            "--local-swift",
            ValueKind("RELEASE", make_argument_type(parse_release)),
            "start a real Swift on this machine for the run, and remove it afterwards (needs: pip install"
            " swift eventlet); =2.37.4: that version, installed into the user's cache once; =PATH: that of a"
            " Python or a checkout",
            default=False,
            default_text="none",
            settings={"action": ValueAfterEquals},
        ),
    )
    add_setting_arguments(parser)


def add_setting_arguments(parser: OptionParser) -> None:
    """Add those that say how the Swift is configured."""
    add_options(
        parser,
        Argument(
            "--swift-config",
            ValueKind("WHAT"),
            "configure the local Swift: a setting by the names of Swift's documentation"
            " (proxy-server:filter:slo:concurrency=8, *:app:x=y for all servers),"
            " a filter to add to the pipeline of its proxies (+encryption, +egg:PACKAGE#NAME,"
            " +paste:MODULE:FACTORY), cores=0-1 for its servers alone (default: half of four or more; all:"
            " shared with the load), or a YAML file; may be repeated",
            default=[],
            repeated=True,
        ),
    )


def parse_release(text: str) -> str:
    """Read a version of Swift, or the path of a Python or a checkout; raises ValueError."""
    if is_release(text) or names_settings_file(text) or Path(text).expanduser().exists():
        return text
    raise ValueError(f"{text!r} is not a version such as 2.37.4, a Python that has Swift, or a checkout")


@dataclass(frozen=True, kw_only=True)
class SwiftAsked(Asked):
    """How the embedded Swift is to be configured."""

    swift_config: Sequence[str]

    def make_trial_swift(self, local_swift: bool | str, said: object = None, where: str = "") -> TrialSwift:
        """Return what the options ask for; raises UsageError, also for options without a local Swift.

        ``local_swift`` is whether there is one; a text is its release, or a file for --swift-config.
        ``said`` is the content of such a file, in a suite at ``where``.
        """
        fit_options(self, _UNFIT_OPTIONS, local_swift)
        if not local_swift:
            return TrialSwift()
        # Runs without one do without these, and so does the help.
        from ssbench.local_swift.cluster import LocalSwift  # noqa: PLC0415
        from ssbench.local_swift.configuration import Layout  # noqa: PLC0415
        from ssbench.local_swift.server_settings import (  # noqa: PLC0415
            ServerSetting,
            parse_swift_config,
            read_swift_config,
        )

        release = local_swift if isinstance(local_swift, str) else ""
        if release:
            try:
                parse_release(release)
            except ValueError as error:
                raise UsageError(str(error)) from None
        settings: list[str] = []
        filters: list[str] = []
        files: list[Path] = []
        cores = ""
        for each in self.swift_config:
            if each.startswith(CORES_SETTING):
                cores = _parse_cores(each)
            elif each.startswith("+"):
                filters.append(each[1:])
            elif "=" in each:
                settings.append(str(ServerSetting.parse(each)))
            else:
                files.append(Path(each))
        if names_settings_file(release):
            files, release = [*files, Path(release)], ""
        configs = [*map(read_swift_config, files)]
        if said is not None:
            configs.append(parse_swift_config(said, where))
        policies: tuple[str, ...] = ()
        replicas: int | None = None
        for config in reversed(configs):  # the values of options win, then those of later files
            settings = [*config.settings, *settings]
            filters = [*config.filters, *filters]
            release = release or config.release
            policies = policies or config.policies
            replicas = replicas or config.replicas
        made = TrialSwift(
            settings=tuple(settings),
            filters=tuple(dict.fromkeys(filters)),
            release=release,
            policies=policies,
            replicas=replicas or 1,
            cores=cores,
        )
        # What does not fit is refused here, before workers are started or another way to run is measured.
        LocalSwift(
            policies=policies or ("gold",),
            layout=Layout(replicas=made.replicas),
            swift_settings=settings,
            swift_filters=made.filters,
        )
        return made


def _parse_cores(text: str) -> str:
    """Return what ``cores=WHICH`` names; raises UsageError."""
    which = text.removeprefix(CORES_SETTING)
    if which == SHARED_CORES:
        return which
    try:
        parse_cores(which, os.sched_getaffinity(0))
    except ValueError as error:
        raise UsageError(f"--swift-config {text}: {error}") from None
    return which


_UNFIT_OPTIONS: tuple[UnfitOptions[SwiftAsked, bool | str], ...] = (
    UnfitOptions(
        ("--swift-config",),
        "only the Swift of --local-swift takes settings",
        lambda _, local_swift: not local_swift,
    ),
)
