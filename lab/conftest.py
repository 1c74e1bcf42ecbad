"""The settings of the product's suite, for the tests of the laboratory, which are all long ones."""

from __future__ import annotations

from tests.conftest import (
    pytest_collection_finish,
    pytest_plugins,
    pytest_runtest_protocol,
    pytest_sessionfinish,
    warm_interpreter,
)

collect_ignore_glob = ["upgrade/v*"]  # run by the tests of lab/upgrade

__all__ = [
    "pytest_collection_finish",
    "pytest_plugins",
    "pytest_runtest_protocol",
    "pytest_sessionfinish",
    "warm_interpreter",
]
