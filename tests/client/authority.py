"""Certificates for tests."""

from __future__ import annotations

import base64
import ssl

import trustme


class Authority:
    """A certificate authority: certificates as PEM, and TLS contexts for servers."""

    def __init__(self, ca: trustme.CA) -> None:
        self._ca = ca
        self.pem = ca.cert_pem.bytes()
        self._servers: dict[str, trustme.LeafCert] = {}
        self._client = ca.issue_cert("client@example.org")
        self.client_certificate = b"".join(blob.bytes() for blob in self._client.cert_chain_pems)
        self.client_key = self._client.private_key_pem.bytes()

    def server_context(self, name: str = "127.0.0.1", *, wants_client_certificate: bool = False) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        server = self._servers.get(name)
        if server is None:
            server = self._servers[name] = self._ca.issue_cert(name)  # a signature takes long
        server.configure_cert(context)  # pyright: ignore[reportUnknownMemberType]  # PyOpenSSL
        if wants_client_certificate:
            self._ca.configure_trust(context)  # pyright: ignore[reportUnknownMemberType]  # PyOpenSSL
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def server_pem(self, name: str = "127.0.0.1") -> bytes:
        """Return the certificate of a server, after ``server_context``."""
        return self._servers[name].cert_chain_pems[0].bytes()

    def ask_for_certificates(self, context: ssl.SSLContext) -> None:
        """Let a server read a client's certificate if it shows one."""
        self._ca.configure_trust(context)  # pyright: ignore[reportUnknownMemberType]  # PyOpenSSL
        context.verify_mode = ssl.CERT_OPTIONAL

    def issue(self, name: str) -> tuple[bytes, bytes]:
        """Make a client's certificate and key."""
        issued = self._ca.issue_cert(name)
        return b"".join(blob.bytes() for blob in issued.cert_chain_pems), issued.private_key_pem.bytes()


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
