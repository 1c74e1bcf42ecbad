"""CronJob: validation of schedules and job templates, with the error messages of robfig/cron.

Source: Kubernetes pkg/apis/batch/validation; pkg/registry/batch/cronjob/strategy.go; github.com/robfig/cron v3,
parser.go.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, text
from deltaloop.apiserver.core.kinds.job import job_spec_warnings
from deltaloop.apiserver.core.kinds.pod_warnings import name_warnings
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import Place
from deltaloop.schemas.field_errors import SchemaError, invalid_value, not_supported

_MONTHS: Final = {
    name: place
    for place, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_DAYS: Final = {name: place for place, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_FIELDS: Final[tuple[tuple[int, int, Mapping[str, int]], ...]] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_WORDS: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")


def schedule_problem(schedule: str) -> str:
    """Return the error in a schedule, or an empty string. The time after ``@every`` is not checked."""
    if schedule.startswith("@"):
        known = schedule in _WORDS or schedule.startswith("@every ")
        return "" if known else f"unrecognized descriptor: {schedule}"
    parts = schedule.split()
    if len(parts) != len(_FIELDS):
        return f"expected exactly {len(_FIELDS)} fields, found {len(parts)}: [{' '.join(parts)}]"
    try:
        for part, (least, most, names) in zip(parts, _FIELDS, strict=True):
            for expression in filter(None, part.split(",")):
                _check(expression, least, most, names)
    except ValueError as error:
        return str(error)
    return ""


def _check(expression: str, least: int, most: int, names: Mapping[str, int]) -> None:
    range_and_step = expression.split("/")
    ends = range_and_step[0].split("-")
    if ends[0] in ("*", "?"):
        start, end = least, most
    else:
        start = end = _number(ends[0], names)
        if len(ends) > 2:
            raise ValueError(f"too many hyphens: {expression}")
        if len(ends) == 2:
            end = _number(ends[1], names)
    if len(range_and_step) > 2:
        raise ValueError(f"too many slashes: {expression}")
    step = 1
    if len(range_and_step) == 2:
        step = _number(range_and_step[1], {})
        end = most if len(ends) == 1 else end
    if start < least:
        raise ValueError(f"beginning of range ({start}) below minimum ({least}): {expression}")
    if end > most:
        raise ValueError(f"end of range ({end}) above maximum ({most}): {expression}")
    if start > end:
        raise ValueError(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {expression}")


def _number(text: str, names: Mapping[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    digits = text.removeprefix("+").removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        raise ValueError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if int(text) < 0:
        raise ValueError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


_ZONE: Final = re.compile("[-A-Za-z0-9_+.]{1,14}")
_LONGEST_NAME: Final = 52
_JOB: Final = "spec.jobTemplate.spec"


def _schedule_errors(place: Place) -> Iterator[SchemaError]:
    problem = schedule_problem(place.text)
    if problem:
        yield invalid_value(place.path, place.value, problem)
    if "TZ" in place.text:
        yield invalid_value(place.path, place.value, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")


def _zone_errors(place: Place) -> Iterator[SchemaError]:
    zone = place.text
    parts = zone.split("/")
    if not zone:
        yield invalid_value(place.path, "", "timeZone must be nil or non-empty string")
    elif any(part in (".", "..") or part.startswith("-") or not _ZONE.fullmatch(part) for part in parts):
        yield invalid_value(place.path, zone, f"unknown time zone {zone}")
    elif zone.lower() == "local":
        yield invalid_value(place.path, zone, "timeZone must be an explicit time zone")
    elif not _is_known(zone):
        yield invalid_value(place.path, zone, f"unknown time zone {zone}")


def _is_known(zone: str) -> bool:
    """Return whether the time zone database contains a name, or True if no database is available."""
    for name, found in ((zone, True), ("Europe/London", False)):
        try:
            zoneinfo.ZoneInfo(name)
        except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
            continue
        return found
    return True


def _template_errors(place: Place) -> Iterator[SchemaError]:
    spec = place.fields.get("spec")
    if at(spec, "selector") is not None:
        yield invalid_value(place.below("spec.selector"), None, "`selector` will be auto-generated")
    if at(spec, "manualSelector") is True:
        yield not_supported(place.below("spec.manualSelector"), "true", ("nil", "false"))


def _new_errors(cron_job: Mapping[str, object]) -> Iterator[SchemaError]:
    name = text(at(cron_job, "metadata", "name"))
    if len(name) > _LONGEST_NAME:
        yield invalid_value("metadata.name", name, f"must be no more than {_LONGEST_NAME} characters")


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
