from __future__ import annotations

import pytest

from deltaloop.api.errors import DeltaloopError
from deltaloop.errors import (
    ConfigError,
    CredentialsError,
    RequestTimeoutError,
    ResponseTooLargeError,
    StreamEndedError,
    TransportError,
    WaitTimeoutError,
)


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ({}, (False, True, False)),
        ({"sent": False}, (False, False, False)),
        ({"cut": True}, (False, True, True)),
        ({"cut": True, "sent": False}, (False, False, True)),
        ({"refused": True}, (True, False, False)),
        ({"refused": True, "sent": True, "cut": True}, (True, False, False)),
    ],
)
@pytest.mark.parametrize("kind", [TransportError, RequestTimeoutError, ResponseTooLargeError, StreamEndedError])
def test_transport_errors_have_state_of_request(
    kind: type[TransportError], given: dict[str, bool], known: tuple[bool, bool, bool]
) -> None:
    error = kind("words", method="PUT", path="/x", **given)
    assert (error.refused, error.sent, error.cut) == known
    assert (str(error), error.method, error.path) == ("words", "PUT", "/x")


def test_errors_keep_their_fields() -> None:
    failed = CredentialsError("exec plugin 'x'", "is not there")
    assert (str(failed), failed.source) == ("exec plugin 'x': is not there", "exec plugin 'x'")
    late = WaitTimeoutError("words", condition="ready", last_seen="nothing")
    assert (str(late), late.condition, late.last_seen) == ("words", "ready", "nothing")
    assert isinstance(late, TimeoutError)
    assert isinstance(RequestTimeoutError("x", method="GET", path="/"), TimeoutError)
    for kind in (ConfigError, CredentialsError, TransportError, WaitTimeoutError):
        assert issubclass(kind, DeltaloopError)
