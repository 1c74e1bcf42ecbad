"""TLS contexts of a client, recreated when certificates are replaced."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import NoReturn, final

from deltaloop.client.bounded_files import read_file
from deltaloop.client.config import ClientConfig, TlsConfig
from deltaloop.client.core.credential import ClientCertificate
from deltaloop.client.core.tls_files import TlsFilesState
from deltaloop.client.errors import ConfigError

_log = logging.getLogger("deltaloop.client")


@final
class TlsContexts:
    """TLS context for new connections. Existing connections keep their context.

    Files are read on the event loop, because they are local and small. Times are event loop times. ``shown`` is a
    client certificate that replaces the configured certificate.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        tls = config.tls
        self._files = [
            path
            for path, data in (
                (tls.ca_file, tls.ca_data),
                (tls.client_certificate_file, tls.client_certificate_data),
                (tls.client_key_file, tls.client_key_data),
            )
            if path is not None and data is None
        ]
        self.files: TlsFilesState = TlsFilesState(self._fingerprint() if self._files else None)
        self.shown: ClientCertificate | None = None
        self.current: ssl.SSLContext = make_ssl_context(config)

    def context(self, certificate: ClientCertificate | None, *, now: float) -> ssl.SSLContext:
        """Return the context for a new connection."""
        if self.files.is_due(now):
            self.reload(now)
        if certificate is not self.shown:
            if certificate != self.shown:
                self.current = self._make(certificate)
            self.shown = certificate
        return self.current

    def reload(self, now: float) -> bool:
        """Check the files, and return whether a new context was created. Unusable files are ignored."""
        fingerprint = self._fingerprint() if self._files else None
        if not self.files.saw(fingerprint, now=now):
            return False
        assert fingerprint is not None
        try:
            self.current = self._make(self.shown)
        except ConfigError as error:
            _log.warning("cannot use changed certificate files", extra={"reason": str(error)})
            return False
        self.files.took(fingerprint)
        _log.info("reloaded certificate files", extra={"files": [str(path) for path in self._files]})
        return True

    def suspect(self) -> None:
        """Check the files before the next request, after a TLS failure that could not be retried."""
        self.files.suspect()

    def _make(self, certificate: ClientCertificate | None) -> ssl.SSLContext:
        if certificate is None:
            return make_ssl_context(self._config)
        tls = self._config.tls.replace(
            client_certificate_data=certificate.certificate,
            client_key_data=certificate.key,
        )
        return make_ssl_context(self._config.replace(tls=tls, source="exec plugin"))

    def _fingerprint(self) -> bytes | None:
        import hashlib

        digest = hashlib.sha256()
        for path in self._files:
            try:
                data = read_file(path)
            except OSError as error:
                _log.warning("cannot read certificate file", extra={"file": str(path), "reason": error.strerror})
                return None
            digest.update(len(data).to_bytes(8, "big") + data)
        return digest.digest()


def make_ssl_context(config: ClientConfig) -> ssl.SSLContext:
    """Create the TLS context that all connections of a client share, or raise ConfigError."""
    # Do not use ssl.create_default_context: since Python 3.13, it rejects CAs without all RFC 5280 extensions, which
    # are common in clusters. Go accepts them.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    tls = config.tls
    if tls.insecure_skip_verify:
        _log.warning(
            "not verifying the certificate of the server (insecure-skip-tls-verify)", extra={"server": config.server}
        )
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        _load_ca(context, config)
    if tls.has_client_certificate:
        _load_client_certificate(context, config)
    return context


def _fault(config: ClientConfig, argument: str, problem: str) -> ConfigError:
    error = ConfigError(problem, argument=argument)
    return error.at(config.source) if config.source else error


def _load_ca(context: ssl.SSLContext, config: ClientConfig) -> None:
    tls = config.tls
    if tls.ca_data is None and tls.ca_file is None:
        context.load_default_certs()
        return
    data = tls.ca_data if tls.ca_data is not None else _read(tls.ca_file, config)
    # Like Go, trust each given certificate, whether it belongs to a CA or to the server.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        # Text between the certificates is a comment and can contain any bytes, but the parameter only accepts ASCII.
        context.load_verify_locations(cadata=data.decode("ascii", "replace").replace("\ufffd", "?"))
    except (ssl.SSLError, ValueError):
        where = "certificate-authority-data" if tls.ca_data is not None else f"CA file {tls.ca_file}"
        raise _fault(config, where, "must contain the PEM certificate of the cluster's CA.") from None


def _load_client_certificate(context: ssl.SSLContext, config: ClientConfig) -> None:
    tls = config.tls

    def refuse_to_ask() -> NoReturn:
        raise _fault(config, "client-key[-data]", "must not be encrypted. Remove the password with openssl pkey.")

    try:
        if tls.client_certificate_data is None and tls.client_key_data is None:
            assert tls.client_certificate_file is not None
            for path in (tls.client_certificate_file, tls.client_key_file):
                _read(path, config)  # OpenSSL would read a device or pipe forever
            context.load_cert_chain(tls.client_certificate_file, tls.client_key_file, password=refuse_to_ask)
        else:
            _load_from_data(context, config, refuse_to_ask)
    except OSError as error:  # includes ssl.SSLError, whose text contains no data
        problem = f"or client-key[-data] is not usable: {_reason(error)}. Correct them."
        raise _fault(config, "client-certificate[-data]", problem) from None


def _load_from_data(context: ssl.SSLContext, config: ClientConfig, password: object) -> None:
    import tempfile

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
        return read_file(path)
    except OSError as error:
        problem = f"must be readable: {error.strerror}. Correct the path or its permissions."
        raise _fault(config, str(path), problem) from None


def _reason(error: OSError) -> str:
    return str(getattr(error, "reason", None) or error.strerror).replace("_", " ").lower()
