"""CronJob: its schedule, and the Jobs that it describes (``job``).

Source: Kubernetes pkg/apis/batch/validation; pkg/registry/batch/cronjob/strategy.go.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, text
from deltaloop.apiserver.core.kinds.job import job_spec_warnings
from deltaloop.apiserver.core.kinds.pod_warnings import name_warnings
from deltaloop.apiserver.core.kinds.schedules import schedule_problem
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import Place, shown
from deltaloop.schemas.faults import FieldError, invalid_value, not_supported

_ZONE: Final = re.compile("[-A-Za-z0-9_+.]{1,14}")
_LONGEST_NAME: Final = 52
_JOB: Final = "spec.jobTemplate.spec"


def _schedule_errors(place: Place) -> Iterator[FieldError]:
    problem = schedule_problem(place.text)
    if problem:
        yield invalid_value(place.path, shown(place.value), problem)
    if "TZ" in place.text:
        text_ = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield invalid_value(place.path, shown(place.value), text_)


def _zone_errors(place: Place) -> Iterator[FieldError]:
    zone = place.text
    parts = zone.split("/")
    if not zone:
        yield invalid_value(place.path, '""', "timeZone must be nil or non-empty string")
    elif any(part in (".", "..") or part.startswith("-") or not _ZONE.fullmatch(part) for part in parts):
        yield invalid_value(place.path, shown(zone), f"unknown time zone {zone}")
    elif zone.lower() == "local":
        yield invalid_value(place.path, shown(zone), "timeZone must be an explicit time zone")
    elif not _is_known(zone):
        yield invalid_value(place.path, shown(zone), f"unknown time zone {zone}")


def _is_known(zone: str) -> bool:
    """Tell whether the database of time zones has a name; without a database, all of them are let pass."""
    for name, found in ((zone, True), ("Europe/London", False)):
        try:
            zoneinfo.ZoneInfo(name)
        except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
            continue
        return found
    return True


def _template_errors(place: Place) -> Iterator[FieldError]:
    spec = place.fields.get("spec")
    if at(spec, "selector") is not None:
        yield invalid_value(place.below("spec.selector"), "null", "`selector` will be auto-generated")
    if at(spec, "manualSelector") is True:
        yield not_supported(place.below("spec.manualSelector"), "true", ("nil", "false"))


def _new_errors(cron_job: Mapping[str, object]) -> Iterator[FieldError]:
    name = text(at(cron_job, "metadata", "name"))
    if len(name) > _LONGEST_NAME:
        yield invalid_value("metadata.name", shown(name), f"must be no more than {_LONGEST_NAME} characters")


def _update_warnings(_before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    if "TZ" in text(at(after, "spec", "schedule")):
        yield (
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
            "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        )


STRATEGY: Final = Strategy(
    warn_update=_update_warnings,
    checks={"job_template": _template_errors, "schedule": _schedule_errors, "time_zone": _zone_errors},
    validate_new=_new_errors,
    warn_new=name_warnings,
    warn_wanted=lambda cron_job: job_spec_warnings(at(cron_job, "spec", "jobTemplate", "spec"), _JOB),
)
