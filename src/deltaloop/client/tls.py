"""Makes the TLS context of a configuration.

Python's ``ssl`` reads a client's key from files only. Key material that is given as data is therefore written to a
file of mode 0600 in a directory of mode 0700, loaded, and deleted at once: it exists for some milliseconds, once in the
life of a client, never per connection or per refresh.
"""

from __future__ import annotations

import logging
import ssl
import tempfile
from pathlib import Path
from typing import NoReturn

from deltaloop.client.config import ClientConfig, TlsConfig
from deltaloop.client.errors import ConfigError

_log = logging.getLogger("deltaloop.client")


def make_ssl_context(config: ClientConfig) -> ssl.SSLContext:
    """Make the context that all connections of a client share.

    Raises:
        ConfigError: If a certificate or key cannot be read, or they do not belong together.
    """
    # Not ssl.create_default_context: from Python 3.13 on it refuses CAs without all RFC 5280 extensions, and the CAs
    # of many clusters are of that kind. Go accepts them.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    tls = config.tls
    if tls.insecure_skip_verify:
        _log.warning(
            "the server's certificate is not checked (insecure-skip-tls-verify)", extra={"server": config.server}
        )
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        _load_ca(context, config)
    if tls.has_client_certificate:
        _load_client_certificate(context, config)
    return context


def _where(config: ClientConfig) -> str:
    return f"{config.source}: " if config.source else ""


def _load_ca(context: ssl.SSLContext, config: ClientConfig) -> None:
    tls = config.tls
    if tls.ca_data is None and tls.ca_file is None:
        context.load_default_certs()
        return
    data = tls.ca_data if tls.ca_data is not None else _read(tls.ca_file, config)
    try:
        # What stands between the certificates is comment and may be anything; the parameter takes ASCII only.
        context.load_verify_locations(cadata=data.decode("ascii", "replace").replace("\ufffd", "?"))
    except (ssl.SSLError, ValueError):
        where = "certificate-authority-data" if tls.ca_data is not None else f"CA file {tls.ca_file}"
        raise ConfigError(f"{_where(config)}{where} holds no PEM certificate") from None


def _load_client_certificate(context: ssl.SSLContext, config: ClientConfig) -> None:
    tls = config.tls

    def refuse_to_ask() -> NoReturn:
        raise ConfigError(f"{_where(config)}the client key is encrypted; nobody can be asked for its password here")

    try:
        if tls.client_certificate_data is None and tls.client_key_data is None:
            assert tls.client_certificate_file is not None
            context.load_cert_chain(tls.client_certificate_file, tls.client_key_file, password=refuse_to_ask)
        else:
            _load_from_data(context, config, refuse_to_ask)
    except OSError as error:  # ssl.SSLError is one; its text names the fault, not the data
        raise ConfigError(f"{_where(config)}the client certificate and key cannot be used: {_reason(error)}") from None


def _load_from_data(context: ssl.SSLContext, config: ClientConfig, password: object) -> None:
    certificate, key = _certificate(config.tls, config), _key(config.tls, config)
    with tempfile.TemporaryDirectory(prefix="deltaloop-") as directory:
        path = Path(directory) / "client.pem"
        path.touch(mode=0o600)
        path.write_bytes(certificate + b"\n" + key)
        context.load_cert_chain(path, password=password)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def _certificate(tls: TlsConfig, config: ClientConfig) -> bytes:
    if tls.client_certificate_data is not None:
        return tls.client_certificate_data
    return _read(tls.client_certificate_file, config)


def _key(tls: TlsConfig, config: ClientConfig) -> bytes:
    if tls.client_key_data is not None:
        return tls.client_key_data.reveal().encode()
    return _read(tls.client_key_file, config)


def _read(path: Path | None, config: ClientConfig) -> bytes:
    assert path is not None
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{_where(config)}{path} cannot be read: {error.strerror}") from None


def _reason(error: OSError) -> str:
    reason = getattr(error, "reason", None) or error.strerror or type(error).__name__
    return str(reason).replace("_", " ").lower()
