"""Keys of service account tokens: each kind signs and checks, in each form of a file; others are refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID

from deltaloop.api.redaction import SecretText
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.apiserver.token_keys import checking_keys, signing_key
from deltaloop.apiserver.token_signer import TokenSigner
from deltaloop.errors import InvalidArgumentError
from tests.having import having

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
PEM = serialization.Encoding.PEM


PKCS8 = serialization.PrivateFormat.PKCS8
OLD_FORM = serialization.PrivateFormat.TraditionalOpenSSL


def private(key: PrivateKey, *, form: serialization.PrivateFormat = PKCS8) -> bytes:
    return key.private_bytes(PEM, form, serialization.NoEncryption())


def public(key: PrivateKey) -> bytes:
    return key.public_key().public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def certificate(key: PrivateKey) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "manager")])
    start = datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(start).not_valid_after(start + timedelta(days=1))
    return builder.sign(key, hashes.SHA256()).public_bytes(PEM)


RSA = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
KEYS: dict[str, PrivateKey] = {
    "RS256": RSA,
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "ES384": ec.generate_private_key(ec.SECP384R1()),
    "ES512": ec.generate_private_key(ec.SECP521R1()),
}


@pytest.mark.parametrize("algorithm", KEYS)
def test_token_is_verified_by_every_key_format(algorithm: str) -> None:
    key = KEYS[algorithm]
    token = TokenSigner(private(key)).sign({"sub": "x"})
    forms = (public(key), private(key), private(key, form=OLD_FORM), certificate(key))
    for form in forms:
        assert TokenSigner(accepted=[form]).read(token) == {"sub": "x"}
        head, body, signature = token.split(".")
        wrong = f"{'A' if signature[0] != 'A' else 'B'}{signature[1:]}"
        assert TokenSigner(accepted=[form]).read(f"{head}.{body}.{wrong}") is None
        assert TokenSigner(accepted=[form]).read(f"{head}.{body}.{signature[:20]}") is None
    assert signing_key(private(key)).public.algorithm == algorithm


def test_token_is_verified_by_any_key_of_a_file_or_the_signing_key() -> None:
    several = b"".join(public(key) for key in KEYS.values())
    assert [key.algorithm for key in checking_keys(several)] == [*KEYS]
    signer = TokenSigner(accepted=[several])
    for key in KEYS.values():
        assert signer.read(TokenSigner(private(key)).sign({"a": 1})) == {"a": 1}
    assert signer.read(signer.sign({"b": 2})) == {"b": 2}
    assert signer.read(TokenSigner().sign({"c": 3})) is None


@pytest.mark.parametrize(
    ("pem", "said"),
    [
        ("nothing", "must contain a key"),
        ("-----BEGIN PUBLIC KEY-----\nc2VjcmV0\n-----END PUBLIC KEY-----\n", "must be readable"),
        ("-----BEGIN CERTIFICATE-----\nc2VjcmV0\n-----END CERTIFICATE-----\n", "must be readable"),
        (public(ec.generate_private_key(ec.SECP256K1())).decode(), "of the curve"),
        (
            ed25519.Ed25519PrivateKey.generate()
            .public_key()
            .public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
            .decode(),
            "NIST",
        ),
    ],
    ids=["no PEM", "no key inside", "no certificate inside", "a curve of others", "a kind of others"],
)
def test_unusable_keys_are_rejected(pem: str, said: str) -> None:
    argument = "ServerOptions.accepted_service_account_keys[0]"
    with pytest.raises(InvalidArgumentError, match=said, check=having(argument=argument)) as refused:
        ServerOptions(accepted_service_account_keys=(SecretText(pem),))
    assert "c2VjcmV0" not in str(refused.value)


@pytest.mark.parametrize("pem", ["nothing", public(RSA).decode()], ids=["no PEM", "a public key"])
def test_signing_key_must_be_private(pem: str) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="ServerOptions.service_account_key")):
        ServerOptions(service_account_key=SecretText(pem))


async def test_options_repr_hides_keys_and_configured_key_signs() -> None:
    options = ServerOptions(
        insecure_http=True,
        service_account_key=SecretText(private(RSA).decode()),
        accepted_service_account_keys=(SecretText(public(RSA).decode()),),
    )
    assert "BEGIN" not in repr(options)
    async with ApiServer(options) as server:
        assert server._credentials is not None
        token = server._credentials.signer.sign({"sub": "x"})
    assert TokenSigner(accepted=[public(RSA)]).read(token) == {"sub": "x"}
