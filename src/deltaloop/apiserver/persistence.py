"""Storage of the store's history in a SQLite file.

Each response and each watch event waits for ``settle``, so all state that a client has seen exists after a restart,
with the same revisions.

    fsync=False   a commit has passed its data to the operating system, so it survives ``kill -9`` and crashes of the
                  process. After a crash of the machine, the last seconds can be missing, but the state is consistent.
    fsync=True    a commit is on disk before its response, like in etcd. A thread waits for the disk, and all writes in
                  the meantime share the next commit.

Opening it takes an exclusive lock until the process ends.

Source: SQLite, "Write-Ahead Logging" (synchronous=NORMAL and FULL); etcd's mvcc store.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, final

from deltaloop.apiserver.core.storage.history import Record, StoredChange
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.errors import DataDirectoryError
from deltaloop.apiserver.private_files import check_directory, make_private

FILE_NAME: Final = "deltaloop.sqlite"
# "dloo", the application ID for file(1) and SQLite's PRAGMA application_id.
_APPLICATION: Final = 0x646C6F6F
_FORMAT: Final = 1
_TABLES: Final = (
    "CREATE TABLE changes (revision INTEGER PRIMARY KEY, resource TEXT NOT NULL, key TEXT NOT NULL, value BLOB)",
    "CREATE TABLE state (revision INTEGER NOT NULL, compacted INTEGER NOT NULL)",
    "INSERT INTO state VALUES (1, 1)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_FORMAT}",
)
_Statement = tuple[str, tuple[object, ...]]


@final
class DataFile:
    """Open data directory, which is the journal of one store on one event loop.

    After a failed write, it rejects all operations, because the store in memory is ahead of the file.
    """

    def __init__(self, directory: Path, *, fsync: bool = False) -> None:
        """Open a directory, and create it and its file if they are missing; ``fsync`` makes commits wait for the disk.

        Raises DataDirectoryError if it is in use, writable by other users, not writable or foreign.
        """
        self._directory = directory
        self._fsync = fsync
        self._pending: list[_Statement] = []
        self._taken = 0
        self._written = 0
        self._revision = 1
        self._compacted = 1
        self._flushing: asyncio.Future[None] | None = None
        self._scheduled = False
        self._failure: DataDirectoryError | None = None
        self._thread = ThreadPoolExecutor(1, "deltaloop-apiserver-file") if fsync else None
        self._connection = self._open()

    def __repr__(self) -> str:
        return f"<DataFile {self._directory}, {len(self._pending)} statements to write>"

    def _open(self) -> sqlite3.Connection:
        file = self._directory / FILE_NAME
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_directory(self._directory)
            # The file contains Secrets, so create it with restricted permissions before SQLite opens it.
            make_private(file)
            connection = sqlite3.connect(file, timeout=0, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise self._error(f"cannot open {file}: {reason}") from error
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        try:
            # In WAL mode, the first read takes the lock, which lasts as long as the connection.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if not tables:
                for statement in _TABLES:
                    connection.execute(statement)
            elif application != _APPLICATION:
                raise self._error(
                    f"{self._directory / FILE_NAME} was not created by this server. Use a different directory."
                )
            elif version != _FORMAT:
                raise self._error(
                    f"{self._directory / FILE_NAME} must have format {_FORMAT}, got {version}. Use the "
                    "version of deltaloop that wrote it, or a different directory."
                )
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._fsync else 'NORMAL'}")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                text = f"another process uses the data directory {self._directory}. Stop it, or use another directory."
                raise self._error(text) from None
            raise self._error(f"cannot use {self._directory / FILE_NAME}: {error}") from error
        except sqlite3.DatabaseError as error:
            text = f"{self._directory / FILE_NAME} is damaged, or was not created by this server: {error}"
            raise self._error(text) from error

    def load(self, store: RevisionStore) -> None:
        """Fill an empty store and become its journal, or raise DataDirectoryError if the file is inconsistent."""
        try:
            self._revision, self._compacted = self._connection.execute(
                "SELECT revision, compacted FROM state"
            ).fetchone()
            store.restore(self._records(), revision=self._revision, compacted=self._compacted)
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise self._error(f"{self._directory / FILE_NAME} is damaged: {error}") from error
        store.attach(self)

    def _records(self) -> Iterator[Record]:
        for row in self._connection.execute("SELECT revision, resource, key, value FROM changes ORDER BY revision"):
            yield Record(*row)

    def wrote(self, change: StoredChange) -> None:
        self._revision = change.revision
        value = change.new.raw if change.new is not None else None
        row = (change.revision, change.resource, change.key, value)
        self._take("INSERT INTO changes VALUES (?, ?, ?, ?)", row)

    def dropped(self, change: StoredChange) -> None:
        self._compacted = change.revision
        if change.old is not None:
            self._take("DELETE FROM changes WHERE revision = ?", (int(change.old.resource_version),))
        if change.new is None:
            self._take("DELETE FROM changes WHERE revision = ?", (change.revision,))

    def renumbered(self, records: Iterable[Record], *, revision: int) -> None:
        self._revision = self._compacted = revision
        self._take("DELETE FROM changes", ())
        for record in records:
            row = (record.revision, record.resource, record.key, record.value)
            self._take("INSERT INTO changes VALUES (?, ?, ?, ?)", row)

    def _take(self, statement: str, values: tuple[object, ...]) -> None:
        self._pending.append((statement, values))
        self._taken += 1
        if not self._scheduled:
            # For writes without a waiting response, such as those of controllers.
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._write_soon)

    def _write_soon(self) -> None:
        self._scheduled = False
        if self._thread is not None:
            self._start_flush()
            return
        try:
            self._write(self._cut())
        except DataDirectoryError:
            return  # the next response reports the stored error

    async def settle(self) -> None:
        """Wait until all recorded changes are in the file. Cancellation does not undo a running commit."""
        if self._failure is not None:
            raise self._failure
        if self._thread is None:
            self._write(self._cut())
            return
        # Changes that are recorded later are not included.
        wanted = self._taken
        while self._written < wanted:
            await asyncio.shield(self._start_flush())

    def _start_flush(self) -> asyncio.Future[None]:
        # A finished future may still be set. Awaiting it again would not yield to the event loop and loop forever.
        if self._flushing is None or self._flushing.done():
            work = self._cut()
            self._flushing = asyncio.get_running_loop().run_in_executor(self._thread, self._write, work)
            self._flushing.add_done_callback(self._flushed)
        return self._flushing

    def _flushed(self, done: asyncio.Future[None]) -> None:
        if self._flushing is done:
            self._flushing = None
        if not done.cancelled():
            done.exception()  # retrieve the exception, which _failure also contains

    def _cut(self) -> list[_Statement]:
        if not self._pending:
            return []
        work, self._pending = self._pending, []
        work.append(("UPDATE state SET revision = ?, compacted = ?", (self._revision, self._compacted)))
        return work

    def _write(self, work: list[_Statement]) -> None:
        if self._failure is not None:
            raise self._failure
        if not work:
            return
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for statement, values in work:
                self._connection.execute(statement, values)
            self._connection.execute("COMMIT")
            self._written += len(work) - 1
        except sqlite3.Error as error:
            reason = (
                f"cannot write {self._directory / FILE_NAME}: {error}. The server rejects all requests from now on."
            )
            self._failure = self._error(reason)
            raise self._failure from error

    async def close(self) -> None:
        """Write the remaining changes, and release the directory in any case; raises DataDirectoryError."""
        try:
            await self.settle()
        finally:
            if self._thread is not None:
                self._thread.shutdown(wait=True)
            self._connection.close()

    def _error(self, message: str) -> DataDirectoryError:
        return DataDirectoryError(message, directory=self._directory)
