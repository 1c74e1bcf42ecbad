"""Secret that stores the certificate authorities and shows the API server's clock."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.kinds import SECRET
from deltaloop.api.resource import Resource
from deltaloop.api.status import AlreadyExistsError, ConflictError, ForbiddenError, NotFoundError
from deltaloop.api.times import parse_time
from deltaloop.client import Client, WriteOptions
from deltaloop.webhooks.certificates import secret_form
from deltaloop.webhooks.core.certificates.authorities import Authorities
from deltaloop.webhooks.core.certificates.rotation import SecretSeen, SecretState
from deltaloop.webhooks.core.certificates.server_clock import ServerClock

_log: Final = logging.getLogger("deltaloop.webhooks")

MANAGER: Final = "deltaloop-certificates"

_CLOCK_EVERY: Final = 86400.0
_CLOCK_ANNOTATION: Final = "webhooks.deltaloop.dev/clock"
_CLOCKS_DIFFER: Final = 60.0
_DRY: Final = WriteOptions(dry_run=True)


@final
class AuthoritySecret:
    """Reader and writer of one Secret. ``labels`` and ``owner`` are only used for a new Secret."""

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        name: str,
        labels: Mapping[str, str],
        owner: Mapping[str, Any] | None,
        clock: Callable[[], float],
        wall_clock: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._labels = labels
        self._owner = owner
        self._clock = clock
        self._server_clock = ServerClock(wall_clock().timestamp(), clock())
        self._clock_seen_at: float | None = None
        self._read: Resource | None = None

    def __str__(self) -> str:
        return f"{self._namespace}/{self._name}"

    def now(self) -> float:
        """Return the best estimate of the API server's time in seconds since 1970."""
        return self._server_clock.now(self._clock())

    async def read(self) -> SecretSeen:
        if self._clock_seen_at is None or self._clock() - self._clock_seen_at >= _CLOCK_EVERY:
            await self._look_at_the_clock(await self._find())
        asked_at = self.now()
        self._read = await self._find()
        if self._read is None:
            return SecretSeen(SecretState.MISSING, asked_at)
        fields = self._read.to_dict()
        if (held := secret_form.read_secret(fields)) is not None:
            return SecretSeen(SecretState.HELD, asked_at, held)
        return SecretSeen(SecretState.UNUSABLE if secret_form.is_ours(fields) else SecretState.FOREIGN, asked_at)

    async def write(self, held: Authorities) -> None:
        """Write unchanged authorities.

        Raises ConflictError (``AlreadyExistsError``) or NotFoundError after other writes.
        """
        data = secret_form.to_data(held)
        if self._read is None:
            metadata: dict[str, Any] = {"labels": dict(self._labels), "annotations": {secret_form.MARK: "v1"}}
            if self._owner is not None:
                metadata["ownerReferences"] = [dict(self._owner)]
            await self._client.create(SECRET, self._new(metadata, data), namespace=self._namespace)
        else:
            fields: dict[str, Any] = self._read.to_dict()
            fields["metadata"].setdefault("annotations", {})[secret_form.MARK] = "v1"
            fields["data"] = data
            await self._client.update(SECRET, fields, namespace=self._namespace)
        _log.info(
            "the CAs of the webhook certificates changed",
            extra={
                "secret_name": str(self),
                "published": held.signer.published_at is not None,
                "successor": held.successor is not None,
                "former": len(held.former),
            },
        )

    async def _find(self) -> Resource | None:
        return await self._client.find(SECRET, self._name, namespace=self._namespace)

    def _new(self, metadata: Mapping[str, Any], data: Mapping[str, str]) -> dict[str, Any]:
        return {"metadata": {**metadata, "name": self._name}, "type": secret_form.TYPE, "data": data}

    async def _look_at_the_clock(self, secret: Resource | None) -> None:
        """Learn the server's time from the timestamp of a dry run."""
        now = self._clock()
        try:
            shown = await self._dry_run(secret, now)
        except (ConflictError, AlreadyExistsError, NotFoundError):
            return  # the next pass tries again
        except ForbiddenError:
            shown = None
        self._clock_seen_at = now
        if shown is None:
            return
        self._server_clock.seen(shown.timestamp(), now)
        if abs(self._server_clock.offset) > _CLOCKS_DIFFER:
            _log.warning(
                "the local clock differs from the clock of the API server, which certificates use",
                extra={"seconds": round(self._server_clock.offset)},
            )

    async def _dry_run(self, secret: Resource | None, now: float) -> datetime | None:
        if secret is None:
            empty: dict[str, Any] = {
                "metadata": {"name": self._name}
            }  # without a type, because the server warns about an empty TLS Secret
            made = await self._client.create(SECRET, empty, namespace=self._namespace, options=_DRY)
            return _time(made.to_dict()["metadata"].get("creationTimestamp"))
        fields: dict[str, Any] = secret.to_dict()
        fields["metadata"].setdefault("annotations", {})[_CLOCK_ANNOTATION] = str(now)
        changed = await self._client.update(SECRET, fields, namespace=self._namespace, options=_DRY)
        managers = changed.to_dict()["metadata"].get("managedFields", [])
        times = [_time(each.get("time")) for each in managers if each.get("manager") == MANAGER]
        return max((each for each in times if each is not None), default=None)


def _time(text: object) -> datetime | None:
    try:
        return parse_time(text) if isinstance(text, str) else None
    except InvalidArgumentError:
        return None
