"""What commands write as JSON: the kinds of records, of which ``ssbench-master schema`` prints the schema."""

from __future__ import annotations

from importlib import import_module
from typing import cast

#: Name -> (the options that write it, module and class).
JSON_KINDS = {
    "report": ("run-scenario --json, report-scenario --json", "ssbench.reports.json_records:RunReportRecord"),
    "comparison": ("compare --json", "ssbench.comparison.formats:ComparisonReport"),
    "table": ("compare --json, with a table of many runs", "ssbench.comparison.formats:FiguresTable"),
    "capacity": (
        "run-scenario --sweep or --find with --json",
        "ssbench.comparison.conclusion:CapacityReport",
    ),
    "list": ("list --json", "ssbench.comparison.runs_list:RunsList"),
    "trend": ("list --trend --json", "ssbench.comparison.runs_list:Trend"),
    "scenario": ("check-scenario --json", "ssbench.reports.json_run:OutlookRecord"),
    "attribution": ("attribute --json", "ssbench.cluster.json_record:AttributionReport"),
    "changes": ("attribute --compare --json", "ssbench.cluster.changes_report:ChangesReport"),
    "cleanup": ("cleanup-containers --json", "ssbench.store.swift.cleanup:CleanUpReport"),
    "settings": ("config --json", "ssbench.cli.config:ConfigReport"),
    "workers": ("kill-workers --json", "ssbench.fleet.shutdown:ShutdownReport"),
}


def find_record_class(name: str) -> type:
    """Return the class of a kind of records; raises KeyError."""
    module, _, kind = JSON_KINDS[name][1].partition(":")
    return cast(type, getattr(import_module(module), kind))
