"""The data directory: what was acknowledged outlives ``kill -9``; what cannot be used is named."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sqlite3
import stat
import subprocess
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.persistence import FILE_NAME, DataFile
from deltaloop.errors import DataDirectoryError
from tests import warm
from tests.apiserver.serving import (
    CONFIG_MAPS,
    CRDS,
    OBJECTS_FROM_THE_START,
    WIDGETS,
    Caller,
    config_map,
    serving,
    widget,
    widget_crd,
)
from tests.having import having
from tests.nightly import by_day

SERVICES = "/api/v1/namespaces/default/services"


def rows(directory: Path) -> int:
    connection = sqlite3.connect(directory / FILE_NAME)
    try:
        return int(connection.execute("SELECT count(*) FROM changes").fetchone()[0])
    finally:
        connection.close()


async def test_objects_revisions_and_watch_window_survive_a_restart(tmp_path: Path) -> None:
    async with serving(data_dir=tmp_path) as on:
        made = await on.call.created(CONFIG_MAPS, config_map("a", {"k": "v"}))
        await on.call.created(CONFIG_MAPS, config_map("b"))
        await on.call.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "w"}})
        await on.call.delete(f"{CONFIG_MAPS}/b")
        before = await on.call.get(CONFIG_MAPS)
        page = await on.call.get("/api/v1/namespaces?limit=1")
        revision = on.server.revision
        port = int(on.server.url.rpartition(":")[2])
    async with serving(data_dir=tmp_path, port=port) as on:
        assert on.server.revision == revision
        assert (await on.call.get(CONFIG_MAPS)).body == before.body
        then = await on.call.get(f"{CONFIG_MAPS}?resourceVersion={made.revision}&resourceVersionMatch=Exact")
        assert [item["data"]["k"] for item in then.json["items"]] == ["v"]
        rest = await on.call.get(f"/api/v1/namespaces?limit=9&continue={page.json['metadata']['continue']}")
        assert rest.names == ["kube-node-lease", "kube-public", "kube-system"]
        async with on.call.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={made.revision}") as watch:
            seen = [
                (event["type"], event["object"]["metadata"]["name"]) for event in [await watch.next() for _ in range(3)]
            ]
        assert seen == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
        assert int((await on.call.created(CONFIG_MAPS, config_map("c"))).revision) == revision + 1


async def test_service_addresses_survive_a_restart(tmp_path: Path) -> None:
    def service(name: str, **spec: Any) -> dict[str, Any]:
        return {"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}], **spec}}

    async with serving(data_dir=tmp_path) as on:
        first = await on.call.created(SERVICES, service("a"))
    async with serving(data_dir=tmp_path) as on:
        again = await on.call.get(f"{SERVICES}/a")
        assert again.json == first.json
        spec = first.json["spec"]
        for taken in ({"clusterIP": spec["clusterIP"]}, {"ports": spec["ports"]}):
            refused = await on.call.post(SERVICES, service("b", **taken))
            assert refused.status == 422, refused.text
            assert "already allocated" in refused.json["message"]
        assert (await on.call.created(SERVICES, service("b"))).json["spec"]["clusterIP"] != spec["clusterIP"]


async def test_crds_and_credentials_survive_a_restart(tmp_path: Path) -> None:
    async with serving(data_dir=tmp_path) as on:
        await on.call.created(CRDS, widget_crd())
        await on.call.created(WIDGETS, widget("w"))
    async with ApiServer(ServerOptions(data_dir=tmp_path)) as server:
        first = server.kubeconfig()
        assert server.ca_pem is not None
    async with ApiServer(ServerOptions(data_dir=tmp_path, port=0)) as server:
        second = server.kubeconfig()
    assert first["users"] == second["users"]
    authority = "certificate-authority-data"
    assert first["clusters"][0]["cluster"][authority] == second["clusters"][0]["cluster"][authority]
    for name in ("token", "authority.pem", "service-accounts.pem", FILE_NAME):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600, name
    async with serving(data_dir=tmp_path) as on:
        assert (await on.call.get(WIDGETS)).names == ["w"]
        service = f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{widget_crd()['spec']['group']}"
        assert (await on.call.get(service)).status == 200
        await on.call.delete(f"{CRDS}/{widget_crd()['metadata']['name']}")
        assert (await on.call.get(service)).status == 404


async def test_compaction_deletes_unreachable_revisions(tmp_path: Path) -> None:
    async with serving(data_dir=tmp_path) as on:
        await on.call.created(CONFIG_MAPS, config_map("a"))
        for number in range(5):
            await on.call.patch(f"{CONFIG_MAPS}/a", {"data": {"k": str(number)}})
        await on.call.created(CONFIG_MAPS, config_map("b"))
        await on.call.delete(f"{CONFIG_MAPS}/b")
        on.server.compact()
    assert rows(tmp_path) == OBJECTS_FROM_THE_START + 1  # and one config map
    async with serving(data_dir=tmp_path) as on:
        old = await on.call.get(f"{CONFIG_MAPS}?resourceVersion=3&resourceVersionMatch=Exact")
        old.refuses(410, "Expired")
        assert (await on.call.get(CONFIG_MAPS)).names == ["a"]


async def test_directory_in_use_is_rejected(tmp_path: Path) -> None:
    async with serving(data_dir=tmp_path):
        with pytest.raises(DataDirectoryError, check=having(directory=tmp_path)):
            await ApiServer(ServerOptions(insecure_http=True, data_dir=tmp_path)).__aenter__()
    async with serving(data_dir=tmp_path):
        pass


def foreign(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE somebodys (a)")
    connection.close()


def newer(file: Path) -> None:
    DataFile(file.parent)._connection.close()
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


def nonsense(file: Path) -> None:
    file.write_bytes(b"no database at all" * 100)


@pytest.mark.parametrize(
    ("make", "said"),
    [(foreign, "was not created by this server"), (newer, "got 99"), (nonsense, "is damaged, or was not created")],
)
def test_foreign_file_is_rejected_and_unchanged(tmp_path: Path, make: Any, said: str) -> None:
    file = tmp_path / FILE_NAME
    make(file)
    before = file.read_bytes()
    with pytest.raises(DataDirectoryError, match=said):
        DataFile(tmp_path)
    assert file.read_bytes() == before


def test_error_contains_path_that_is_not_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataDirectoryError, check=having(directory=tmp_path / "file")):
        DataFile(tmp_path / "file")


async def test_every_request_fails_after_a_failed_write(tmp_path: Path) -> None:
    file = DataFile(tmp_path)
    store = RevisionStore()
    file.load(store)
    pages = file._connection.execute("PRAGMA page_count").fetchone()[0]
    file._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    store.create("configmaps", "a", {"metadata": {"name": "a"}, "data": "x" * 100_000})
    for _ in range(2):
        with pytest.raises(DataDirectoryError, match="full"):
            await file.settle()
    with pytest.raises(DataDirectoryError, match="full"):
        await file.close()
    again = RevisionStore()
    kept = DataFile(tmp_path)
    kept.load(again)
    assert again.revision == 1
    await kept.close()


@pytest.mark.real_time
async def test_finished_commit_is_not_awaited_again(tmp_path: Path) -> None:
    """Its callbacks run a turn later; whoever writes in that turn must not spin on it."""
    file = DataFile(tmp_path, fsync=True)
    store = RevisionStore()
    file.load(store)
    store.create("configmaps", "a", {"metadata": {"name": "a"}})
    flushing = file._start_flush()
    await asyncio.wait([flushing])
    file._flushing = flushing  # as it is between the end and its callbacks
    store.create("configmaps", "b", {"metadata": {"name": "b"}})
    async with asyncio.timeout(5):
        await file.settle()
    await file.close()


@pytest.mark.real_time
async def test_concurrent_writes_share_a_commit(tmp_path: Path) -> None:
    file = DataFile(tmp_path, fsync=True)
    store = RevisionStore()
    file.load(store)

    async def write(number: int) -> None:
        store.create("configmaps", str(number), {"metadata": {"name": str(number)}})
        await file.settle()

    commits = 0

    def count(statement: str) -> None:
        nonlocal commits
        commits += statement == "COMMIT"

    file._connection.set_trace_callback(count)
    await asyncio.gather(*(write(number) for number in range(50)))
    # The first goes alone, and all that came meanwhile together.
    assert commits <= 3
    await file.close()
    again = DataFile(tmp_path)
    restored = RevisionStore()
    again.load(restored)
    assert restored.count("configmaps") == 50
    await again.close()


READY = re.compile(rb"ready at (http://\S+)")


@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.parametrize("flags", by_day([(), ("--fsync",)], [()]))
async def test_acknowledged_writes_survive_kill_9(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Four writers at once; the process is killed in the middle of them."""
    process = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs while it starts
        [warm.command(), "apiserver", "--insecure-http", "--data-dir", str(tmp_path), *flags],
        stdout=subprocess.PIPE,
    )
    acknowledged: dict[str, str] = {}
    enough = asyncio.Event()
    try:
        assert process.stdout is not None
        ready = READY.search(process.stdout.readline())
        assert ready is not None
        url = ready[1].decode()

        async def write(call: Caller, writer: int) -> None:
            for number in range(100_000):
                name = f"w{writer}-{number % 40}"
                body = {"data": {"n": str(number)}}
                try:
                    if number < 40:
                        answer = await call.post(CONFIG_MAPS, config_map(name))
                    elif number % 7 == 3:
                        answer = await call.delete(f"{CONFIG_MAPS}/{name}")
                        await call.created(CONFIG_MAPS, config_map(name))
                        answer = await call.get(f"{CONFIG_MAPS}/{name}")
                    else:
                        answer = await call.patch(f"{CONFIG_MAPS}/{name}", body)
                except (aiohttp.ClientError, AssertionError):
                    # Not known to have happened, so neither is the object's present revision.
                    acknowledged.pop(name, None)
                    return
                acknowledged[name] = answer.revision
                if number == 50:
                    enough.set()

        async with aiohttp.ClientSession() as session:
            writers = [asyncio.create_task(write(Caller(session, url), number)) for number in range(4)]
            reached = asyncio.create_task(enough.wait())
            await asyncio.wait([reached, *writers], return_when=asyncio.FIRST_COMPLETED, timeout=40)
            os.kill(process.pid, signal.SIGKILL)
            await asyncio.gather(*writers)
        assert reached.done(), "a writer was refused"
    finally:
        process.kill()
        process.communicate(timeout=20)
    lowest, highest = min(map(int, acknowledged.values())), max(map(int, acknowledged.values()))
    async with serving(data_dir=tmp_path) as on:
        assert on.server.revision >= highest
        # What was on its way; and the server's own Service, which is at another port now: it and its endpoints twice.
        assert on.server.revision <= highest + 4 + 3
        listed = await on.call.get(CONFIG_MAPS)
        there = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in listed.json["items"]}
        assert {name: there[name] for name in acknowledged} == acknowledged
        assert len(acknowledged) >= 120
        # No revision is missing: every change since the start can be seen again.
        async with on.call.watch(f"/api/v1/configmaps?watch=1&resourceVersion={lowest}") as watch:
            for revision in range(lowest + 1, highest + 1):
                assert (await watch.next())["object"]["metadata"]["resourceVersion"] == str(revision)


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o720, 0o702])
async def test_directory_writable_by_others_is_rejected(tmp_path: Path, mode: int) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "token").write_text("planted")
    directory.chmod(mode)
    with pytest.raises(DataDirectoryError, check=having(directory=directory)):
        async with ApiServer(ServerOptions(data_dir=directory)):
            pass
    assert sorted(entry.name for entry in directory.iterdir()) == ["token"]
    async with ApiServer(ServerOptions(data_dir=directory / "below")):
        assert stat.S_IMODE((directory / "below").stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["token", "authority.pem", "service-accounts.pem", FILE_NAME])
@pytest.mark.parametrize("planted", ["open to others", "a link", "a pipe"])
async def test_files_of_other_users_are_rejected(tmp_path: Path, name: str, planted: str) -> None:
    async with ApiServer(ServerOptions(data_dir=tmp_path)):
        pass
    file = tmp_path / name
    if planted == "open to others":
        file.chmod(0o660 if name == FILE_NAME else 0o640)
    elif planted == "a link":
        file.rename(tmp_path / "elsewhere")
        file.symlink_to("elsewhere")
    else:
        file.unlink()
        os.mkfifo(file, 0o600)
    with pytest.raises(DataDirectoryError, match=re.escape(str(file))):
        async with ApiServer(ServerOptions(data_dir=tmp_path)):
            pass


async def test_file_readable_by_others_becomes_private(tmp_path: Path) -> None:
    async with ApiServer(ServerOptions(data_dir=tmp_path)):
        pass
    (tmp_path / FILE_NAME).chmod(0o644)
    async with ApiServer(ServerOptions(data_dir=tmp_path)):
        assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600
