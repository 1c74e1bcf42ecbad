"""Load kubeconfig files, merge them, and select a context.

Files are merged like in kubectl: for each entry, the first file in ``KUBECONFIG`` that defines it wins, missing files
are ignored, and relative paths are relative to their file. Faults raise ``ConfigError`` without secrets.

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
    """Return the existing files in ``KUBECONFIG``, otherwise ``~/.kube/config`` if it exists, otherwise nothing.

    Raises ConfigError if ``KUBECONFIG`` is set and none of its files exist.
    """
    named = [_expanded(part) for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    if named:
        found = [path for path in named if _exists(path)]
        if not found:
            raise ConfigError(
                f"KUBECONFIG names {', '.join(map(str, named))}, which does not exist; unset or correct it"
            )
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
        raise ConfigError(f"{merged}: no current-context; choose one of the contexts: {_names(merged.contexts)}")
    chosen = merged.contexts.get(name)
    if chosen is None:
        which = "context" if context else "current-context"
        raise ConfigError(
            f"{merged}: {which} {name!r} is not there; choose one of the contexts: {_names(merged.contexts)}"
        )
    cluster = _refer(chosen, "cluster", merged.clusters)
    user = _refer(chosen, "user", merged.users) if chosen.text("user") else None
    return _config(cluster, user, context=name, namespace=namespace or chosen.text("namespace") or "default")


def _expanded(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ConfigError(
            f"kubeconfig {os.fspath(path)}: there is no home directory for '~'; write the whole path"
        ) from None


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
        raise ConfigError(
            f"{source} cannot be read: {error.strerror}; name another file, or correct its permissions"
        ) from None
    from deltaloop.api.yaml_reader import read_yaml_body  # imported on use, because pods read no YAML

    repeated: list[str] = []
    try:
        content = read_yaml_body(text, source=source, repeated=repeated)
    except InvalidArgumentError as error:
        raise ConfigError(f"{error}; correct the file there, or name another one") from None
    if repeated:
        _log.warning("kubeconfig has a key twice in one map: the last value counts", extra={"file": str(path)})
    if content is None:
        raise ConfigError(f"{source} is empty; name another file, or write clusters, users and contexts into it")
    if not isinstance(content, Mapping):
        raise ConfigError(f"{source} is not a kubeconfig: a mapping with clusters, users and contexts is needed")
    return cast("Mapping[str, Any]", content)


def _merge(merged: _Merged, content: Mapping[str, Any], source: str, directory: Path) -> None:
    merged.sources.append(source)
    if content.get("kind") not in (None, "", "Config"):
        raise ConfigError(f"{source} is not a kubeconfig: its kind is not Config; name another file")
    if content.get("apiVersion") not in (None, "", "v1"):
        raise ConfigError(f"{source}: apiVersion must be v1; correct it, or name another file")
    if not isinstance(content.get("preferences") or {}, Mapping):
        raise ConfigError(f"{source}: preferences is not a mapping; remove it, or write its fields below it")
    _check_extensions(content, source)
    current = content.get("current-context") or ""
    if not isinstance(current, str):
        raise ConfigError(f"{source}: current-context is not text; put it in quotes")
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
        raise ConfigError(f"{source}: {section} is not a list; write a list of entries with name and {singular}")
    found: dict[str, Mapping[str, Any]] = {}
    for index, entry in enumerate(cast("list[Any]", listed)):
        where = f"{source}: {section}[{index}]"
        if entry is not None and not isinstance(entry, Mapping):
            raise ConfigError(f"{where} is not a mapping; write an entry with name and {singular}")
        fields = cast("Mapping[str, Any]", entry or {})
        name, body = fields.get("name"), fields.get(singular)
        name = "" if name is None else name  # kubectl accepts entries without a name
        if not isinstance(name, str):
            raise ConfigError(f"{where} has a name that is not text; put it in quotes")
        if name in found:
            raise ConfigError(f"{where} has the name {name!r}, as another entry; rename or remove one of both")
        # kubectl writes `user: null` for a user without credentials.
        if body is not None and not isinstance(body, Mapping):
            raise ConfigError(f"{where}: {singular} of {name!r} is not a mapping; write its fields below it, indented")
        found[name] = cast("Mapping[str, Any]", body or {})
        _check_extensions(found[name], where)
    return found


def _check_extensions(fields: Mapping[str, Any], where: str) -> None:
    listed = fields.get("extensions")
    entries = cast("list[Any]", listed) if isinstance(listed, list) else []
    names = [str(cast("Mapping[str, Any]", entry).get("name")) for entry in entries if isinstance(entry, Mapping)]
    if len(set(names)) < len(names):
        raise ConfigError(f"{where}: extensions has two entries of one name; rename or remove one of both")


def _refer(chosen: Entry, what: str, known: Mapping[str, Entry]) -> Entry:
    name = chosen.text(what)
    if not name:
        raise ConfigError(f"{chosen} names no {what}; write one of the {what}s: {_names(known)}")
    found = known.get(name)
    if found is None:
        raise ConfigError(
            f"{chosen} names the {what} {name!r}, which is not there; write one of the {what}s: {_names(known)}"
        )
    return found


def _names(known: Mapping[str, Entry]) -> str:
    return ", ".join(sorted(filter(None, known))) or "none at all"


def _config(cluster: Entry, user: Entry | None, *, context: str, namespace: str) -> ClientConfig:
    server = cluster.text("server")
    if not server:
        raise ConfigError(f"{cluster} has no server; write the address of the API server there")
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
        raise ConfigError(f"{cluster}, or its user: {error}") from None


def _pem(user: Entry | None, data: bytes) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError:
        raise ConfigError(
            f"{user}: client-key-data is not a PEM private key in base64; write the key file through `base64 -w0`"
        ) from None
