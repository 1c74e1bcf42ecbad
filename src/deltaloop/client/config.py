"""Configuration of a client: server address, TLS and credentials.

``load_kubeconfig`` and ``load_in_cluster`` create a ``ClientConfig``. Its ``repr`` contains no secrets.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing.checks import require_positive
from deltaloop.api.redaction import SecretText
from deltaloop.client.core.impersonation import Impersonation
from deltaloop.client.credentials.sources import Credentials
from deltaloop.client.errors import ConfigError
from deltaloop.version import VERSION

_SHOWN_SCHEMES: Final = frozenset({"http", "https", "ftp", "socks4", "socks4a", "socks5", "socks5h", "tcp", "unix"})
"""Schemes that error messages can contain. Other text before a colon may be part of a password."""
_LONGEST_LABEL: Final = 63
_HIDDEN: Final = frozenset({"ca_data", "client_certificate_data", "proxy_url"})


def default_user_agent() -> str:
    """Return ``deltaloop/<version> (<system>/<machine>) python/<version>``."""
    return f"deltaloop/{VERSION} ({platform.system().lower()}/{platform.machine()}) python/{platform.python_version()}"


class _Shown(Options, frozen=True):
    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(name, getattr(self, name)) for name in self.__struct_fields__ if name not in _HIDDEN]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"


class TlsConfig(_Shown, frozen=True, kw_only=True):
    """TLS settings.

    Data takes precedence over files, as in a kubeconfig.

    Attributes:
        ca_data: PEM certificates of the CA. Without ``ca_data`` and ``ca_file``, the system's CAs are used.
        ca_file: File with the certificates of the CA.
        client_certificate_data: PEM certificate chain of the client.
        client_certificate_file: File with the certificate chain of the client.
        client_key_data: PEM private key of the client certificate.
        client_key_file: File with the private key.
        server_name: Expected name in the server's certificate, if it differs from the host of the address.
        insecure_skip_verify: Whether to accept any server certificate. A warning is logged.
    """

    ca_data: bytes | None = None
    ca_file: Path | None = None
    client_certificate_data: bytes | None = None
    client_certificate_file: Path | None = None
    client_key_data: SecretText | None = None
    client_key_file: Path | None = None
    server_name: str = ""
    insecure_skip_verify: bool = False

    def __post_init__(self) -> None:
        """Validate the fields.

        Raises:
            ConfigError: If a CA is combined with ``insecure_skip_verify``, or a client certificate has no key, or vice
                versa.
        """
        check_types(self)
        if self.insecure_skip_verify and (self.ca_data or self.ca_file):
            raise ConfigError(
                "cannot be combined with a CA (certificate-authority[-data]). Remove one of them.",
                argument="insecure-skip-tls-verify",
            )
        if self.has_client_certificate != bool(self.client_key_data or self.client_key_file):
            given, missing = ("certificate", "key") if self.has_client_certificate else ("key", "certificate")
            raise ConfigError(f"must be set together with client-{given}[-data].", argument=f"client-{missing}[-data]")

    @property
    def has_client_certificate(self) -> bool:
        """Whether a client certificate is configured."""
        return bool(self.client_certificate_data or self.client_certificate_file)


class ClientConfig(_Shown, frozen=True, kw_only=True):
    """Configuration of a client.

    Attributes:
        server: ``https://host:port``, with a path if the API is not at the root.
        namespace: Default namespace.
        tls: TLS settings. Without effect for ``http://``.
        credentials: Credentials, or None. Never sent over ``http://``, as in client-go.
        impersonate: User to impersonate, or None.
        proxy_url: Proxy URL. Empty means ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY`` apply.
        request_timeout: Default timeout of calls in seconds.
        compression: Whether to accept gzip responses.
        max_response_bytes: Maximum size of a decompressed response in bytes. Larger responses raise
            ``ResponseTooLargeError``. The default of 1 GiB suffices for a list of 150 000 Pods of 5.6 KB, the largest
            supported cluster. client-go has no limit, and the default of gRPC is 4 MiB.
        max_event_bytes: Maximum size of a watch event or log line in bytes. The default of 64 MiB is forty times the
            default object size limit of etcd (1.5 MiB).
        user_agent: ``User-Agent`` header.
        context: Name of the kubeconfig context, or "".
        source: Origin of the configuration for messages.
    """

    server: str
    namespace: str = "default"
    tls: TlsConfig = msgspec.field(default_factory=TlsConfig)
    credentials: Credentials | None = None
    impersonate: Impersonation | None = None
    proxy_url: str = ""
    request_timeout: float = 30.0
    compression: bool = True
    max_response_bytes: int = 1024 * 1024 * 1024
    max_event_bytes: int = 64 * 1024 * 1024
    user_agent: str = msgspec.field(default_factory=default_user_agent)
    context: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        """Validate the fields.

        Raises:
            ConfigError: If a field is invalid. The message names the field.
        """
        check_types(self)
        require_positive(
            "ClientConfig",
            request_timeout=self.request_timeout,
            max_response_bytes=self.max_response_bytes,
            max_event_bytes=self.max_event_bytes,
        )
        check_url(self.server, "server", ("http", "https"))
        if self.proxy_url:
            check_proxy(self.proxy_url, "proxy-url")
        if not self.namespace:
            raise ConfigError("must not be empty. The usual value is 'default'.", argument="ClientConfig.namespace")

    @property
    def is_tls(self) -> bool:
        """Whether the connection is encrypted, so that credentials can be sent."""
        return urlsplit(self.server).scheme == "https"


def check_proxy(url: str, what: str) -> None:
    """Reject an invalid proxy URL by ConfigError, whose message contains no part of the URL."""
    check_url(url, what, ("http", "https"), may_have_user=True)


def check_url(url: str, what: str, schemes: tuple[str, ...], *, may_have_user: bool = False) -> None:
    """Reject an invalid URL by ConfigError, whose message contains no part of a URL that may contain a password."""
    wanted = f"must be {' or '.join(f'{scheme}://' for scheme in schemes)} and host[:port]"
    if any(character <= " " or character == "\x7f" for character in url):
        raise ConfigError(f"{wanted}, got a blank or a control character.", argument=what)
    try:
        parts = urlsplit(url)
        host, port, user = parts.hostname, parts.port, parts.username or parts.password
    except ValueError:
        raise ConfigError(f"{wanted}, got an invalid URL.", argument=what) from None
    if user and not may_have_user:
        raise ConfigError("must not contain credentials. Move them to the user entry.", argument=what)
    if parts.scheme not in schemes:
        is_shown = not may_have_user or parts.scheme in _SHOWN_SCHEMES
        shown = f"the scheme {parts.scheme!r}" if is_shown else "an unsupported scheme"
        raise ConfigError(f"{wanted}, got {shown}.", argument=what)
    if not host or port == 0 or parts.query or parts.fragment or not _is_sendable(host):
        raise ConfigError(f"{wanted}, got an invalid address.", argument=what)


def _is_sendable(host: str) -> bool:
    if not all(0 < len(label) <= _LONGEST_LABEL for label in host.removesuffix(".").split(".")):
        return False
    if host.isascii() and host[0].isalnum() and host[-1].isalnum() and host.replace(".", "").replace("-", "").isalnum():
        return True
    name, is_scoped, zone = host.partition("%")
    from ipaddress import IPv6Address

    try:
        if ":" in name:
            IPv6Address(name)
        else:
            name.encode("idna")
    except ValueError:
        return False
    if is_scoped and not zone:
        return False
    return all(character.isalnum() or character in "-._~:%" for character in host)
