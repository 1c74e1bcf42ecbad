"""How a refusal is answered beside its Status."""

from __future__ import annotations

import pytest

from deltaloop.api.status import Status, StatusDetails
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.fault_rules import Fault


@pytest.mark.parametrize(
    ("details", "headers"),
    [
        (None, {}),
        (StatusDetails(), {}),
        (StatusDetails(retry_after_seconds=7), {"Retry-After": "7"}),
    ],
)
def test_retry_after_is_a_header(details: StatusDetails | None, headers: dict[str, str]) -> None:
    assert status_errors.headers_of(Status(code=503, details=details)) == headers


@pytest.mark.parametrize("code", [400, 406, 500])
def test_not_acceptable_error_is_indented(code: int) -> None:
    assert status_errors.is_indented(Status(code=code)) is (code == 406)


def test_unreadable_body_error_has_no_warnings() -> None:
    assert not status_errors.has_warnings(status_errors.unreadable("Pod", "why"))
    assert status_errors.has_warnings(status_errors.bad_request("why"))


@pytest.mark.parametrize(
    ("code", "logged", "fault", "unexpected"),
    [(500, False, "", True), (500, True, "", False), (500, False, "refuse", False), (503, False, "", False)],
)
def test_only_unlogged_error_500_is_unexpected(code: int, logged: bool, fault: str, unexpected: bool) -> None:
    assert status_errors.is_unexpected(code, logged=logged, fault=fault) is unexpected


@pytest.mark.parametrize(("asked", "seconds"), [(None, 1), (0, 1), (5, 5)])
def test_flow_control_error_is_plain_text_with_retry_after(asked: int | None, seconds: int) -> None:
    fault = Fault(do="refuse", code=429, retry_after=asked)
    assert fault.refuses_in_plain
    assert status_errors.headers_of(fault.refusal().status) == {"Retry-After": str(seconds)}
    assert not Fault(do="refuse", code=503).refuses_in_plain


@pytest.mark.parametrize(
    ("code", "details"), [(400, None), (413, None), (500, None), (415, StatusDetails()), (422, StatusDetails())]
)
def test_rejected_patch_has_empty_details_like_the_real_server(code: int, details: StatusDetails | None) -> None:
    error = status_errors.bad_request("m") if code == 400 else status_errors.refused_patch(code, "", "m")
    assert (error.status.code, error.status.details) == (code, details)
