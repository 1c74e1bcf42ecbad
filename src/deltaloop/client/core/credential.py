"""Credentials of a single request. Their ``repr`` contains no secrets."""

from __future__ import annotations

import msgspec

from deltaloop.api.redaction import SecretText


class ClientCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """Client certificate with its private key.

    Attributes:
        certificate: PEM certificate chain.
        key: PEM private key.
    """

    certificate: bytes
    key: SecretText

    def __repr__(self) -> str:
        return f"ClientCertificate(key={self.key!r})"


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """Credentials for a request: a header, a certificate, or both.

    Attributes:
        authorization: Complete ``Authorization`` header, such as ``Bearer …``. None sends no header.
        certificate: Client certificate that replaces the configured certificate. None uses the configured certificate,
            if any.
    """

    authorization: SecretText | None = None
    certificate: ClientCertificate | None = None


def bearer(token: str) -> Credential:
    return Credential(authorization=SecretText(f"Bearer {token}"))


def is_header_value(text: str) -> bool:
    """Return whether a text is a valid header value: encodable, and without control characters."""
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which is only possible in JSON
        return False
    return all(character >= " " and character != "\x7f" for character in text)
