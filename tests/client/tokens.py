"""JSON web tokens that nobody signed."""

from __future__ import annotations

import base64

import msgspec


def id_token(expires_at: float, *, name: str = "me") -> str:
    parts = ({"alg": "none"}, {"sub": name, "exp": expires_at})
    encoded = [base64.urlsafe_b64encode(msgspec.json.encode(part)).decode().rstrip("=") for part in parts]
    return f"{'.'.join(encoded)}.planted"
