"""The official client: its ``SharedInformer``, as its own documentation shows it; the index is kept in the handler.

Custom resources have no typed list function; the generic one returns a dictionary, which its informer cannot read, so
that one attribute-shaped page is put around it.
"""

from __future__ import annotations

import time
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from lab.bench.peers import peer
from lab.bench.replay.objects import GROUP

client: Any = import_module("kubernetes.client")
config: Any = import_module("kubernetes.config")
informers: Any = import_module("kubernetes.informer.informer")


def main() -> None:
    """Fill the cache and follow the runner."""
    config.load_kube_config()
    counter = peer.Counter()
    index: dict[str, set[str]] = {}
    pods = peer.kind() == "pods"

    def list_widgets(**options: Any) -> Any:
        """List.

        :return: object
        """
        page = client.CustomObjectsApi().list_cluster_custom_object(GROUP, "v1", "widgets", **options)
        if not isinstance(page, dict):
            return page
        version = SimpleNamespace(resource_version=page["metadata"]["resourceVersion"])
        return SimpleNamespace(items=page["items"], metadata=version)

    def added(obj: Any) -> None:
        metadata = obj.metadata.to_dict() if pods else obj["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        index.setdefault(metadata["labels"][peer.INDEX_LABEL], set()).add(key)

    def modified(obj: Any) -> None:
        counter.event(lambda: (obj.metadata.annotations if pods else obj["metadata"]["annotations"])[peer.SENT])

    informer = informers.SharedInformer(client.CoreV1Api().list_pod_for_all_namespaces if pods else list_widgets)
    informer.add_event_handler(informers.ADDED, added)
    informer.add_event_handler(informers.MODIFIED, modified)

    def fill() -> int:
        informer.start()
        while informer._resource_version is None:
            time.sleep(0.001)  # noqa: TID251 - a threaded peer
        return len(informer.cache.list())

    def probe(key: str) -> dict[str, object]:
        obj = informer.cache.get_by_key(key)
        version = obj.metadata.resource_version if pods else obj["metadata"]["resourceVersion"]
        found = [informer.cache.get_by_key(each) for each in index.get(peer.PROBE_APPLICATION, ())]
        return peer.found_facts(version, len(found))

    peer.say("ready")
    peer.converse_blocking(counter, fill, probe)


if __name__ == "__main__":
    main()
