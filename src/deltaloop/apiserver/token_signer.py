"""Signs and checks JSON Web Tokens of service accounts (ES256). Core: ``core/service_tokens.py``."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import TYPE_CHECKING, Any, Final, final

import msgspec

from deltaloop.apiserver.tls import load_key, new_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec

_ALGORITHM: Final = "ES256"
_HALF: Final = 32
_LONGEST: Final = 16 * 1024
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


@final
class TokenSigner:
    """One key; made when it is first needed, unless one is given."""

    def __init__(self, pem: bytes = b"") -> None:
        """Use a key in PEM, or a new one."""
        self._pem = pem
        self._key: ec.EllipticCurvePrivateKey | None = None

    def __repr__(self) -> str:
        return "<TokenSigner>"

    def sign(self, claims: dict[str, Any]) -> str:
        """Return a token that says this.

        Raises:
            MissingExtraError: If the extra ``server`` is not installed.
        """
        key = self._loaded()
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        header = {"alg": _ALGORITHM, "kid": self._identifier(key)}
        signed = f"{_pack(msgspec.json.encode(header))}.{_pack(msgspec.json.encode(claims))}"
        r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_pack(r.to_bytes(_HALF, 'big') + s.to_bytes(_HALF, 'big'))}"

    def read(self, token: str) -> dict[str, Any] | None:
        """Return what a token says if this key has signed it, else None."""
        parts = token.split(".")
        if len(parts) != 3 or len(token) > _LONGEST or (self._key is None and not self._pem):
            return None
        key = self._loaded()
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

        try:
            header, signature = _decode(_unpack(parts[0])), _unpack(parts[2])
            if header.get("alg") != _ALGORITHM or len(signature) != 2 * _HALF:
                return None
            halves = (int.from_bytes(signature[:_HALF], "big"), int.from_bytes(signature[_HALF:], "big"))
            signed = f"{parts[0]}.{parts[1]}".encode()
            key.public_key().verify(encode_dss_signature(*halves), signed, ec.ECDSA(hashes.SHA256()))
            return _decode(_unpack(parts[1]))
        except (InvalidSignature, msgspec.MsgspecError, binascii.Error, UnicodeError, ValueError):
            return None

    def _loaded(self) -> ec.EllipticCurvePrivateKey:
        if self._key is None:
            self._key = load_key(self._pem) if self._pem else new_key()
        return self._key

    def _identifier(self, key: ec.EllipticCurvePrivateKey) -> str:
        from cryptography.hazmat.primitives import serialization

        public = key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return _pack(hashlib.sha256(public).digest())


def _pack(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _unpack(text: str) -> bytes:
    return base64.b64decode(text.encode() + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
