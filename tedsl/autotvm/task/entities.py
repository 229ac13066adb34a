"""What a point of a space says of one knob, and how it is applied to a schedule.

In JSON, as TVM v0.8 writes it: ["tile_y", "sp", [-1, 4, 8]], ["order", "re", [1, 0]], ["ann", "an", ["none", "vec"]],
["unroll", "ot", 16].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tedsl import te
from tedsl.errors import ArgumentError, missing_attribute
from tedsl.ir.node import set_field
from tedsl.lang.operation import Operation
from tedsl.lang.tensor import Tensor
from tedsl.record import record
from tedsl.schedule.handles import Schedule


class _Named:
    """What refuses attributes of other entities with the one that it has instead."""

    owner: ClassVar[str]
    instead: ClassVar[Mapping[str, str]]
    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        raise missing_attribute(self.owner, name, type(self), self.instead)


@record
class SplitEntity(_Named):
    """A split of a loop into len(size) loops; size: their extents, outermost first, of which the first is -1, what is left."""

    kind: ClassVar[str] = "sp"
    owner, instead = "a split", {"val": "size", "factor": "size", "factors": "size"}
    size: tuple[int, ...]

    def __post_init__(self) -> None:
        set_field(self, "size", tuple(map(int, self.size)))

    def apply(self, sch: Schedule, op: Operation | Tensor, axis: Any) -> list[Any]:
        """Splits `axis` of a stage; returns the loops, outermost first."""
        loops: list[Any] = []
        for factor in reversed(self.size[1:]):
            axis, inner = sch[op].split(axis, int(factor))
            loops.insert(0, inner)
        return [axis, *loops]

    @property
    def data(self) -> list[int]:
        return list(self.size)

    def features(self) -> list[float]:
        return [float(size) for size in self.size]

    def __repr__(self) -> str:
        return str(list(self.size))


@record
class ReorderEntity(_Named):
    """An order of loops; perm: their numbers, outermost first."""

    kind: ClassVar[str] = "re"
    owner, instead = "an order of loops", {"val": "perm"}
    perm: tuple[int, ...]

    def __post_init__(self) -> None:
        set_field(self, "perm", tuple(map(int, self.perm)))

    def apply(self, sch: Schedule, op: Operation | Tensor, axes: Sequence[Any]) -> list[Any]:
        """Reorders the loops `axes` of a stage; returns them in their new order."""
        loops = [axes[at] for at in self.perm if at < len(axes)]
        sch[op].reorder(*loops)
        return loops

    @property
    def data(self) -> list[int]:
        return list(self.perm)

    def features(self) -> list[float]:
        return [float(at) for at in self.perm]

    def __repr__(self) -> str:
        return str(list(self.perm))


@record
class AnnotateEntity(_Named):
    """An annotation of each of several loops: "none", "unroll", "vec", "fuse" (with the next one), "vthread" or the name of a
    thread axis; or, for caches, the number of the loop at which each is computed.
    """

    kind: ClassVar[str] = "an"
    owner, instead = "an annotation", {"val": "anns"}
    anns: tuple[Any, ...]

    def __post_init__(self) -> None:
        set_field(self, "anns", tuple(self.anns))

    def apply(self, sch: Schedule, op: Operation | Tensor, axes: Sequence[Any], axis_lens: Sequence[int] | None = None,
              max_unroll: int | None = None, vec_size: Sequence[int] | None = None, cfg: Any = None,
              source: Any = None) -> list[Any]:
        """Annotates the loops `axes` of a stage; returns them.

        axis_lens: their extents; where one that is unrolled is longer than max_unroll, or one that is vectorized is none of
        vec_size, the configuration `cfg` is in error. source: the tensors of each cache, which are computed at loops then.
        """
        if source is not None:
            for tensors, to in zip(source, self.anns):
                for tensor in tensors:
                    sch[tensor].compute_at(sch[op], axes[int(to)])
            return list(axes)
        axes = list(axes)
        if len(axes) != len(self.anns):
            raise ArgumentError(f"annotate: {len(self.anns)} loops have annotations, and {len(axes)} are given")
        for at, annotation in enumerate(self.anns):
            axis = axes[at]
            extent = None if axis_lens is None else int(axis_lens[at])
            if annotation in (None, "none", ""):
                continue
            if annotation == "unroll":
                if max_unroll is not None and extent is not None and extent > max_unroll and cfg is not None:
                    cfg.raise_error(f"a loop of {extent} iterations is unrolled, more than {max_unroll}")
                sch[op].unroll(axis)
            elif annotation == "vec":
                if vec_size is not None and extent is not None and extent not in vec_size and cfg is not None:
                    cfg.raise_error(f"a loop of {extent} iterations is vectorized, none of {list(vec_size)}")
                sch[op].vectorize(axis)
            elif annotation == "parallel":
                sch[op].parallel(axis)
            elif annotation == "fuse":
                axes[at + 1] = sch[op].fuse(axis, axes[at + 1])
            else:
                sch[op].bind(axis, te.thread_axis(annotation))
        return axes

    @property
    def data(self) -> list[Any]:
        return list(self.anns)

    def features(self) -> list[float]:
        return [float(_NUMBERS.get(annotation, len(_NUMBERS)) if isinstance(annotation, str) else annotation or 0)
                for annotation in self.anns]

    def __repr__(self) -> str:
        return str(list(self.anns))


_NUMBERS = {"none": 0, "unroll": 1, "vec": 2, "parallel": 3, "vthread": 4}


@record
class OtherOptionEntity(_Named):
    """A value of a knob: `val`."""

    kind: ClassVar[str] = "ot"
    owner, instead = "the value of a knob", {"size": "val", "value": "val", "apply": "val"}
    val: Any

    @property
    def data(self) -> Any:
        return self.val

    def features(self) -> list[float]:
        number = isinstance(self.val, (int, float))
        return [float(self.val)] if number else [float(sum(map(ord, str(self.val))) % 997)]

    def __repr__(self) -> str:
        return repr(self.val)


Entity = SplitEntity | ReorderEntity | AnnotateEntity | OtherOptionEntity


def entity_of(kind: str, data: Any) -> Entity:
    """The entity that JSON says. Raises ArgumentError for an unknown kind, and for what is no value of it."""
    if kind == "ot":
        return OtherOptionEntity(data)
    if kind not in ("sp", "re", "an"):
        raise ArgumentError(f"a record has an entity of the kind {kind!r}", hint='kinds are "sp", "re", "an" and "ot"')
    if not isinstance(data, (list, tuple)) or not (kind == "an" or all(type(one) is int for one in data)):
        raise ArgumentError(f"an entity of the kind {kind!r} is a list{'' if kind == 'an' else ' of ints'}, not {data!r}")
    if kind == "an":
        return AnnotateEntity(tuple(data))
    return SplitEntity(tuple(data)) if kind == "sp" else ReorderEntity(tuple(data))
