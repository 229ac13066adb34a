"""What linking reads of an image. The rest, with the signatures of the kernels, is only read for what a compiled entry point
does not do itself, so the cache on disk keeps this part in a form of its own, which is read in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial

from tedsl.record import record
from tedsl.runtime.arguments.array_entry import Shared, shared_of
from tedsl.runtime.modules.image import BESIDE, CODE, Image, KernelRecord

_HEADS = "heads.json"


@record
class Head:
    """A kernel: its name, how it is called, whether it has a version for compact arrays; whole: returns all that is known.

    shared: how it uses an entry point that kernels share; None: it has one of its own.
    """

    name: str
    described: str
    has_compact: bool
    shared: Shared | None
    whole: Callable[[], KernelRecord]


@record
class Linkable:
    """Machine code and the kernels in it; the other fields are those of `Image`."""

    kernels: tuple[Head, ...]
    code: bytes
    layout: tuple[int, ...] | None
    beside: tuple[bytes, ...]
    process: tuple[str, ...]


def linkable(image: Image) -> Linkable:
    """Returns what linking reads of `image`."""
    heads = [Head(k.name, k.signature.described, k.compact_scalars is not None, shared_of(k.signature, k.runs_long),
                  partial(_kernel, image, number))
             for number, k in enumerate(image.kernels)]
    return Linkable(tuple(heads), image.code, image.layout, image.beside, image.process)


def heads_of(image: Image) -> dict[str, bytes]:
    """Returns the piece of bytes from which `linkable_of` makes what linking reads, beside the parts of `image`."""
    heads = [(k.name, k.described, k.has_compact, None if k.shared is None else (k.shared.form, k.shared.table.hex()))
             for k in linkable(image).kernels]
    return {_HEADS: json.dumps([heads, image.layout, len(image.beside), image.process]).encode()}


def linkable_of(pieces: Mapping[str, bytes], image: Callable[[], Image]) -> Linkable:
    """Returns what linking reads of an image whose parts and heads are `pieces`. KeyError if one is missing.

    image: returns the whole image.
    """
    heads, layout, beside, process = json.loads(pieces[_HEADS])
    kernels = [Head(name, described, has_compact, None if shared is None else Shared(shared[0], bytes.fromhex(shared[1])),
                    partial(_kernel, image, number))
               for number, (name, described, has_compact, shared) in enumerate(heads)]
    return Linkable(tuple(kernels), pieces[CODE], None if layout is None else tuple(layout),
                    tuple([pieces[BESIDE.format(k)] for k in range(beside)]), tuple(process))


def _kernel(image: Callable[[], Image] | Image, number: int) -> KernelRecord:
    return (image if isinstance(image, Image) else image()).kernels[number]
