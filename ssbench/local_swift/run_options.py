"""The options that say how the embedded Swift is configured, for its own command and for runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from ssbench.cli import settings
from ssbench.cli.options import FILE, Argument, OptionParser, ValueKind, add_options
from ssbench.local_swift.server_settings import ServerSetting, SwiftConfig, make_filters, read_swift_config
from ssbench.run.trial_swift import TrialSwift

_DESTINATIONS = ("swift_set", "swift_filter", "swift_config")


def add_swift_arguments(parser: OptionParser) -> None:
    """Add the options."""
    add_options(
        parser,
        Argument(
            "--swift-set",
            ValueKind("FILE:SECTION:KEY=VALUE"),
            "a setting of the local Swift's servers, by the names of Swift's documentation, as in"
            " proxy-server:filter:slo:concurrency=8 or object-server:app:splice=yes; FILE * is all servers;"
            " may be repeated",
            default=[],
            repeated=True,
        ),
        Argument(
            "--swift-filter",
            ValueKind("NAME"),
            "add a filter to the pipeline of the local Swift's proxies: one of Swift's, such as encryption or"
            " ratelimit, egg:PACKAGE#NAME or paste:MODULE:FACTORY; may be repeated",
            default=[],
            repeated=True,
        ),
        Argument(
            "--swift-config", FILE, "a YAML file with such settings and filters; the other two options win"
        ),
    )


def make_trial_swift(arguments: argparse.Namespace) -> TrialSwift:
    """Return what the options ask for; raises UsageError, also for options without a local Swift."""
    if not getattr(arguments, "local_swift", True):
        flags = [f"--{name.replace('_', '-')}" for name in _DESTINATIONS]
        settings.refuse_options(arguments, "only the Swift of --local-swift takes settings", *flags)
        return TrialSwift()
    path: Path | None = arguments.swift_config
    config = SwiftConfig() if path is None else read_swift_config(path)
    filters = (*dict.fromkeys((*config.filters, *arguments.swift_filter)),)
    # Refused here, before workers are started.
    given = [str(ServerSetting.parse(each)) for each in arguments.swift_set]
    make_filters(filters)
    return TrialSwift(settings=(*config.settings, *given), filters=filters)
