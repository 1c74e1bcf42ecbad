from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from deltaloop.api.redaction import SecretText
from deltaloop.client import BasicAuth, Credentials, StaticToken, TokenFile
from deltaloop.client.core.credential import bearer
from deltaloop.errors import ConfigError
from tests.client.fake_transport import logged
from tests.having import having


async def header(source: Credentials) -> str:
    authorization = (await source.credential()).authorization
    assert authorization is not None
    return authorization.reveal()


async def test_token_file_is_read_again_after_minute(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    source = TokenFile(path)
    assert await header(source) == "Bearer one"
    path.write_text("two\n")
    await asyncio.sleep(59.0)
    assert await header(source) == "Bearer one"
    await asyncio.sleep(1.0)
    assert await header(source) == "Bearer two"


async def test_rejected_token_is_read_again_immediately(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    source = TokenFile(path)
    first = await source.credential()
    assert await source.renew(first) is None
    path.write_text("two")
    renewed = await source.renew(first)
    assert renewed is not None
    assert renewed == bearer("two")


async def test_deleted_token_file_keeps_last_token(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "token"
    path.write_text("planted-token")
    source = TokenFile(path)
    first = await source.credential()
    path.unlink()
    await asyncio.sleep(60.0)
    assert await source.credential() == first
    path.write_text("")
    assert await source.renew(first) is None
    messages = [record.getMessage() for record in caplog.records if record.name == "deltaloop.client"]
    assert messages == ["cannot read token file", "token file is empty"]
    assert all(record.levelno == logging.WARNING for record in caplog.records)
    assert "planted" not in caplog.text


async def test_token_file_that_never_existed_raises_error(tmp_path: Path) -> None:
    source = TokenFile(tmp_path / "token")
    with pytest.raises(ConfigError, check=having(argument="tokenFile")):
        await source.credential()
    (tmp_path / "token").write_text("one")
    assert await header(source) == "Bearer one"


async def test_token_file_with_invalid_content_raises_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "token"
    path.write_text("planted\nplanted")
    source = TokenFile(path)
    with pytest.raises(ConfigError, check=having(argument="tokenFile")):
        await source.credential()
    path.write_text("one")
    assert await source.credential() == bearer("one")
    assert [record.getMessage() for record in caplog.records] == ["token file contains no token"]
    assert "planted" not in caplog.text


async def test_static_credentials_cannot_be_renewed() -> None:
    for source in (StaticToken(SecretText("planted")), BasicAuth("me", SecretText("planted"))):
        assert await source.renew(await source.credential()) is None
        assert "planted" not in repr(source)
        assert "planted" not in repr(await source.credential())


async def test_static_sources_return_authorization_header() -> None:
    assert await header(StaticToken(SecretText("planted"))) == "Bearer planted"
    assert await header(BasicAuth("mü", SecretText("p:w"))) == "Basic bcO8OnA6dw=="
    assert repr(StaticToken(SecretText("planted"))) == "<StaticToken>"
    assert repr(BasicAuth("me", SecretText("planted"))) == "<BasicAuth>"


async def test_fallback_token_is_used_until_file_is_readable(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "token"
    source = TokenFile(path, fallback=SecretText("planted"))
    assert await header(source) == "Bearer planted"
    path.write_text("one")
    await asyncio.sleep(60.0)
    assert await header(source) == "Bearer one"
    (record,) = logged(caplog)
    assert record.__dict__["file"] == str(path)
    assert record.__dict__["reason"] == "No such file or directory"
    assert repr(source) == f"<TokenFile {path}>"


@pytest.mark.parametrize(
    ("content", "message", "reason"),
    [
        (b"\xff\xfe", "cannot read token file", "UnicodeDecodeError"),
        (b"a\x00b", "token file contains no token", None),
        (b" \n", "token file is empty", None),
    ],
)
async def test_unusable_token_file_keeps_last_token_and_is_logged(
    content: bytes, message: str, reason: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    source = TokenFile(path)
    first = await source.credential()
    path.write_bytes(content)
    await asyncio.sleep(60.0)
    assert await source.credential() == first
    await asyncio.sleep(59.0)
    assert await source.credential() == first
    (record,) = logged(caplog)  # once a minute
    assert (record.levelname, record.getMessage()) == ("WARNING", message)
    assert (record.__dict__["file"], record.__dict__.get("reason")) == (str(path), reason)
    path.write_text("two")
    assert await source.renew(first) == bearer("two")


async def test_error_without_token_names_file_and_field(tmp_path: Path) -> None:
    source = TokenFile(tmp_path / "token")
    with pytest.raises(ConfigError, check=having(argument="tokenFile")):
        await source.renew(bearer("x"))
