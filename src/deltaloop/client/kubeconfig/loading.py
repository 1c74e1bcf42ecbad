"""Load kubeconfig files, merge them, and select a context.

Files are merged like in kubectl: for each entry, the first file in ``KUBECONFIG`` that defines it wins, missing files
are ignored, and relative paths are relative to their file.

Source: client-go tools/clientcmd (``loader.go``, ``client_config.go``, ``validation.go``).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_documents import json_documents
from deltaloop.api.redaction import SecretText
from deltaloop.client.bounded_files import read_file
from deltaloop.client.config import ClientConfig, TlsConfig
from deltaloop.client.errors import ConfigError
from deltaloop.client.kubeconfig.entry import Entry
from deltaloop.client.kubeconfig.user import read_credentials, read_impersonation

_log = logging.getLogger("deltaloop.client")

PIPE_PATIENCE: Final = 5.0
_IN_MEMORY: Final = "kubeconfig (given as a mapping)"


class _Merged(msgspec.Struct):
    sources: list[str] = msgspec.field(default_factory=list[str])
    current_context: str = ""
    clusters: dict[str, Entry] = msgspec.field(default_factory=dict[str, Entry])
    users: dict[str, Entry] = msgspec.field(default_factory=dict[str, Entry])
    contexts: dict[str, Entry] = msgspec.field(default_factory=dict[str, Entry])

    def __str__(self) -> str:
        return ", ".join(self.sources)


def find_kubeconfigs(environ: Mapping[str, str] = os.environ, *, home: Path | None = None) -> list[Path]:
    """Return the existing files in ``KUBECONFIG``, otherwise ``~/.kube/config`` if it exists, otherwise nothing."""
    named = [_expanded(part) for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    if named:
        found = [path for path in named if _exists(path)]
        if not found:
            listed = ", ".join(map(str, named))
            raise ConfigError(f"must name existing files, got {listed}. Unset or correct it.", argument="KUBECONFIG")
        return found
    default = default_kubeconfig(home)
    return [default] if default is not None and _exists(default) else []


def default_kubeconfig(home: Path | None = None) -> Path | None:
    """Return ``~/.kube/config``, or None for a user without a home directory, which is common in containers."""
    try:
        return (home or Path.home()) / ".kube" / "config"
    except RuntimeError:
        return None


def load_kubeconfig(
    *kubeconfigs: str | os.PathLike[str] | Mapping[str, Any],
    context: str | None = None,
    namespace: str | None = None,
) -> ClientConfig:
    """Load kubeconfigs, and return the configuration of one context.

    Args:
        kubeconfigs: Paths, or contents as mappings. For each entry, the first kubeconfig that defines it wins.
        context: Name of the context. None means ``current-context``.
        namespace: Default namespace. None means the context's namespace, or ``default``.

    Raises:
        ConfigError: If a setting is not usable. The message names its location and the remedy.
    """
    merged = _Merged()
    for kubeconfig in kubeconfigs:
        if isinstance(kubeconfig, Mapping):
            _merge(merged, kubeconfig, _IN_MEMORY, Path.cwd())
        else:
            path = _expanded(kubeconfig)
            _merge(merged, _read(path), f"kubeconfig {path}", path.absolute().parent)
    name = context or merged.current_context
    if not name:
        problem = f"must be set. Choose one of the contexts: {_names(merged.contexts)}."
        raise ConfigError(problem, argument="current-context").at(merged)
    chosen = merged.contexts.get(name)
    if chosen is None:
        which = "context" if context else "current-context"
        problem = f"{name!r} does not exist. Choose one of the contexts: {_names(merged.contexts)}."
        raise ConfigError(problem, argument=which).at(merged)
    cluster = _refer(chosen, "cluster", merged.clusters)
    user = _refer(chosen, "user", merged.users) if chosen.text("user") else None
    return _config(cluster, user, context=name, namespace=namespace or chosen.text("namespace") or "default")


def _expanded(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:
        problem = "must be an absolute path, because no home directory exists for '~'."
        raise ConfigError(problem, argument=f"kubeconfig {os.fspath(path)}") from None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return True  # not accessible: reading the file raises the error


def _read(path: Path) -> Mapping[str, Any]:
    source = f"kubeconfig {path}"
    try:
        text = read_file(path, patience=PIPE_PATIENCE)
    except OSError as error:
        problem = f"must be readable: {error.strerror}. Choose another file, or correct its permissions."
        raise ConfigError(problem, argument=source) from None
    if known := json_documents(text):
        return cast("Mapping[str, Any]", known[0])
    from deltaloop.api.yaml_reader import read_yaml_body  # imported on use, because pods read no YAML

    repeated: list[str] = []
    try:
        content = read_yaml_body(text, source=source, repeated=repeated)
    except InvalidArgumentError as error:
        raise ConfigError(f"{error}. Correct the file, or choose another file.") from None
    if repeated:
        _log.warning("kubeconfig repeats a key of a map, using the last value", extra={"file": str(path)})
    if content is None:
        raise ConfigError("must contain clusters, users and contexts, got an empty file.", argument=source)
    if not isinstance(content, Mapping):
        raise ConfigError("must be a mapping with clusters, users and contexts.", argument=source)
    return cast("Mapping[str, Any]", content)


def _merge(merged: _Merged, content: Mapping[str, Any], source: str, directory: Path) -> None:
    merged.sources.append(source)
    if content.get("kind") not in (None, "", "Config"):
        raise ConfigError("must be Config. Choose another file.", argument="kind").at(source)
    if content.get("apiVersion") not in (None, "", "v1"):
        raise ConfigError("must be v1. Correct it, or choose another file.", argument="apiVersion").at(source)
    if not isinstance(content.get("preferences") or {}, Mapping):
        raise ConfigError("must be a mapping. Correct or remove it.", argument="preferences").at(source)
    _check_extensions(content, source)
    current = content.get("current-context") or ""
    if not isinstance(current, str):
        raise ConfigError("must be a string. Put it in quotes.", argument="current-context").at(source)
    merged.current_context = merged.current_context or current
    for section, singular, known in (
        ("clusters", "cluster", merged.clusters),
        ("users", "user", merged.users),
        ("contexts", "context", merged.contexts),
    ):
        for name, fields in _entries(content, section, singular, source).items():
            known.setdefault(name, Entry(f"{singular} {name!r}", fields, source, directory))


def _entries(content: Mapping[str, Any], section: str, singular: str, source: str) -> dict[str, Mapping[str, Any]]:
    listed = content.get(section)
    if listed is None:
        return {}
    if not isinstance(listed, list):
        raise ConfigError(f"must be a list of entries with name and {singular}.", argument=section).at(source)
    found: dict[str, Mapping[str, Any]] = {}
    for index, entry in enumerate(cast("list[Any]", listed)):
        where = f"{section}[{index}]"
        if entry is not None and not isinstance(entry, Mapping):
            raise ConfigError(f"must be a mapping with name and {singular}.", argument=where).at(source)
        fields = cast("Mapping[str, Any]", entry or {})
        name, body = fields.get("name"), fields.get(singular)
        name = "" if name is None else name  # kubectl accepts entries without a name
        if not isinstance(name, str):
            raise ConfigError("must be a string. Put it in quotes.", argument=f"{where}.name").at(source)
        if name in found:
            raise ConfigError(f"must be unique, got {name!r} twice. Rename one.", argument=f"{where}.name").at(source)
        # kubectl writes `user: null` for a user without credentials.
        if body is not None and not isinstance(body, Mapping):
            raise ConfigError(f"of {name!r} must be a mapping.", argument=f"{where}.{singular}").at(source)
        found[name] = cast("Mapping[str, Any]", body or {})
        _check_extensions(found[name], f"{source}: {where}")
    return found


def _check_extensions(fields: Mapping[str, Any], where: str) -> None:
    listed = fields.get("extensions")
    entries = cast("list[Any]", listed) if isinstance(listed, list) else []
    names = [str(cast("Mapping[str, Any]", entry).get("name")) for entry in entries if isinstance(entry, Mapping)]
    if len(set(names)) < len(names):
        raise ConfigError("must have unique names. Rename or remove an entry.", argument="extensions").at(where)


def _refer(chosen: Entry, what: str, known: Mapping[str, Entry]) -> Entry:
    name = chosen.text(what)
    if not name:
        raise chosen.fault(what, f"must be set. Choose one of the {what}s: {_names(known)}.")
    found = known.get(name)
    if found is None:
        raise chosen.fault(what, f"{name!r} does not exist. Choose one of the {what}s: {_names(known)}.")
    return found


def _names(known: Mapping[str, Entry]) -> str:
    return ", ".join(sorted(filter(None, known))) or "none"


def _config(cluster: Entry, user: Entry | None, *, context: str, namespace: str) -> ClientConfig:
    server = cluster.text("server")
    if not server:
        raise cluster.fault("server", "must be the address of the API server, got none.")
    ca_data, ca_file = cluster.data_or_file("certificate-authority")
    insecure = cluster.flag("insecure-skip-tls-verify")
    key, key_file = user.data_or_file("client-key") if user else (None, None)
    certificate, certificate_file = user.data_or_file("client-certificate") if user else (None, None)
    if "://" not in server:
        # Like client-go, use TLS if any TLS setting exists.
        server = ("https://" if ca_data or ca_file or certificate or insecure else "http://") + server
    # Errors in a single entry name its location. Combinations are validated below.
    key_data = None if key is None else SecretText(_pem(user, key))
    server_name = cluster.text("tls-server-name")
    credentials = read_credentials(user, cluster) if user else None
    impersonate = read_impersonation(user) if user else None
    proxy_url = cluster.text("proxy-url")
    compression = not cluster.flag("disable-compression")
    try:
        return ClientConfig(
            server=server.rstrip("/"),
            namespace=namespace,
            tls=TlsConfig(
                ca_data=ca_data,
                ca_file=ca_file,
                client_certificate_data=certificate,
                client_certificate_file=certificate_file,
                client_key_data=key_data,
                client_key_file=key_file,
                server_name=server_name,
                insecure_skip_verify=insecure,
            ),
            credentials=credentials,
            impersonate=impersonate,
            proxy_url=proxy_url,
            compression=compression,
            context=context,
            source=f"{cluster.source}, context {context!r}",
        )
    except ConfigError as error:
        raise error.at(f"{cluster}, or its user") from None


def _pem(user: Entry | None, data: bytes) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError:
        problem = "must be a PEM private key in base64. Use `base64 -w0` on the key file."
        raise ConfigError(problem, argument="client-key-data").at(user) from None
