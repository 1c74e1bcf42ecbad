"""What a compressed cache costs for each object: ``python -m lab.bench.compression SIZE``, microseconds of CPU and
bytes.

The dictionary is trained as a cache does it; then the same objects are compressed, decompressed, and read as a whole
from either form.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from deltaloop.api.compressed import Compressed
from deltaloop.api.resource import Resource, compress_in_place
from deltaloop.cache.compression import train
from deltaloop.cache.core.dictionary_training import DictionaryTraining
from deltaloop.cache.informer_options import ZstdOptions
from lab.bench.replay.objects import widget

T = TypeVar("T")


def cost(work: Callable[[T], object], items: Sequence[T]) -> float:
    """Return microseconds of CPU for each item."""
    began = time.process_time()
    for item in items:
        work(item)
    return (time.process_time() - began) / len(items) * 1e6


def main(size: int) -> None:
    """Measure custom resources as the replay server sends them."""
    options = ZstdOptions()
    training = DictionaryTraining(options)
    plain = [Resource.from_json(widget(number, number)) for number in range(size)]
    small = [Resource.from_json(obj.raw) for obj in plain]
    for obj in small[: options.page]:
        training.saw(obj)
    began = time.process_time()
    codec = train(training.begin(), options)
    trained = time.process_time() - began
    found = {
        "train_milliseconds": trained * 1e3,
        "compress": cost(lambda obj: compress_in_place(obj, codec), small),
        "decompress": cost(lambda obj: obj.raw, [obj for obj in small if isinstance(obj.stored, Compressed)]),
        "read_plain": cost(Resource.to_dict, plain),
        "read_compressed": cost(Resource.to_dict, small),
        "bytes_plain": sum(obj.stored_size for obj in plain) / size,
        "bytes_compressed": sum(obj.stored_size for obj in small) / size,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]))
