"""Credentials from an exec plugin. Core: ``core/exec_credential.py``, ``core/expiring_credential.py``.

The plugin runs when a request needs a credential and there is none, when the last one is about to expire, and when the
server refused it. It runs once at a time; requests that come meanwhile wait for the same run. Nothing runs in the
background.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import final

from deltaloop.client.core.credential import Credential
from deltaloop.client.core.exec_credential import (
    ExecPlugin,
    PluginCall,
    PluginOutcome,
    plugin_answer,
    plugin_call,
)
from deltaloop.client.core.expiring_credential import ExpiringCredential
from deltaloop.client.errors import CredentialsError
from deltaloop.client.plugin_process import run_plugin
from deltaloop.client.single_flight import SingleFlight
from deltaloop.fork_safety import fork_safe

_log = logging.getLogger("deltaloop.client")


def stdin_is_terminal() -> bool:
    """Tell whether a person sits at standard input."""
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:  # it was closed
        return False


@final
class ExecCredentials:
    """The credentials that a plugin gives.

    Clients that are made from one configuration share them.
    """

    def __init__(
        self,
        plugin: ExecPlugin,
        *,
        run: Callable[[PluginCall], Awaitable[PluginOutcome]] = run_plugin,
        is_terminal: Callable[[], bool] = stdin_is_terminal,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Name the plugin; it is not run yet.

        Args:
            plugin: The plugin.
            run: What runs it.
            is_terminal: Whether a person can be asked.
            wall_clock: Seconds since 1970.
        """
        self._plugin = plugin
        self._run = run
        self._is_terminal = is_terminal
        self._wall_clock = wall_clock
        self._state = ExpiringCredential()
        self._lock = fork_safe(threading.Lock())
        self._flight = SingleFlight(self._login, name=plugin.name)

    async def credential(self) -> Credential:
        """Return the credential, from the plugin if need be.

        If all who wait are cancelled, the plugin is ended.

        Raises:
            CredentialsError: If the plugin gave none.
        """
        usable = self._usable()
        return usable if usable is not None else await self._flight.join()

    async def renew(self, rejected: Credential) -> Credential | None:
        """Run the plugin again, unless that has happened meanwhile; return what it gave if it is something else."""
        with self._lock:
            self._state.refused(rejected)
        credential = await self.credential()
        return credential if credential != rejected else None

    def _usable(self) -> Credential | None:
        """Return what can be used without asking, or raise the failure of just now; None if the plugin is to be run."""
        now = self._wall_clock()
        with self._lock:
            usable, failure = self._state.usable(now), self._state.failure(now)
        if usable is None and failure is not None:
            raise failure.with_traceback(None)
        return usable

    async def _login(self) -> Credential:
        usable = self._usable()
        if usable is not None:
            return usable  # another thread's run ended right before this one began
        began_at = self._wall_clock()
        try:
            call = plugin_call(self._plugin, os.environ, is_terminal=self._is_terminal())
            _log.debug("exec plugin starts", extra={"plugin": self._plugin.command, "interactive": call.has_stdin})
            outcome = await self._run(call)
            answer = plugin_answer(self._plugin, outcome, call)
        except CredentialsError as error:
            with self._lock:
                serves = self._state.renewal_failed(error, self._wall_clock())
            if serves is None:
                raise
            _log.warning(
                "exec plugin failed; the credential of before serves until it expires", extra={"reason": str(error)}
            )
            return serves
        now = self._wall_clock()
        with self._lock:
            self._state.renewed(answer.credential, expires_at=answer.expires_at, now=now)
        _log.info(
            "credentials were renewed",
            extra={
                "plugin": self._plugin.command,
                "duration": now - began_at,
                "lifetime": None if answer.expires_at is None else answer.expires_at - now,
            },
        )
        if answer.expires_at is not None and answer.expires_at <= now:
            _log.warning(
                "exec plugin gave a credential that has expired; is this machine's clock right?",
                extra={"plugin": self._plugin.command},
            )
        return answer.credential

    def __repr__(self) -> str:
        return f"<ExecCredentials {self._plugin.command}>"
