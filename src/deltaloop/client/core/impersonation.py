"""Asking in somebody else's name: the headers that say whose.

The server checks that the real user may impersonate. A key of the extra fields is part of a header's name, so
characters that a name cannot have are percent-encoded.

Source: client-go transport/round_trippers.go (``impersonatingRoundTripper``, ``headerKeyEscape``).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from deltaloop.client.core.credential import is_header_value
from deltaloop.client.errors import ConfigError

_NAME_CHARACTERS = frozenset(b"!#$&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


class Impersonation(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to ask as.

    Attributes:
        user: User name; service accounts are ``system:serviceaccount:<namespace>:<name>``.
        uid: Unique id of the user, or "".
        groups: Groups; without any, the server takes those of the name.
        extra: Further fields, each with its values.
    """

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])

    def __post_init__(self) -> None:
        """Refuse what the server would not understand.

        Raises:
            ConfigError: If there is no user, or a value cannot be sent as a header.
        """
        if not self.user:
            raise ConfigError(
                "as-uid, as-groups or as-user-extra without as: name the user to impersonate there as well"
            )
        values = [("as", self.user), ("as-uid", self.uid), *(("as-groups", group) for group in self.groups)]
        values += [("as-user-extra", value) for each in self.extra.values() for value in each]
        for name, value in values:
            if not is_header_value(value):
                raise ConfigError(f"{name} has a line break or another control character in it; take it out")
        if not all(self.extra):
            raise ConfigError("as-user-extra has an empty key; give the field a name")


def impersonation_headers(impersonation: Impersonation) -> list[tuple[str, str]]:
    """Return the headers, in order; names may come several times."""
    headers = [("Impersonate-User", impersonation.user)]
    if impersonation.uid:
        headers.append(("Impersonate-Uid", impersonation.uid))
    headers += [("Impersonate-Group", group) for group in impersonation.groups]
    for key, values in impersonation.extra.items():
        headers += [(f"Impersonate-Extra-{_escaped(key)}", value) for value in values]
    return headers


def _escaped(key: str) -> str:
    # Half of a surrogate pair cannot be encoded; it becomes a question mark, which is escaped in turn.
    return "".join(chr(byte) if byte in _NAME_CHARACTERS else f"%{byte:02X}" for byte in key.encode("utf-8", "replace"))
