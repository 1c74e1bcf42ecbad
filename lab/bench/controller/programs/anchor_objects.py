"""What both anchors decode of an object, and how they encode what they write."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from lab.bench.controller.objects import API_VERSION, GROUP, VERSION

GREETINGS: Final = f"/apis/{GROUP}/{VERSION}"
CONFIG_MAPS: Final = "/api/v1"
WORKERS: Final = 16
MERGE: Final = b"application/merge-patch+json"


class OwnerReference(msgspec.Struct, gc=False):
    """The fields of an owner reference by which a ConfigMap leads to its Greeting."""

    kind: str = ""
    name: str = ""
    controller: bool = False


class Metadata(msgspec.Struct, rename="camel", gc=False):
    """The metadata that the anchors need."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    uid: str = ""
    owner_references: list[OwnerReference] = []

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name


class Head(msgspec.Struct, gc=False):
    """An object of which only the metadata is decoded."""

    metadata: Metadata


class Event(msgspec.Struct, gc=False):
    """A line of a watch."""

    type: str
    object: msgspec.Raw


class Message(msgspec.Struct, gc=False):
    """Spec and status of a Greeting."""

    message: str = ""


class Greeting(msgspec.Struct, gc=False):
    """A Greeting."""

    metadata: Metadata
    spec: Message
    status: Message | None = None


class ConfigMap(msgspec.Struct, gc=False):
    """A ConfigMap."""

    metadata: Metadata
    data: dict[str, str] = {}


decode_event: Final = msgspec.json.Decoder(Event).decode
decode_head: Final = msgspec.json.Decoder(Head).decode
decode_greeting: Final = msgspec.json.Decoder(Greeting).decode
decode_config_map: Final = msgspec.json.Decoder(ConfigMap).decode
decode_fields: Final = msgspec.json.Decoder(dict[str, Any]).decode
encode: Final = msgspec.json.Encoder().encode


def owner_reference(name: str, uid: str) -> dict[str, Any]:
    """Return the reference that makes a Greeting the controlling owner."""
    reference = {"apiVersion": API_VERSION, "kind": "Greeting", "name": name, "uid": uid}
    return {**reference, "controller": True, "blockOwnerDeletion": True}
