"""When a plugin is run, in virtual time: the plugin is a script of the test."""

from __future__ import annotations

import asyncio
import io
import logging
import sys

import msgspec
import pytest

from deltaloop.api.times import format_time, from_epoch
from deltaloop.client import Credential, ExecCredentials, ExecPlugin, InteractiveMode
from deltaloop.client.core.credential import bearer
from deltaloop.client.core.exec_credential import V1, PluginCall, PluginEnd, PluginOutcome
from deltaloop.client.credentials.exec_plugin import stdin_is_terminal
from deltaloop.errors import CredentialsError
from tests.client.fake_transport import logged

EPOCH = 1_800_000_000.0


def wall_clock() -> float:
    return EPOCH + asyncio.get_running_loop().time()


class FakePlugin:
    """Takes a second a run and gives the scripted outcomes in turn."""

    def __init__(self, *outcomes: PluginOutcome) -> None:
        self.outcomes = list(outcomes)
        self.calls: list[PluginCall] = []
        self.ended = 0

    async def __call__(self, call: PluginCall) -> PluginOutcome:
        self.calls.append(call)
        try:
            await asyncio.sleep(1.0)
        except asyncio.CancelledError:
            self.ended += 1
            raise
        return self.outcomes.pop(0)

    def credentials(self, plugin: ExecPlugin | None = None, *, is_terminal: bool = False) -> ExecCredentials:
        return ExecCredentials(
            plugin or ExecPlugin(command="login"), run=self, is_terminal=lambda: is_terminal, wall_clock=wall_clock
        )


def token(name: str, *, expires_at: float | None = None) -> PluginOutcome:
    status = {"token": name}
    if expires_at is not None:
        status["expirationTimestamp"] = format_time(from_epoch(EPOCH + expires_at))
    return PluginOutcome(
        output=msgspec.json.encode({"kind": "ExecCredential", "apiVersion": V1, "status": status}),
        stderr="planted-stderr",
    )


FAILED = PluginOutcome(code=1, stderr="not logged in")


async def test_plugin_runs_when_credential_is_needed() -> None:
    plugin = FakePlugin(token("planted-one"))
    source = plugin.credentials()
    assert not plugin.calls
    assert await source.credential() == bearer("planted-one")
    await asyncio.sleep(1e6)
    assert await source.credential() == bearer("planted-one")
    assert len(plugin.calls) == 1
    assert repr(source) == "<ExecCredentials login>"


async def test_concurrent_requests_share_one_plugin_run() -> None:
    plugin = FakePlugin(token("one"))
    source = plugin.credentials()
    assert await asyncio.gather(*(source.credential() for _ in range(50))) == [bearer("one")] * 50
    assert len(plugin.calls) == 1


async def test_plugin_runs_again_shortly_before_expiry() -> None:
    plugin = FakePlugin(token("one", expires_at=3601.0), token("two", expires_at=7200.0))
    source = plugin.credentials()
    await source.credential()
    await asyncio.sleep(3589.9)
    assert await source.credential() == bearer("one")
    await asyncio.sleep(0.1)
    assert await source.credential() == bearer("two")


async def test_expired_plugin_token_is_used_once_and_warned(caplog: pytest.LogCaptureFixture) -> None:
    plugin = FakePlugin(token("one", expires_at=-60.0), token("two"))
    source = plugin.credentials()
    assert await source.credential() == bearer("one")
    assert await source.credential() == bearer("two")
    assert "clock" in logged(caplog)[0].getMessage()


async def test_rejected_plugin_credential_is_replaced_once() -> None:
    plugin = FakePlugin(token("one"), token("two"))
    source = plugin.credentials()
    first = await source.credential()
    assert await asyncio.gather(*(source.renew(first) for _ in range(3))) == [bearer("two")] * 3
    assert await source.renew(first) == bearer("two"), "a late one gets what there is"
    assert len(plugin.calls) == 2


async def test_plugin_that_repeats_rejected_token_is_not_run_for_ten_seconds() -> None:
    plugin = FakePlugin(token("one"), token("one"), token("two"))
    source = plugin.credentials()
    first = await source.credential()
    assert await source.renew(first) is None
    assert await source.renew(first) is None
    assert await source.credential() == first
    assert len(plugin.calls) == 2
    await asyncio.sleep(10.0)
    assert await source.renew(first) == bearer("two")


async def test_failed_plugin_run_is_not_repeated_within_second() -> None:
    plugin = FakePlugin(FAILED, token("one"))
    source = plugin.credentials()
    for _ in range(3):
        with pytest.raises(CredentialsError, match=r"'login': .*exit code 1.*not logged in"):
            await source.credential()
    assert len(plugin.calls) == 1
    await asyncio.sleep(1.0)
    assert await source.credential() == bearer("one")


async def test_failed_plugin_run_before_expiry_keeps_token(caplog: pytest.LogCaptureFixture) -> None:
    plugin = FakePlugin(token("one", expires_at=101.0), FAILED, FAILED)
    source = plugin.credentials()
    await source.credential()
    await asyncio.sleep(95.0)
    assert await source.credential() == bearer("one")
    assert logged(caplog)[-1].getMessage() == "renewing the credentials failed"
    await asyncio.sleep(5.0)
    with pytest.raises(CredentialsError):
        await source.credential()


async def test_plugin_without_waiting_requests_is_ended() -> None:
    plugin = FakePlugin(token("one"))
    source = plugin.credentials()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(source.credential(), 0.5)
    assert plugin.ended == 1
    assert await source.credential() == bearer("one")


async def test_interactive_plugin_needs_terminal() -> None:
    always = ExecPlugin(command="login", interactive_mode=InteractiveMode.ALWAYS)
    plugin = FakePlugin(token("one"))
    with pytest.raises(CredentialsError, match="interactiveMode"):
        await plugin.credentials(always).credential()
    assert not plugin.calls
    await plugin.credentials(always, is_terminal=True).credential()
    assert plugin.calls[0].has_stdin


async def test_logs_contain_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    garbage = PluginOutcome(output=b"planted-garbage", stderr="token=planted-stderr")
    plugin = FakePlugin(token("planted-one", expires_at=60.0), garbage, PluginOutcome(end=PluginEnd.TIMED_OUT))
    source = plugin.credentials()
    first = await source.credential()
    await asyncio.sleep(55.0)
    assert await source.credential() == first
    with pytest.raises(CredentialsError) as caught:
        await source.renew(first)
    await asyncio.sleep(5.0)
    with pytest.raises(CredentialsError):
        await source.credential()
    records = logged(caplog)
    assert len(records) >= 5
    shown = "\n".join(f"{record.getMessage()} {record.__dict__}" for record in records)
    assert "planted" not in shown + str(caught.value) + repr(source) + repr(first) + repr(garbage)
    assert isinstance(first, Credential)


async def test_the_log_names_the_plugin(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "deltaloop.client")
    source = FakePlugin(token("one", expires_at=100.0)).credentials()
    await source.credential()
    started, renewed = logged(caplog)
    assert (started.levelname, started.__dict__["plugin"], started.__dict__["interactive"]) == ("DEBUG", "login", False)
    assert (renewed.levelname, renewed.__dict__["plugin"]) == ("INFO", "login")
    assert (renewed.__dict__["duration"], renewed.__dict__["lifetime"]) == (1.0, 99.0)


async def test_plugin_task_has_name_of_plugin() -> None:
    asked = asyncio.create_task(FakePlugin(token("one")).credentials().credential())
    await asyncio.sleep(0.5)
    assert "exec plugin 'login'" in {task.get_name() for task in asyncio.all_tasks()}
    await asked


async def test_closed_standard_input_is_not_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    with io.StringIO() as closed:
        pass
    for stdin in (None, closed, io.StringIO()):
        monkeypatch.setattr(sys, "stdin", stdin)
        assert not stdin_is_terminal()

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    assert stdin_is_terminal()
