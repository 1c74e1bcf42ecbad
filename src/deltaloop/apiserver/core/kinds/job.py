"""Job: a new one selects its pods by its own uid, unless its author selects them.

Source: Kubernetes pkg/registry/batch/job/strategy.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from deltaloop.apiserver.core.kinds.validation.workloads import job_selector_errors
from deltaloop.apiserver.core.strategy import Fields, Given, Stored, Strategy
from deltaloop.schemas.faults import FieldError
from deltaloop.schemas.json_values import at, mapping

_JOB_UID: Final = ("batch.kubernetes.io/controller-uid", "controller-uid")
_JOB_NAME: Final = ("batch.kubernetes.io/job-name", "job-name")


def _finish_new(job: Fields, _store: Stored, _given: Given) -> Iterator[FieldError]:
    spec, metadata = mapping(job.get("spec")), job["metadata"]
    if spec.get("manualSelector") is not True:
        template = dict(mapping(spec.get("template")))
        template_metadata = dict(mapping(template.get("metadata")))
        labels = dict(mapping(template_metadata.get("labels")))
        labels.update(dict.fromkeys(_JOB_UID, metadata["uid"]))
        labels.update(dict.fromkeys(_JOB_NAME, metadata.get("name", "")))
        template_metadata["labels"] = labels
        selector = dict(mapping(spec.get("selector")))
        selector["matchLabels"] = {**mapping(selector.get("matchLabels")), _JOB_UID[0]: metadata["uid"]}
        job["spec"] = {**spec, "selector": selector, "template": {**template, "metadata": template_metadata}}
        if metadata.get("labels", {}) == mapping(at(spec, "template", "metadata", "labels")):
            metadata["labels"] = dict(labels)
    return job_selector_errors(job)


STRATEGY: Final = Strategy(finish_new=_finish_new)
