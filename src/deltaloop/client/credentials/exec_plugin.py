"""Credentials from an exec plugin."""

from __future__ import annotations

import logging
import os
import sys
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
from deltaloop.client.credentials.credential_cache import CredentialCache
from deltaloop.client.credentials.plugin_process import run_plugin

_log = logging.getLogger("deltaloop.client")


def stdin_is_terminal() -> bool:
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:  # standard input was closed
        return False


@final
class ExecCredentials:
    """Credentials from an exec plugin.

    Clients that are created from one configuration share them.
    """

    def __init__(
        self,
        plugin: ExecPlugin,
        *,
        run: Callable[[PluginCall], Awaitable[PluginOutcome]] = run_plugin,
        is_terminal: Callable[[], bool] = stdin_is_terminal,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Create the source without running the plugin.

        Args:
            plugin: Exec plugin from the kubeconfig.
            run: Function that runs the plugin.
            is_terminal: Function that returns whether standard input is a terminal.
            wall_clock: Function that returns the seconds since 1970.
        """
        self._plugin = plugin
        self._run = run
        self._is_terminal = is_terminal
        self._cache = CredentialCache(
            self._login, name=plugin.name, shown_as={"plugin": plugin.command}, wall_clock=wall_clock
        )

    async def credential(self) -> Credential:
        """Return the credential, and run the plugin if necessary.

        If all waiting requests are canceled, the plugin is killed.

        Raises:
            CredentialsError: If the plugin fails.
        """
        return await self._cache.credential()

    async def renew(self, rejected: Credential) -> Credential | None:
        """Run the plugin again if no other request has done so.

        Return the credential if it differs from ``rejected``.

        Raises:
            CredentialsError: If the plugin fails.
        """
        return await self._cache.renew(rejected)

    async def _login(self) -> tuple[Credential, float | None]:
        call = plugin_call(self._plugin, os.environ, is_terminal=self._is_terminal())
        _log.debug("starting exec plugin", extra={"plugin": self._plugin.command, "interactive": call.has_stdin})
        answer = plugin_answer(self._plugin, await self._run(call), call)
        return answer.credential, answer.expires_at

    def __repr__(self) -> str:
        return f"<ExecCredentials {self._plugin.command}>"
