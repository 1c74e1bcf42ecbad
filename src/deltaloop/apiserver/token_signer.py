"""Signing and verification of service account tokens (JSON Web Tokens)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Final, final

import msgspec

from deltaloop._internal.x509_certificates import key_pem
from deltaloop.apiserver.tls import new_key
from deltaloop.apiserver.token_keys import CheckingKey, SigningKey, checking_keys, signing_key

_LONGEST: Final = 16 * 1024
_decode: Final = msgspec.json.Decoder(dict[str, object]).decode


@final
class TokenSigner:
    """Signing key, created on demand by default, and the accepted keys for verification."""

    def __init__(self, pem: bytes = b"", *, accepted: Iterable[bytes] = ()) -> None:
        """Use these PEM keys: one to sign (empty to create one), and others that are accepted."""
        self._pem = pem
        self._accepted = tuple(accepted)
        self._key: SigningKey | None = None
        self._checking: tuple[CheckingKey, ...] | None = None

    def __repr__(self) -> str:
        return "<TokenSigner>"

    def sign(self, claims: dict[str, object]) -> str:
        """Return a signed token."""
        if self._key is None:
            self._key = signing_key(self._pem or key_pem(new_key()))
            self._checking = None
        header = {"alg": self._key.public.algorithm, "kid": self._key.public.identifier}
        signed = f"{_pack(msgspec.json.encode(header))}.{_pack(msgspec.json.encode(claims))}"
        return f"{signed}.{_pack(self._key.sign(signed.encode()))}"

    def read(self, token: str) -> dict[str, object] | None:
        """Return the claims of a token with a valid signature, or None."""
        parts = token.split(".")
        if len(parts) != 3 or len(token) > _LONGEST:
            return None
        try:
            header, signature = _decode(_unpack(parts[0])), _unpack(parts[2])
            signed = f"{parts[0]}.{parts[1]}".encode()
            for key in self._checking_keys():
                if header.get("alg") == key.algorithm and key.holds(signed, signature):
                    return _decode(_unpack(parts[1]))
        except (msgspec.MsgspecError, binascii.Error, UnicodeError, ValueError):
            return None
        return None

    def _checking_keys(self) -> tuple[CheckingKey, ...]:
        if self._checking is None:
            if self._key is None and self._pem:
                self._key = signing_key(self._pem)
            own = (self._key.public,) if self._key is not None else ()
            self._checking = (*own, *(key for pem in self._accepted for key in checking_keys(pem)))
        return self._checking


def _pack(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _unpack(text: str) -> bytes:
    return base64.b64decode(text.encode() + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
