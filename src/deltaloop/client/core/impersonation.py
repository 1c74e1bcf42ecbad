"""Headers for requests on behalf of another user, with percent-encoded keys of extra fields.

Source: client-go transport/round_trippers.go (``impersonatingRoundTripper``, ``headerKeyEscape``).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from deltaloop.client.core.credential import is_header_value
from deltaloop.client.errors import ConfigError

_NAME_CHARACTERS = frozenset(b"!#$&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


class Impersonation(msgspec.Struct, frozen=True, kw_only=True):
    """User to impersonate.

    Attributes:
        user: User name. Service accounts are ``system:serviceaccount:<namespace>:<name>``.
        uid: UID of the user, or "".
        groups: Groups. If empty, the server uses the groups of the user.
        extra: Extra fields with their values.
    """

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])

    def __post_init__(self) -> None:
        """Validate the fields.

        Raises:
            ConfigError: If the user is missing, or a value is not valid in a header.
        """
        if not self.user:
            raise ConfigError("must be set if as-uid, as-groups or as-user-extra are set.", argument="as")
        values = [("as", self.user), ("as-uid", self.uid), *(("as-groups", group) for group in self.groups)]
        values += [("as-user-extra", value) for each in self.extra.values() for value in each]
        for name, value in values:
            if not is_header_value(value):
                raise ConfigError("must not contain a control character. Remove it.", argument=name)
        if not all(self.extra):
            raise ConfigError("must not have an empty key. Name the field.", argument="as-user-extra")


def impersonation_headers(impersonation: Impersonation) -> list[tuple[str, str]]:
    """Return the headers in order. Names can be repeated."""
    headers = [("Impersonate-User", impersonation.user)]
    if impersonation.uid:
        headers.append(("Impersonate-Uid", impersonation.uid))
    headers += [("Impersonate-Group", group) for group in impersonation.groups]
    for key, values in impersonation.extra.items():
        headers += [(f"Impersonate-Extra-{_escaped(key)}", value) for value in values]
    return headers


def _escaped(key: str) -> str:
    # A lone surrogate cannot be encoded. It becomes a question mark, which is then escaped.
    return "".join(chr(byte) if byte in _NAME_CHARACTERS else f"%{byte:02X}" for byte in key.encode("utf-8", "replace"))
