"""Keeps a store's history in a SQLite file.

Nothing leaves the server before it is in the file: every answer and every event of a watch waits for ``settle``. So
whatever a client has seen is there after a restart, with the same revisions.

    fsync=False   a commit has handed its bytes to the operating system. They outlive ``kill -9`` and any crash of the
                  process. When the machine itself stops (power, kernel), the last seconds may be missing; what is left
                  is a whole earlier state.
    fsync=True    a commit is on the disk before its answer goes out, as etcd's are. Commits wait for the disk in a
                  thread, and all that arrive meanwhile share the next one.

The file has one row for each change that is still needed, keyed by revision, as in etcd: the newest of every present
object and every change of the window. Opening takes an exclusive lock that ends with the process.

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
# "dloo": says that the file is ours, as file(1) and SQLite's PRAGMA application_id read it.
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
    """One open data directory; the journal of one store.

    It belongs to the event loop that made it. A write that fails (a full disk) ends it: everything after is refused,
    since the store in memory is ahead of the file then.
    """

    def __init__(self, directory: Path, *, fsync: bool = False) -> None:
        """Open a directory, and make it and the file in it where they are missing.

        Args:
            directory: The data directory; readable by its owner only if it is made here, and else one into which
                others may not write.
            fsync: Whether a commit waits for the disk.

        Raises:
            DataDirectoryError: If another process uses it, it was written by something else, cannot be written, or
                others may write into it.
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
            # Secrets are in it: made for its owner's eyes before SQLite opens it.
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
            # In WAL mode the lock is taken with the first read and lives as long as the connection.
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
                    f"{self._directory / FILE_NAME} was not made by this server; choose another directory"
                )
            elif version != _FORMAT:
                raise self._error(
                    f"{self._directory / FILE_NAME} has format {version}, and {_FORMAT} is read here; use the version "
                    "of deltaloop that wrote it, or choose another directory"
                )
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._fsync else 'NORMAL'}")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                text = f"the data directory {self._directory} is in use by another process; stop it, or choose another"
                raise self._error(text) from None
            raise self._error(f"cannot use {self._directory / FILE_NAME}: {error}") from error
        except sqlite3.DatabaseError as error:
            text = f"{self._directory / FILE_NAME} is damaged or was not made by this server: {error}"
            raise self._error(text) from error

    def load(self, store: RevisionStore) -> None:
        """Fill an empty store and become its journal.

        Raises:
            DataDirectoryError: If what is in the file does not fit together.
        """
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
        """Take a change in; it is written before the next answer."""
        self._revision = change.revision
        value = change.new.raw if change.new is not None else None
        row = (change.revision, change.resource, change.key, value)
        self._take("INSERT INTO changes VALUES (?, ?, ?, ?)", row)

    def dropped(self, change: StoredChange) -> None:
        """Take in that a change has left the window."""
        self._compacted = change.revision
        if change.old is not None:
            self._take("DELETE FROM changes WHERE revision = ?", (int(change.old.resource_version),))
        if change.new is None:
            self._take("DELETE FROM changes WHERE revision = ?", (change.revision,))

    def renumbered(self, records: Iterable[Record], *, revision: int) -> None:
        """Take in that the store counts anew."""
        self._revision = self._compacted = revision
        self._take("DELETE FROM changes", ())
        for record in records:
            row = (record.revision, record.resource, record.key, record.value)
            self._take("INSERT INTO changes VALUES (?, ?, ?, ?)", row)

    def _take(self, statement: str, values: tuple[object, ...]) -> None:
        self._pending.append((statement, values))
        self._taken += 1
        if not self._scheduled:
            # For writes that nobody waits for, such as those of a controller.
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
            return  # Kept: the next answer says so.

    async def settle(self) -> None:
        """Return once everything that the store has taken is in the file.

        Cancellation does not undo a commit that is on its way.

        Raises:
            DataDirectoryError: If it cannot be written; from then on always.
        """
        if self._failure is not None:
            raise self._failure
        if self._thread is None:
            self._write(self._cut())
            return
        # What others write meanwhile is theirs to wait for.
        wanted = self._taken
        while self._written < wanted:
            await asyncio.shield(self._start_flush())

    def _start_flush(self) -> asyncio.Future[None]:
        # One that has ended may not have said so yet; waiting for it again would not give way, so never end.
        if self._flushing is None or self._flushing.done():
            work = self._cut()
            self._flushing = asyncio.get_running_loop().run_in_executor(self._thread, self._write, work)
            self._flushing.add_done_callback(self._flushed)
        return self._flushing

    def _flushed(self, done: asyncio.Future[None]) -> None:
        if self._flushing is done:
            self._flushing = None
        if not done.cancelled():
            done.exception()  # Looked at; it is kept in _failure, too.

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
            reason = f"cannot write {self._directory / FILE_NAME}: {error}; the server refuses everything from now on"
            self._failure = self._error(reason)
            raise self._failure from error

    async def close(self) -> None:
        """Write what is left, and give the directory free.

        Raises:
            DataDirectoryError: If it cannot be written; the file is closed all the same.
        """
        try:
            await self.settle()
        finally:
            if self._thread is not None:
                self._thread.shutdown(wait=True)
            self._connection.close()

    def _error(self, message: str) -> DataDirectoryError:
        return DataDirectoryError(message, directory=self._directory)
