"""What one request shows of itself: a header, a certificate, or both. Nothing of it is in a ``repr``."""

from __future__ import annotations

import msgspec

from deltaloop.api.redaction import SecretText


class ClientCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """A client's certificate and key.

    Attributes:
        certificate: PEM certificate (chain).
        key: PEM private key.
    """

    certificate: bytes
    key: SecretText

    def __repr__(self) -> str:
        return f"ClientCertificate(key={self.key!r})"


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asking, at this moment.

    Attributes:
        authorization: The whole ``Authorization`` header, such as ``Bearer …``; None sends none.
        certificate: Certificate to show in place of the configuration's own; None shows that one, if there is one.
    """

    authorization: SecretText | None = None
    certificate: ClientCertificate | None = None


def bearer(token: str) -> Credential:
    """Make the credential of a bearer token."""
    return Credential(authorization=SecretText(f"Bearer {token}"))


def is_header_value(text: str) -> bool:
    """Tell whether a text can be sent as the value of a header: it can be encoded and has no control characters."""
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can write and nothing else can
        return False
    return all(character >= " " and character != "\x7f" for character in text)
