"""Nothing secret leaves: values are planted everywhere, and everything that comes out is searched for them."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from deltaloop.api import kinds
from deltaloop.api.errors import DeltaloopError
from deltaloop.client import Client, ClientConfig, connect
from tests.client.authority import Authority, base64_text
from tests.client.loopback import serving

PLANTED = ("planted-token", "planted-data", "planted-query", "planted-cookie")


async def answer(request: web.Request) -> web.Response:
    headers = {"Set-Cookie": "session=planted-cookie", "Warning": '299 - "token=planted-token is old"'}
    path = request.path
    if path.endswith("/pods"):
        return web.Response(text="<html><title>x</title>planted-data</html>", headers=headers)
    if path.endswith("/text"):
        return web.Response(status=500, text=f"sent {request.headers['Authorization']}", headers=headers)
    if path.endswith("/cut"):
        return web.Response(text='{"metadata": {"name": "planted-data', headers=headers)
    if path.endswith("/denied"):
        status = '{"kind":"Status","code":401,"reason":"Unauthorized","message":"Bearer planted-token is not known"}'
        return web.Response(status=401, text=status, headers=headers)
    body = '{"type":"ADDED","object":{"metadata":{"name":"planted-data"\nplanted-data\n'
    return web.Response(text=body, headers=headers)


async def outcomes(client: Client) -> list[BaseException]:
    found: list[BaseException] = []

    async def watch() -> None:
        async with client.watch(kinds.SECRET) as events:
            async for _ in events:
                pass

    secret: dict[str, Any] = {"metadata": {"name": "text"}, "data": {"key": "planted-data"}}
    for action in (
        lambda: client.list(kinds.POD),
        lambda: client.get(kinds.SECRET, "text"),
        lambda: client.get(kinds.SECRET, "cut"),
        lambda: client.get(kinds.SECRET, "denied"),
        lambda: client.update(kinds.SECRET, secret),
        lambda: client.resource("secrets"),
        watch,
    ):
        try:
            await action()
        except DeltaloopError as error:
            found.append(error)
    return found


@pytest.mark.real_time
@pytest.mark.usefixtures("temporary_files")
async def test_secrets_are_never_in_logs_and_errors(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "config"
    async with serving(answer, tls=authority.server_context(wants_client_certificate=True)) as address:
        path.write_text(
            f"""
            current-context: c
            clusters:
            - name: c
              cluster: {{server: "https://{address}", certificate-authority-data: {base64_text(authority.pem)}}}
            users:
            - name: u
              user:
                token: planted-token
                client-certificate-data: {base64_text(authority.client_certificate)}
                client-key-data: {base64_text(authority.client_key)}
            contexts:
            - name: c
              context: {{cluster: c, user: u}}
            """
        )
        async with connect(kubeconfig=path) as client:
            assert isinstance(client.config, ClientConfig)
            errors = await outcomes(client)
            shown = [repr(client), repr(client.config), repr(client.config.credentials)]
    assert len(errors) == 7
    for error in errors:
        shown += [str(error), repr(error), "".join(traceback.format_exception(error))]
    shown += [f"{record.getMessage()} {record.__dict__}" for record in caplog.records]
    everything = "\n".join(shown)
    key_lines = authority.client_key.decode().split("\n")[1:3]
    for planted in (*PLANTED, *key_lines, base64_text(authority.client_key)[:40]):
        assert planted not in everything
    assert "request" in [record.getMessage() for record in caplog.records]
