"""CronJob: its schedule, and the Jobs that it describes (``job``); its time zone is not looked at.

Source: Kubernetes pkg/apis/batch/validation; pkg/registry/batch/cronjob/strategy.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.apiserver.core.kinds.job import job_spec_warnings
from deltaloop.apiserver.core.kinds.pod_warnings import name_warnings
from deltaloop.apiserver.core.kinds.schedules import schedule_problem
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import Place, shown
from deltaloop.schemas.faults import FieldError, invalid_value
from deltaloop.schemas.json_values import at, text

_JOB: Final = "spec.jobTemplate.spec"


def _schedule_errors(place: Place) -> Iterator[FieldError]:
    problem = schedule_problem(place.text)
    if problem:
        yield invalid_value(place.path, shown(place.value), problem)


def _update_warnings(_before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    if "TZ" in text(at(after, "spec", "schedule")):
        yield (
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
            "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        )


STRATEGY: Final = Strategy(
    warn_update=_update_warnings,
    checks={"schedule": _schedule_errors},
    warn_new=name_warnings,
    warn_wanted=lambda cron_job: job_spec_warnings(at(cron_job, "spec", "jobTemplate", "spec"), _JOB),
)
