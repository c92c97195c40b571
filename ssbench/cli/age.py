"""``ssbench-master age``: how a store becomes slower, or does not, with more and more objects."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ssbench.base.errors import ExitCode
from ssbench.base.option import OptionGroup
from ssbench.base.text_values import parse_size
from ssbench.cli import option_table
from ssbench.cli.option_table import RunAsked
from ssbench.cli.options import (
    COUNT,
    SECONDS,
    Argument,
    ValueKind,
    add_options,
    make_argument_type,
    positive_rate,
)
from ssbench.cli.own_program import import_faster
from ssbench.cli.suite import BRIEF_OF_PLANS, add_arguments_of_plans
from ssbench.reports.products import Product
from ssbench.run.bench_options import RunOptions

if TYPE_CHECKING:
    from ssbench.comparison.sweep_variables import Sweep
    from ssbench.plans.steps_work import PhasedStepsWork
    from ssbench.scenario.ad_hoc import LoadPhase

USAGE = "%(prog)s [option ...]"

EXAMPLE = "ssbench-master age --objects 1e4..1e7 --workers 4 --html age.html"

#: What the short help shows.
BRIEF = (
    "--objects",
    "--object-size",
    "--operations",
    "--user-count",
    "--run-seconds",
    "--fill-rate",
    *BRIEF_OF_PLANS,
)

DESCRIPTION = (
    "Fill a container with more and more objects, measure each operation alone at fixed numbers of them, and"
    " tell from how many objects on a rate changes, also that of the uploads. It may take days: --resume"
    " continues. See doc/capacity.rst."
)


@dataclass(frozen=True, kw_only=True)
class AgeAsked(RunAsked):
    """What ``age`` is asked."""

    objects: Sweep
    object_size: str
    operations: tuple[LoadPhase, ...]
    user_count: int
    run_seconds: float
    fill_rate: float | None  # None: as fast as the users can
    container_count: int | None
    policy: str | None
    set: Sequence[tuple[str, Any]]


ASKED = AgeAsked


def _parse_numbers(text: str) -> Sweep:
    """Parse ``1e4..1e6``; raises ValueError."""
    from ssbench.comparison.sweep_variables import parse_sweep

    return parse_sweep(f"objects={text}")


def _check_size(text: str) -> str:
    """Return a size, or two as in ``4kB..64kB``, as it is; raises ValueError."""
    for each in text.split("..", 1):
        parse_size(each)
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    group = parser.add_argument_group("load")
    add_options(
        group,
        Argument(
            "--objects",
            ValueKind("NUMBERS", make_argument_type(_parse_numbers)),
            "how many objects there are when operations are measured: 1e4,3e4,1e5 or 1e4..1e6 (doubled)",
            "1e4..1e6",
            "1e4..1e6",
        ),
        Argument(
            "--object-size",
            ValueKind("SIZE", make_argument_type(_check_size)),
            "size of an object, or two as in 4kB..64kB",
            "4kB",
        ),
        Argument(
            "--operations",
            option_table.PHASES._replace(metavar="NAMES"),
            "operations to measure one after another; they must leave as many objects as there were",
            "update,read,list",
            "update,read,list",
        ),
        Argument("-u --user-count", COUNT, "maximum number of operations, and of uploads, in flight", 8),
        Argument("-r --run-seconds", SECONDS, "time for which each operation is measured", 60.0),
        Argument(
            "--fill-rate",
            ValueKind("N", positive_rate),
            "upload N objects a second",
            default_text="as fast as the users can",
        ),
        option_table.CONTAINER_COUNT_OPTION,
        option_table.POLICY_OPTION,
        option_table.SET_OPTION,
        option_table.make_resume_option(
            "continue the last call in the folder of results: objects that are there are kept"
        ),
    )
    option_table.add_record_options(group, RunOptions, OptionGroup.LOAD)
    option_table.add_local_swift_arguments(group)
    add_arguments_of_plans(parser, Product.CAPACITIES)


def run(asked: AgeAsked) -> ExitCode:
    """Measure a store with more and more objects; raises SsbenchError where a run cannot begin."""
    with import_faster():
        from ssbench.cli.run_scenario import PlanFiles, begin_plan, start_plan
        from ssbench.plans.age_work import make_age_work
        from ssbench.run.plan import PlanSettings

    asked, place = begin_plan(asked)

    def make_work(options: RunOptions) -> PhasedStepsWork:
        values = {
            name: getattr(asked, name) for name in ("user_count", "run_seconds", "container_count", "policy")
        }
        return make_age_work(
            asked.objects,
            options,
            size=asked.object_size,
            operations=asked.operations,
            values={key: value for key, value in values.items() if value is not None},
            changes=asked.set,
            fill_rate=asked.fill_rate,
        )

    files = PlanFiles("age", "age", fills=True)
    plan = PlanSettings(is_quiet=True)
    return start_plan(asked, place, files, make_work, plan, users=asked.user_count)
