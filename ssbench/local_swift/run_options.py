"""The options that say how the embedded Swift is configured, for its own command and for runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ssbench.cli.asked import Asked, UnfitOptions, fit_options
from ssbench.cli.options import FILE, Argument, OptionParser, ValueKind, add_options
from ssbench.local_swift.server_settings import ServerSetting, SwiftConfig, make_filters, read_swift_config
from ssbench.run.trial_swift import TrialSwift


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


@dataclass(frozen=True, kw_only=True)
class SwiftAsked(Asked):
    """How the embedded Swift is to be configured."""

    swift_set: Sequence[str]
    swift_filter: Sequence[str]
    swift_config: Path | None
    local_swift: bool = True  # of a run; its own command starts one

    def make_trial_swift(self) -> TrialSwift:
        """Return what the options ask for; raises UsageError, also for options without a local Swift."""
        if not fit_options(self, _UNFIT_OPTIONS, None).local_swift:
            return TrialSwift()
        config = SwiftConfig() if self.swift_config is None else read_swift_config(self.swift_config)
        filters = (*dict.fromkeys((*config.filters, *self.swift_filter)),)
        # Refused here, before workers are started.
        given = [str(ServerSetting.parse(each)) for each in self.swift_set]
        make_filters(filters)
        return TrialSwift(settings=(*config.settings, *given), filters=filters)


_UNFIT_OPTIONS: tuple[UnfitOptions[SwiftAsked, None], ...] = (
    UnfitOptions(
        ("--swift-set", "--swift-filter", "--swift-config"),
        "only the Swift of --local-swift takes settings",
        lambda asked, _: not asked.local_swift,
    ),
)
