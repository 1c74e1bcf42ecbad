"""Which models there are, and what each brings."""

from __future__ import annotations

import pytest

from deltaloop.api import kinds
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.testing.cluster_models.core.models import NAMES, kinds_of, with_what_they_need
from tests.having import having


def test_model_includes_its_dependencies() -> None:
    assert with_what_they_need(["deployments"]) == ("pods", "volumes", "replicasets", "deployments")
    assert with_what_they_need(["volumes"]) == ("volumes",)
    assert with_what_they_need([]) == NAMES


def test_kinds_of_models_are_unique() -> None:
    found = kinds_of(NAMES)
    assert len({*found}) == len(found)
    assert kinds.DEPLOYMENT in found
    assert kinds_of(("volumes",)) == (kinds.PERSISTENT_VOLUME_CLAIM, kinds.PERSISTENT_VOLUME, kinds.STORAGE_CLASS)


def test_unknown_model_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="models")):
        with_what_they_need(["jobs", "deploymets"])
