"""Keys of service account tokens: RSA, or a NIST curve (ES256, ES384, ES512).

Source: client-go util/keyutil; Kubernetes pkg/serviceaccount/jwt.go; RFC 7518, sections 3.3 and 3.4.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, final

from deltaloop.api.errors import MissingExtraError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

_BLOCK: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.+?-----END \1-----", re.DOTALL)
_FEATURE: Final = "tokens of service accounts in the embedded API server"


class CheckingKey(Protocol):
    @property
    def algorithm(self) -> str:
        """Algorithm in the token's header, for example ``ES256``."""
        ...

    @property
    def identifier(self) -> str:
        """Digest that Kubernetes uses as the key ID (``kid``)."""
        ...

    def holds(self, signed: bytes, signature: bytes) -> bool: ...


class SigningKey(Protocol):
    @property
    def public(self) -> CheckingKey: ...

    def sign(self, signed: bytes) -> bytes: ...


def checking_keys(pem: bytes) -> tuple[CheckingKey, ...]:
    """Read the public keys of all keys and certificates in a PEM file."""
    found = tuple(_checking_key(block.group(1), block.group(0)) for block in _BLOCK.finditer(pem))
    if not found:
        raise ValueError("must contain a key in PEM format.")
    return found


def signing_key(pem: bytes) -> SigningKey:
    """Read a private key; raises MissingExtraError without the extra ``server``, and ValueError."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec, rsa
    except ImportError:
        raise MissingExtraError(_FEATURE, "server") from None
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError):
        raise ValueError("must be a private key in PEM format without a password.") from None
    if isinstance(key, rsa.RSAPrivateKey):
        return _RsaSigner(key)
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return _CurveSigner(key, _CurveKey(key.public_key()))
    raise ValueError("must be an RSA key, or a key of a NIST curve.")


def _checking_key(kind: bytes, pem: bytes) -> CheckingKey:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec, rsa
    except ImportError:
        raise MissingExtraError(_FEATURE, "server") from None
    if kind.endswith(b"PRIVATE KEY"):
        return signing_key(pem).public
    try:
        certified = kind == b"CERTIFICATE"
        key = x509.load_pem_x509_certificate(pem).public_key() if certified else serialization.load_pem_public_key(pem)
    except (ValueError, TypeError):
        raise ValueError("must be readable public keys or certificates in PEM format.") from None
    if isinstance(key, rsa.RSAPublicKey):
        return _RsaKey(key)
    if isinstance(key, ec.EllipticCurvePublicKey):
        return _CurveKey(key)
    raise ValueError("must be an RSA key, or a key of a NIST curve.")


@final
@dataclass(frozen=True, slots=True, repr=False)
class _RsaKey:
    key: rsa.RSAPublicKey
    algorithm: str = "RS256"

    @property
    def identifier(self) -> str:
        return _identifier(self.key)

    def holds(self, signed: bytes, signature: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        try:
            self.key.verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return False
        return True


@final
@dataclass(frozen=True, slots=True, repr=False)
class _RsaSigner:
    key: rsa.RSAPrivateKey

    @property
    def public(self) -> CheckingKey:
        return _RsaKey(self.key.public_key())

    def sign(self, signed: bytes) -> bytes:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        return self.key.sign(signed, padding.PKCS1v15(), hashes.SHA256())


@final
class _CurveKey:
    __slots__ = ("algorithm", "half", "hash", "key")

    def __init__(self, key: ec.EllipticCurvePublicKey) -> None:
        from cryptography.hazmat.primitives import hashes

        known: dict[str, tuple[str, int, hashes.HashAlgorithm]] = {
            "secp256r1": ("ES256", 32, hashes.SHA256()),
            "secp384r1": ("ES384", 48, hashes.SHA384()),
            "secp521r1": ("ES512", 66, hashes.SHA512()),
        }
        if key.curve.name not in known:
            raise ValueError("must be a key of the curve P-256, P-384 or P-521.")
        self.key = key
        self.algorithm, self.half, self.hash = known[key.curve.name]

    @property
    def identifier(self) -> str:
        return _identifier(self.key)

    def holds(self, signed: bytes, signature: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

        if len(signature) != 2 * self.half:
            return False
        halves = (int.from_bytes(signature[: self.half], "big"), int.from_bytes(signature[self.half :], "big"))
        try:
            self.key.verify(encode_dss_signature(*halves), signed, ec.ECDSA(self.hash))
        except InvalidSignature:
            return False
        return True


@final
@dataclass(frozen=True, slots=True, repr=False)
class _CurveSigner:
    key: ec.EllipticCurvePrivateKey
    public: _CurveKey

    def sign(self, signed: bytes) -> bytes:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        r, s = decode_dss_signature(self.key.sign(signed, ec.ECDSA(self.public.hash)))
        half = self.public.half
        return r.to_bytes(half, "big") + s.to_bytes(half, "big")


def _identifier(key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey) -> str:
    from cryptography.hazmat.primitives import serialization

    public = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return base64.urlsafe_b64encode(hashlib.sha256(public).digest()).rstrip(b"=").decode()
