from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from deltaloop.client import Credential
from deltaloop.client.core.credential import bearer
from deltaloop.client.credentials.credential_cache import CredentialCache
from deltaloop.errors import ConfigError, CredentialsError
from tests.client.fake_transport import logged

EPOCH = 1_800_000_000.0
ONE, TWO, THREE = bearer("planted-1"), bearer("planted-2"), bearer("planted-3")
FAILED = CredentialsError("issuer", "down")


def wall_clock() -> float:
    return EPOCH + asyncio.get_running_loop().time()


class Login:
    """Takes two seconds; gives credentials, with their lifetime from the beginning of the test, or fails."""

    def __init__(self, *outcomes: tuple[Credential, float | None] | Exception) -> None:
        self.outcomes = list(outcomes)
        self.begun = 0
        self.cancelled = 0

    async def __call__(self) -> tuple[Credential, float | None]:
        self.begun += 1
        try:
            await asyncio.sleep(2.0)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        credential, expires_at = outcome
        return credential, None if expires_at is None else EPOCH + expires_at

    def cache(self, *, finishes: bool = False) -> CredentialCache:
        return CredentialCache(self, name="login", shown_as={"issuer": "i"}, wall_clock=wall_clock, finishes=finishes)


def shown(record: logging.LogRecord) -> dict[str, Any]:
    names = ("issuer", "duration", "lifetime", "reason")
    return {name: record.__dict__[name] for name in names if name in record.__dict__}


async def test_concurrent_requests_share_one_login() -> None:
    login = Login((ONE, None))
    cache = login.cache()
    assert await asyncio.gather(*(cache.credential() for _ in range(5))) == [ONE] * 5
    await asyncio.sleep(1e6)
    assert await cache.credential() == ONE
    assert login.begun == 1


async def test_stored_credential_is_used_until_shortly_before_expiry() -> None:
    login = Login((TWO, None))
    cache = login.cache()
    cache.put(ONE, expires_at=EPOCH + 1000.0)
    await asyncio.sleep(989.9)
    assert (await cache.credential(), login.begun) == (ONE, 0)
    await asyncio.sleep(0.1)
    assert (await cache.credential(), login.begun) == (TWO, 1)


async def test_credential_set_before_login_starts_is_used() -> None:
    login = Login()
    cache = login.cache()
    asked = asyncio.create_task(cache.credential())
    await asyncio.sleep(0)
    cache.put(ONE, expires_at=None)
    assert (await asked, login.begun) == (ONE, 0)


@pytest.mark.parametrize("error", [FAILED, ConfigError("the CA cannot be read")])
async def test_failed_login_is_raised_for_one_second(error: Exception) -> None:
    login = Login(error, (ONE, None))
    cache = login.cache()
    depths: list[int] = []
    for _ in range(3):
        with pytest.raises(type(error)) as caught:
            await cache.credential()
        assert caught.value is error
        depths.append(len(caught.traceback))
    assert depths[1] == depths[2], "it does not carry the way of those who had it before"
    assert login.begun == 1
    await asyncio.sleep(0.9)
    with pytest.raises(type(error)):
        await cache.credential()
    await asyncio.sleep(0.1)
    assert (await cache.credential(), login.begun) == (ONE, 2)


@pytest.mark.parametrize("error", [FAILED, ConfigError("the CA cannot be read")])
async def test_credential_is_used_until_expiry_despite_failed_logins(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    login = Login(error, error)
    cache = login.cache()
    cache.put(ONE, expires_at=EPOCH + 1000.0)
    await asyncio.sleep(995.0)
    assert await cache.credential() == ONE
    (record,) = logged(caplog)
    assert (record.levelname, shown(record)) == ("WARNING", {"issuer": "i", "reason": str(error)})
    assert (await cache.credential(), login.begun) == (ONE, 1), "the failure of just now is not given out"
    await asyncio.sleep(2.0)
    with pytest.raises(type(error)):
        await cache.credential()
    assert login.begun == 2
    assert len(logged(caplog)) == 1


async def test_unexpected_error_of_login_is_raised_and_not_cached() -> None:
    login = Login(ZeroDivisionError(), (TWO, None))
    cache = login.cache()
    cache.put(ONE, expires_at=EPOCH + 1000.0)
    await asyncio.sleep(995.0)
    with pytest.raises(ZeroDivisionError):
        await cache.credential()
    assert await cache.credential() == TWO


async def test_rejected_credential_is_renewed_once() -> None:
    login = Login((TWO, None), (THREE, None))
    cache = login.cache()
    cache.put(ONE, expires_at=None)
    assert list(await asyncio.gather(cache.renew(ONE), cache.renew(ONE))) == [TWO, TWO]
    assert await cache.renew(ONE) == TWO, "it was renewed meanwhile"
    assert login.begun == 1
    cache.refuse(TWO)
    assert (await cache.credential(), login.begun) == (THREE, 2)


async def test_login_that_returns_rejected_credential_renews_nothing() -> None:
    login = Login((ONE, None))
    cache = login.cache()
    cache.put(ONE, expires_at=None)
    assert await cache.renew(ONE) is None
    assert (await cache.credential(), login.begun) == (ONE, 1)


async def test_login_is_logged_without_credential(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    cache = Login((ONE, 62.0), (TWO, None)).cache()
    await cache.credential()
    await cache.renew(ONE)
    assert [(record.levelname, shown(record)) for record in logged(caplog)] == [
        ("INFO", {"issuer": "i", "duration": 2.0, "lifetime": 60.0}),
        ("INFO", {"issuer": "i", "duration": 2.0, "lifetime": None}),
    ]
    assert "planted" not in "".join(repr(record.__dict__) for record in logged(caplog))


@pytest.mark.parametrize(("expires_at", "warned"), [(2.0, True), (2.5, False)])
async def test_expired_new_credential_is_used_and_warned(
    expires_at: float, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    cache = Login((ONE, expires_at)).cache()
    assert await cache.credential() == ONE
    records = [record for record in logged(caplog) if record.levelno == logging.WARNING]
    assert [("clock" in record.getMessage(), shown(record)) for record in records] == [(True, {"issuer": "i"})] * warned


@pytest.mark.parametrize("finishes", [False, True])
async def test_login_without_waiting_requests(finishes: bool) -> None:
    login = Login((ONE, None))
    cache = login.cache(finishes=finishes)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await cache.credential()
    assert login.cancelled == (not finishes)
    assert await cache.credential() == ONE
    assert login.begun == (1 if finishes else 2)


async def test_login_task_has_name() -> None:
    cache = Login((ONE, None)).cache()
    asked = asyncio.create_task(cache.credential())
    await asyncio.sleep(1.0)
    assert "login" in {task.get_name() for task in asyncio.all_tasks()}
    await asked


def test_credential_can_be_read_in_other_thread() -> None:
    cache = CredentialCache(Login(), name="login", shown_as={}, wall_clock=lambda: EPOCH)
    cache.put(ONE, expires_at=None)
    found: list[Credential] = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(cache.credential())))
    thread.start()
    thread.join(5.0)
    assert found == [ONE]


@pytest.mark.parametrize("how", ["put", "refuse", "credential", "login", "failure"])
def test_threads_take_turns(how: str) -> None:
    """What changes or reads the state waits for another thread that is at it."""
    held = threading.Event()

    async def login() -> tuple[Credential, float | None]:
        cache._lock.acquire()
        held.set()
        if how == "failure":
            raise FAILED
        return TWO, None

    cache = CredentialCache(login, name="login", shown_as={}, wall_clock=lambda: EPOCH)
    found: list[Credential | Exception] = []

    def work() -> None:
        if how == "put":
            cache.put(ONE, expires_at=None)
        elif how == "refuse":
            cache.refuse(ONE)
        else:
            try:
                found.append(asyncio.run(cache.credential()))
            except CredentialsError as error:
                found.append(error)

    thread = threading.Thread(target=work)
    if how not in ("login", "failure"):
        cache.put(ONE, expires_at=None)
        cache._lock.acquire()
        held.set()
    thread.start()
    assert held.wait(5.0)
    thread.join(0.05)
    assert thread.is_alive(), "it did not wait"
    cache._lock.release()
    thread.join(5.0)
    assert found == {"credential": [ONE], "login": [TWO], "failure": [FAILED]}.get(how, [])
