"""Keys of a controller manager that both servers know: tokens in Secrets are signed with them."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from deltaloop.apiserver.token_signer import TokenSigner


def pem_of(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    pem = serialization.Encoding.PEM
    return key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def public_pem_of(private: bytes) -> bytes:
    key = serialization.load_pem_private_key(private, password=None)
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form)


@cache
def manager_keys() -> dict[str, bytes]:
    """The private keys, in PEM, by algorithm."""
    return {
        "RS256": pem_of(rsa.generate_private_key(public_exponent=65_537, key_size=2048)),
        "ES384": pem_of(ec.generate_private_key(ec.SECP384R1())),
    }


@cache
def known_keys() -> bytes:
    """The public keys, one below the other."""
    return b"".join(map(public_pem_of, manager_keys().values()))


def token_in_secret(account: dict[str, Any], secret: str, *, key: bytes, **changes: Any) -> str:
    """Sign what a controller manager writes into a Secret; changes are of what it says."""
    namespace, name = account["metadata"]["namespace"], account["metadata"]["name"]
    said = {
        "iss": "kubernetes/serviceaccount",
        "kubernetes.io/serviceaccount/namespace": namespace,
        "kubernetes.io/serviceaccount/secret.name": secret,
        "kubernetes.io/serviceaccount/service-account.name": name,
        "kubernetes.io/serviceaccount/service-account.uid": account["metadata"]["uid"],
        "sub": f"system:serviceaccount:{namespace}:{name}",
    }
    return TokenSigner(key).sign(said | {name.replace("__", "/"): value for name, value in changes.items()})


def claims_of(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    said: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return said
