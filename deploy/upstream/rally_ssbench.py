"""A plug-in for Rally: benchmarks of OpenStack Swift by ssbench, and its verdict as a criterion.

rally --plugin-paths rally_ssbench.py task start rally-task.yaml

Rally needs ssbench in its environment: pip install ssbench. Secrets stay out of the task, which names the
variables of the environment that hold them.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar

from rally import consts, exceptions
from rally.task import atomic, scenario, sla

import ssbench

#: Verdicts of ssbench from the best to the worst.
VERDICTS = ["good", "warned", "undecided", "not delivered", "failed", "interrupted"]

#: Figures that Rally's report shows, by the names that conditions of ssbench have; times in milliseconds.
FIGURES = {
    "ops/s": "rate",
    "MB/s": "mb_per_s",
    "p50 ms": "p50",
    "p95 ms": "p95",
    "p99 ms": "p99",
    "errors": "errors",
}
TITLE = "ssbench: verdict"


class BenchmarkFailedError(exceptions.RallyException):
    """The benchmark could not begin, or failed."""

    error_code = 901
    msg_fmt = "%(verdict)s: %(reasons)s"


@scenario.configure(name="SsbenchSwift.run_scenario")
class RunScenario(scenario.Scenario):
    """Run a scenario of ssbench; each iteration is a whole benchmark, so a few of them are enough."""

    @atomic.action_timer("ssbench.run_scenario")
    def _measure(self, name: str, **options: Any) -> ssbench.RunReport:
        try:
            return ssbench.run_scenario(name, **options)
        except ssbench.SsbenchError as error:
            raise BenchmarkFailedError(verdict="not begun", reasons=str(error)) from None

    def run(
        self,
        scenario: str = "small",
        users: int | None = None,
        seconds: float | None = None,
        operations: int | None = None,
        workers: int = 1,
        local_swift: bool = False,
        auth_url_env: str = "ST_AUTH",
        user_env: str = "ST_USER",
        key_env: str = "ST_KEY",
    ) -> None:
        """Run a scenario.

        :param scenario: a file, or the name of a scenario that comes with ssbench
        :param users: operations in flight at once; by default as the scenario says
        :param seconds: length of the run; by default as the scenario says
        :param operations: number of operations, in place of a length
        :param workers: worker processes on this host
        :param local_swift: measure a small Swift that is started for the run
        :param auth_url_env: variable of the environment with the URL of version 1 authentication
        :param user_env: variable with the user
        :param key_env: variable with the key
        """
        credentials = None
        if not local_swift:
            names = (auth_url_env, user_env, key_env)
            if missing := [name for name in names if not os.environ.get(name)]:
                raise BenchmarkFailedError(verdict="not begun", reasons=f"not set: {', '.join(missing)}")
            auth_url, user, key = (os.environ[name] for name in names)
            credentials = ssbench.Credentials(version="1.0", auth_url=auth_url, user=user, key=key)
        report = self._measure(
            scenario,
            users=users,
            seconds=seconds,
            operations=operations,
            workers=workers,
            credentials=credentials,
            local_swift=local_swift,
        )
        self._show(report)

    def _show(self, report: ssbench.RunReport) -> None:
        """Add figures and the verdict to Rally's report."""
        found = {title: report.figure(name) for title, name in FIGURES.items()}
        rows = [
            [title, value * 1000 if title.endswith(" ms") else value]
            for title, value in found.items()
            if value is not None
        ]
        self.add_output(
            additive={"title": "ssbench", "chart_plugin": "StatsTable", "data": rows},
        )
        reasons = "; ".join(reason.text for reason in report.verdict.reasons) or "-"
        self.add_output(
            complete={
                "title": TITLE,
                "chart_plugin": "Table",
                "data": {
                    "cols": ["verdict", "reasons", "stat file"],
                    "rows": [[report.verdict.outcome.value, reasons, str(report.path)]],
                },
            }
        )


@sla.configure(name="ssbench_verdict")
class VerdictSLA(sla.SLA):
    """The worst verdict that iterations may have, such as "warned"; none at all is worse than each."""

    CONFIG_SCHEMA: ClassVar = {"type": "string", "$schema": consts.JSON_SCHEMA, "enum": VERDICTS}

    def __init__(self, criterion_value: str) -> None:
        super().__init__(criterion_value)
        self.worst = 0

    def add_iteration(self, iteration: dict[str, Any]) -> bool:
        """Judge one iteration with those before it."""
        tables = [each for each in iteration["output"]["complete"] if each["title"] == TITLE]
        known = [VERDICTS.index(table["data"]["rows"][0][0]) for table in tables]
        return self._take(max(known, default=len(VERDICTS)))

    def merge(self, other: VerdictSLA) -> bool:
        """Judge what another process of Rally has seen too."""
        return self._take(other.worst)

    def _take(self, verdict: int) -> bool:
        self.worst = max(self.worst, verdict)
        self.success = self.worst <= VERDICTS.index(self.criterion_value)
        return self.success

    def details(self) -> str:
        """Return what Rally prints."""
        worst = [*VERDICTS, "none"][self.worst]
        return f"Worst verdict of ssbench: {worst}, at most {self.criterion_value} - {self.status()}"
