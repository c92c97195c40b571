"""What commands write as JSON: the kinds of records, of which ``ssbench-master schema`` prints the schema."""

from __future__ import annotations

from importlib import import_module
from typing import cast

#: Name -> (the options that write it, module and class).
KINDS = {
    "report": ("run-scenario --json, report-scenario --json", "ssbench.reports.json_records:Report"),
    "comparison": ("compare --json", "ssbench.comparison.formats:Report"),
    "table": ("compare --json, with a table of many runs", "ssbench.comparison.formats:Table"),
    "capacity": ("run-scenario --sweep or --find with --json", "ssbench.comparison.conclusion:Report"),
    "list": ("list --json", "ssbench.comparison.runs_list:Runs"),
    "trend": ("list --trend --json", "ssbench.comparison.runs_list:Trend"),
    "scenario": ("check-scenario --json", "ssbench.reports.json_run:Outlook"),
    "attribution": ("attribute --json", "ssbench.cluster.json_record:Report"),
    "changes": ("attribute --compare --json", "ssbench.cluster.changes_report:Report"),
    "cleanup": ("cleanup-containers --json", "ssbench.store.swift.cleanup:Report"),
    "settings": ("config --json", "ssbench.cli.config:Report"),
    "workers": ("kill-workers --json", "ssbench.fleet.shutdown:Report"),
}


def find(name: str) -> type:
    """Return the class of a kind of records; raises KeyError."""
    module, _, kind = KINDS[name][1].partition(":")
    return cast(type, getattr(import_module(module), kind))
