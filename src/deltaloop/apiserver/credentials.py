"""The server's secrets: its token, its CA, and the key for service account tokens."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from deltaloop._internal.x509_certificates import key_pem
from deltaloop.api.redaction import SecretText
from deltaloop.apiserver.errors import DataDirectoryError
from deltaloop.apiserver.options import ServerOptions
from deltaloop.apiserver.private_files import read_private, write_private
from deltaloop.apiserver.tls import CertificateAuthority, new_key
from deltaloop.apiserver.token_signer import TokenSigner

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServerCredentials:
    token: SecretText | None
    authority: CertificateAuthority | None
    signer: TokenSigner


def new_token() -> SecretText:
    return SecretText(secrets.token_urlsafe(32))


def credentials_of(options: ServerOptions, token: SecretText | None) -> ServerCredentials:
    """Create the server's secrets, or read them from its data directory."""
    directory = options.data_dir
    accepted = [key.reveal().encode() for key in options.accepted_service_account_keys]
    given = options.service_account_key
    signer = TokenSigner(given.reveal().encode() if given is not None else b"", accepted=accepted)
    if options.insecure_http:
        return ServerCredentials(None, None, signer)
    if directory is None:
        return ServerCredentials(token or new_token(), CertificateAuthority.make(), signer)
    if token is None:
        kept = _kept(directory / "token", new_token().reveal().encode, lambda raw: raw.decode().strip())
        token = SecretText(kept)
    authority = _kept(
        directory / "authority.pem", lambda: CertificateAuthority.make().to_pem(), CertificateAuthority.load
    )
    if given is None:
        make = partial(TokenSigner, accepted=accepted)
        signer = _kept(directory / "service-accounts.pem", lambda: key_pem(new_key()), make)
    return ServerCredentials(token, authority, signer)


def _kept(file: Path, make: Callable[[], bytes], read: Callable[[bytes], T]) -> T:
    try:
        try:
            raw = read_private(file)
        except FileNotFoundError:
            raw = make()
            write_private(file, raw)
        return read(raw)
    except OSError as error:
        link = " (a symbolic link)" if file.is_symlink() else ""
        text = f"cannot use {file}: {error.strerror or type(error).__name__}{link}"
        raise DataDirectoryError(text, directory=file.parent) from error
    except ValueError:
        text = f"{file} is not readable or has expired. Remove it, so that the server creates a new file."
        raise DataDirectoryError(text, directory=file.parent) from None
