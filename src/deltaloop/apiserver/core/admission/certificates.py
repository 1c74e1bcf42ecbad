"""Admission of CertificateSigningRequests: approving, signing, and the ban on ``system:masters``.

Source: Kubernetes plugin/pkg/admission/certificates; RFC 2986 and X.690 for what a request looks like.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from deltaloop.api.json_values import at, text
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.chain import Plugin
from deltaloop.apiserver.core.user import Attributes

_REQUESTS: Final = "certificatesigningrequests.certificates.k8s.io"
_CLIENTS: Final = "kubernetes.io/kube-apiserver-client"
_ADMINISTRATORS: Final = b"system:masters"
_ORGANIZATION: Final = b"\x55\x04\x0a"
_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE REQUEST-----(.*?)-----END CERTIFICATE REQUEST-----", re.DOTALL)


def _may(attributes: AdmissionAttributes, verb: str, signer: str) -> bool:
    every = f"{signer.partition('/')[0]}/*"
    wanted = Attributes(user=attributes.user, verb=verb, group="certificates.k8s.io", version="*", resource="signers")
    return any(
        attributes.context.decide(msgspec.structs.replace(wanted, name=name)).allowed for name in (signer, every)
    )


def _checked_for(verb: str, *, only_changes: bool) -> Callable[[AdmissionAttributes], None]:
    def check(attributes: AdmissionAttributes) -> None:
        before, after = attributes.before, attributes.after
        fields = ("certificate", "conditions")
        if only_changes and all(at(before, "status", name) == at(after, "status", name) for name in fields):
            return
        signer = text(at(before, "spec", "signerName"))
        if not _may(attributes, verb, signer):
            raise attributes.refused(f'user not permitted to {verb} requests with signerName "{signer}"')

    return check


def _check_subject(attributes: AdmissionAttributes) -> None:
    if at(attributes.after, "spec", "signerName") != _CLIENTS:
        return
    try:
        organizations = [*organizations_of(text(at(attributes.after, "spec", "request")))]
    except ValueError:
        raise attributes.refused("failed to parse CSR: PEM block type must be CERTIFICATE REQUEST") from None
    if _ADMINISTRATORS in organizations:
        raise attributes.refused(f"use of {_CLIENTS} signer with system:masters group is not allowed")


def organizations_of(request: str) -> Iterator[bytes]:
    """Yield the organizations in the subject of a base64-encoded PEM request, or raise ValueError if it is invalid."""
    pem = _PEM.search(base64.b64decode(request).decode("ascii", "replace"))
    if pem is None:
        raise ValueError("no certificate request in PEM")
    try:
        (_, outer), *_ = _values(base64.b64decode(pem[1]))
        (_, about), *_ = _values(outer)
        _, (_, subject), *_ = _values(about)
        for _, names in _values(subject):
            for _, name in _values(names):
                (_, kind), (_, value), *_ = _values(name)
                if kind == _ORGANIZATION:
                    yield value
    except (IndexError, binascii.Error) as error:
        raise ValueError("the certificate request is cut off") from error


def _values(der: bytes) -> Iterator[tuple[int, bytes]]:
    while der:
        tag, length, start = der[0], der[1], 2
        if length & 0x80:
            start += length & 0x7F
            length = int.from_bytes(der[2:start], "big")
        if len(der) < start + length:
            raise IndexError(length)
        yield tag, der[start : start + length]
        der = der[start + length :]


_UPDATE: Final = frozenset({"UPDATE"})
CERTIFICATE_APPROVAL: Final = Plugin(
    operations=_UPDATE,
    resources=frozenset({f"{_REQUESTS}/approval"}),
    validate=_checked_for("approve", only_changes=False),
)
CERTIFICATE_SIGNING: Final = Plugin(
    operations=_UPDATE,
    resources=frozenset({f"{_REQUESTS}/status"}),
    validate=_checked_for("sign", only_changes=True),
)
CERTIFICATE_SUBJECT_RESTRICTION: Final = Plugin(
    operations=frozenset({"CREATE"}), resources=frozenset({_REQUESTS}), validate=_check_subject
)
