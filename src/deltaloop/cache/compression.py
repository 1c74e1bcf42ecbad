"""Compresses the objects of one cache with zstd.

The dictionary is trained in a thread, once, so that the event loop goes on; then each object is compressed when it
comes, which takes about 10 µs for 5 KB. Reading more than an object's metadata decompresses it, about 4 µs each time.

zstd's contexts serve one thread at a time. Compressing is done on the event loop only. For reading there are as many
contexts as threads have ever read at once: each takes one out of a pool, or makes one, and puts it back.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Literal, final

from deltaloop.api.errors import MalformedObjectError, MissingExtraError
from deltaloop.api.resource import Resource, compress_in_place, with_stored
from deltaloop.cache.core.dictionary_training import DictionaryTraining, ZstdOptions
from deltaloop.cache.turns import in_turns

if TYPE_CHECKING:
    import zstandard

_logger: Final = logging.getLogger("deltaloop.cache")
_OVERHEAD: Final = 64  # bytes of the two Python objects that a compressed form adds
# Parameters of zstd's fast cover. Left to itself it tries five segment lengths, which takes several times as long and
# finds nothing better for pods, custom resources and mixed objects.
_SEGMENT, _SEGMENTS, _DMER, _FREQUENCY_LOG = 2000, 8, 8, 20


def require_zstd() -> None:
    """Refuse to go on without the extra.

    Raises:
        MissingExtraError: If zstandard is not installed.
    """
    try:
        import zstandard as _  # noqa: F401 - whether it is there
    except ImportError as error:
        raise MissingExtraError("a compressed cache", "zstd") from error


@final
class ZstdCodec:
    """Compresses objects of one kind; reads them back in any thread."""

    def __init__(self, dictionary: bytes, *, level: int) -> None:
        """Use a dictionary that was trained; an empty one is none."""
        import zstandard

        self._error = zstandard.ZstdError
        self._decompressor = zstandard.ZstdDecompressor
        self._dictionary: zstandard.ZstdCompressionDict | None = None
        if dictionary:
            self._dictionary = zstandard.ZstdCompressionDict(dictionary)
            self._dictionary.precompute_compress(level=level)  # pyright: ignore[reportUnknownMemberType]
        self._compress = zstandard.ZstdCompressor(level=level, dict_data=self._dictionary, write_checksum=True).compress
        self._idle: deque[zstandard.ZstdDecompressor] = deque()

    def compress(self, raw: bytes) -> bytes | None:
        """Return the compressed bytes, or None if that saves nothing; one thread at a time."""
        # Copied, because what zstandard gives has room for the uncompressed bytes.
        data = bytes(memoryview(self._compress(raw)))
        return data if len(data) + _OVERHEAD < len(raw) else None

    def decompress(self, data: bytes) -> bytes:
        """Return the bytes as they were; from any thread.

        Raises:
            MalformedObjectError: If ``data`` was damaged, or compressed with another dictionary.
        """
        try:
            context = self._idle.pop()
        except IndexError:
            context = self._decompressor(dict_data=self._dictionary)
        try:
            return context.decompress(data)
        except self._error as error:
            raise MalformedObjectError(
                f"a compressed object of {len(data)} bytes cannot be read: {error}; its memory was damaged, or this is"
                " a fault of this library"
            ) from None
        finally:
            self._idle.append(context)

    @property
    def has_dictionary(self) -> bool:
        """Whether a dictionary could be trained."""
        return self._dictionary is not None

    def __repr__(self) -> str:
        return f"<ZstdCodec {'with' if self.has_dictionary else 'without'} dictionary>"


def train(samples: list[bytes], options: ZstdOptions) -> ZstdCodec:
    """Return a codec for objects like these; without a dictionary if nothing can be learned from them."""
    import zstandard

    size = min(options.dictionary_size, sum(map(len, samples)) // 4)
    try:
        dictionary = zstandard.train_dictionary(
            size, [*samples], k=min(_SEGMENT, max(size // _SEGMENTS, _DMER)), d=_DMER, f=_FREQUENCY_LOG, accel=1
        ).as_bytes()
    except zstandard.ZstdError:
        dictionary = b""
    return ZstdCodec(dictionary, level=options.level)


@final
class CacheCompression:
    """Compresses what comes into one cache. It belongs to one event loop; what it made may be read in any thread."""

    def __init__(self, name: str, *, options: ZstdOptions | None = None) -> None:
        """Begin without a dictionary.

        Args:
            name: What the cache is called in the log.
            options: Level of zstd, size of the dictionary, and from how many objects on.

        Raises:
            MissingExtraError: If zstandard is not installed.
        """
        require_zstd()
        self._name = name
        self._options = options or ZstdOptions()
        self._training = DictionaryTraining(self._options)
        self._codec: ZstdCodec | None = None
        self._due = asyncio.Event()

    @classmethod
    def of(cls, compression: Literal["zstd"] | ZstdOptions | None, name: str) -> CacheCompression | None:
        """Return what an informer's option asks for; None for None."""
        if compression is None:
            return None
        return cls(name, options=compression if isinstance(compression, ZstdOptions) else None)

    def compressed(self, obj: Resource) -> Resource:
        """Return an equal object that is compressed, or will be as soon as there is a dictionary.

        It is a new object, because the caller may have passed ``obj`` on to others, too.
        """
        own = with_stored(obj, obj.stored)
        if self._codec is not None:
            compress_in_place(own, self._codec)
            return own
        self._training.saw(own)
        if self._training.is_due:
            self._due.set()
        return own

    async def run(self, wait_for_sync: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Train the dictionary when there is enough to learn from, and compress what is there; then it is done.

        Cancelled, objects stay as they are; a training that has begun ends in its thread, and is thrown away.

        Args:
            wait_for_sync: Returns when the first list is in the cache.
        """
        first_list = asyncio.create_task(self._wait_for_list(wait_for_sync), name=f"first list of {self._name}")
        try:
            await self._due.wait()
        finally:
            first_list.cancel()
            await asyncio.wait([first_list])
        samples = self._training.begin()
        codec = await asyncio.get_running_loop().run_in_executor(None, train, samples, self._options)
        self._codec = codec
        await in_turns(self._training.finish(codec))
        _logger.info(
            "the cache is compressed",
            extra={"resource": self._name, "samples": len(samples), "dictionary": codec.has_dictionary},
        )

    async def _wait_for_list(self, wait_for_sync: Callable[[], Coroutine[Any, Any, None]]) -> None:
        await wait_for_sync()
        self._training.list_complete()
        if self._training.is_due:
            self._due.set()

    def __repr__(self) -> str:
        return f"<CacheCompression of {self._name}: {self._training.phase}, {self._codec!r}>"
