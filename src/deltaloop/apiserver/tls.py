"""TLS for a server on this machine: a certificate authority and a certificate, made at start and kept in memory.

Validity is counted from the system's clock, whatever clock the server writes into objects: the one who checks a
certificate looks at the system's clock, too. The private key touches the disk only while OpenSSL loads it, in a
directory that nobody else can read; the authority's key is thrown away at once.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from deltaloop.api.errors import MissingExtraError

_VALID: Final = timedelta(days=365)
_SKEW: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class TlsMaterial:
    """What the server and its clients need.

    Attributes:
        context: For the listening socket; HTTP/1.1 only.
        ca_pem: Certificate of the authority, for kubeconfigs.
    """

    context: ssl.SSLContext
    ca_pem: bytes


def make_tls(*, host: str) -> TlsMaterial:
    """Make certificates for ``host`` and for this machine's loopback names.

    Raises:
        MissingExtraError: If the extra ``server`` is not installed.
    """
    ca_pem, certificate, key = _make_certificates(host)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    with tempfile.TemporaryDirectory(prefix="deltaloop-") as directory:
        chain = Path(directory) / "server.pem"
        descriptor = os.open(chain, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(key + certificate)
        context.load_cert_chain(chain)
    return TlsMaterial(context, ca_pem)


def _make_certificates(host: str) -> tuple[bytes, bytes, bytes]:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
    except ImportError:
        raise MissingExtraError("TLS in the embedded API server", "server") from None

    def name(common: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])

    start = datetime.now(UTC) - _SKEW
    ca_key = ec.generate_private_key(ec.SECP256R1())
    server_key = ec.generate_private_key(ec.SECP256R1())
    ca_id = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    authority = (
        x509.CertificateBuilder()
        .subject_name(name("deltaloop embedded API server CA"))
        .issuer_name(name("deltaloop embedded API server CA"))
        .public_key(ca_key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + _VALID)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(ca_id, critical=False)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                key_cert_sign=True,
                crl_sign=True,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
        .sign(ca_key, hashes.SHA256())
    )
    names: list[x509.GeneralName] = [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        x509.IPAddress(ipaddress.ip_address("::1")),
    ]
    if host not in ("localhost", "127.0.0.1", "::1"):
        names.append(x509.IPAddress(ipaddress.ip_address(host)))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name("deltaloop embedded API server"))
        .issuer_name(authority.subject)
        .public_key(server_key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + _VALID)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ca_id), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    key = server_key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return authority.public_bytes(pem), certificate.public_bytes(pem), key
