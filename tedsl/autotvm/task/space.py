"""The space of a template's configurations, and a point of it.

    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)      while a task is made: adds a knob to the space; later: without effect
    yo, yi = cfg["tile_y"].apply(s, C, y)             what the point says of the knob

Points are numbered as in TVM v0.8: the knob that was defined first changes fastest.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, SupportsIndex

from tedsl.autotvm.absent import OF_SPACE
from tedsl.autotvm.task.entities import Entity, OtherOptionEntity, entity_of
from tedsl.autotvm.task.policies import annotations_of, is_int, orders_of, splits_of
from tedsl.errors import ArgumentError, ArgumentTypeError, entries
from tedsl.ir import build
from tedsl.ir.iters import IterVar
from tedsl.record import record

__all__ = ["ConfigEntity", "ConfigSpace", "InstantiationError", "OtherOptionEntity", "VirtualAxis"]


class InstantiationError(ArgumentError):
    """A template refused one of its configurations."""


@record
class VirtualAxis:
    """A loop by its number of iterations, where there is none yet: `cfg.axis(64)`."""

    length: int
    name: str = ""


class ConfigSpace:
    """The knobs of a template with their choices, in the order of their definition."""

    is_fallback = False

    def __init__(self) -> None:
        self.space_map: dict[str, list[Entity]] = {}
        self.code_hash: str | None = None
        self.flop = 0
        self.errors: list[str] = []
        self._entities: dict[str, Entity] = {}
        self._described: dict[str, str] = {}
        self._collects = True

    # --- what templates call ---

    @staticmethod
    def axis(var: Any) -> VirtualAxis:
        """A loop by its number of iterations: an int, a loop, or another virtual axis."""
        return VirtualAxis(_extent_of(var), getattr(var, "name", ""))

    reduce_axis = axis

    def define_split(self, name: str, axis: Any, policy: str = "factors", *, num_outputs: int = 2, max_factor: int = 1 << 31,
                     filter: Callable[[Any], bool] | None = None, candidate: Sequence[Sequence[int]] = (),
                     no_tail: bool | None = None) -> list[VirtualAxis]:
        """Defines how `axis`, a loop or a number of iterations, is split into `num_outputs` loops.

        policy: "factors", splits without a rest; "power2"; "verbose", both; "candidate", those given. filter: of the entities
        those that are kept. Returns stand-ins for the loops.
        """
        if not is_int(num_outputs) or num_outputs < 1:
            raise ArgumentError(f"define_split {name!r}: num_outputs is an int of at least 1, not {num_outputs!r}")
        self._define(name, lambda: splits_of(name, _extent_of(axis), policy, num_outputs, max_factor, filter, candidate,
                                             no_tail),
                     lambda: f"Split(policy={policy}, product={_extent_of(axis)}, num_outputs={num_outputs})")
        return [VirtualAxis(0, f"{name}.{at}") for at in range(num_outputs)]

    def define_reorder(self, name: str, axes: Sequence[Any], policy: str = "all", *, candidate: Sequence[Sequence[Any]] = (),
                       interval: tuple[int, int] | None = None, spatial: Sequence[Sequence[Any]] = (),
                       reduce: Sequence[Sequence[Any]] = ()) -> list[Any]:
        """Defines the orders of loops; see `policies.orders_of` for policies and options."""
        _check_axes("define_reorder", name, axes)
        self._define(name, lambda: orders_of(name, axes, policy, candidate, interval, spatial, reduce),
                     lambda: f"Reorder(policy={policy})")
        return list(axes)

    def define_annotate(self, name: str, axes: Sequence[Any], policy: str, *, candidate: Sequence[Sequence[Any]] = (),
                        num_anchor: int = 1) -> list[Any]:
        """Defines the annotations of loops; see `policies.annotations_of` for policies and options."""
        _check_axes("define_annotate", name, axes)
        self._define(name, lambda: annotations_of(name, len(axes), policy, candidate, num_anchor),
                     lambda: f"Annotate(policy={policy})")
        return list(axes)

    def define_knob(self, name: str, candidate: Sequence[Any]) -> None:
        """Defines a knob with these values: `cfg[name].val`."""
        values = list(candidate) if isinstance(candidate, (list, tuple, range)) else []
        if not values:
            raise ArgumentError(f"define_knob {name!r}: candidate is a list of values, not {candidate!r}")
        self._define(name, lambda: [OtherOptionEntity(value) for value in values], lambda: f"OtherOption({values})")

    def add_flop(self, flop: float) -> None:
        """Adds to the number of operations that the template computes; int, float or an expression of a constant."""
        known = flop if isinstance(flop, (int, float)) else build.as_int(flop) if hasattr(flop, "dtype") else None
        if known is None or isinstance(flop, bool):
            raise ArgumentError(f"add_flop: the number of operations is an int, a float or a constant expression, not {flop!r}",
                                hint="cfg.add_flop(2 * N * M * K) with the numbers that the template is called with")
        self.flop += int(known)

    def raise_error(self, message: str) -> None:
        """Says that this configuration cannot be: measuring counts it as a failure."""
        self.errors.append(str(message))

    def valid(self) -> bool:
        """Whether no error was raised."""
        return not self.errors

    def __getitem__(self, name: str) -> Any:
        if name not in self._entities:
            raise ArgumentError(f"the configuration has no knob {name!r}",
                                hint=f"it has {', '.join(self._entities) or 'none'}: define {name!r} first")
        return self._entities[name]

    def __contains__(self, name: str) -> bool:
        return name in self._entities

    def _define(self, name: str, choices: Callable[[], Sequence[Entity]], text: Callable[[], str]) -> None:
        """Adds a knob to a space that collects them; one that is defined again takes the place of the first."""
        if not isinstance(name, str):
            raise ArgumentTypeError(f"a knob has a name, not {name!r}")
        if not self._collects:
            return
        self.space_map[name], self._described[name] = list(choices()), text()
        self._entities[name] = self._first(name, self.space_map[name])

    def _first(self, name: str, choices: Sequence[Entity]) -> Entity:
        """The choice with which the template goes on while its knobs are collected."""
        return choices[0]

    # --- points ---

    def __len__(self) -> int:
        return math.prod(map(len, self.space_map.values()))

    @property
    def dims(self) -> list[int]:
        """The number of choices of each knob."""
        return list(map(len, self.space_map.values()))

    def is_index_valid(self, index: int) -> bool:
        """Whether `index` numbers a point."""
        return 0 <= index < len(self)

    def get(self, index: SupportsIndex) -> ConfigEntity:
        """The point number `index`. Raises ArgumentError if there is none."""
        if isinstance(index, bool) or not isinstance(index, SupportsIndex) or not self.is_index_valid(operator.index(index)):
            raise ArgumentError(f"the space has points 0 to {len(self) - 1}, and no {index!r}")
        chosen, rest = {}, operator.index(index)
        for name, choices in self.space_map.items():
            rest, at = divmod(rest, len(choices))
            chosen[name] = choices[at]
        return ConfigEntity(operator.index(index), self.code_hash, chosen)

    def points(self) -> Iterator[ConfigEntity]:
        """All points in the order of their numbers."""
        return map(self.get, range(len(self)))

    def __iter__(self) -> Iterator[str]:
        """The names of the knobs."""
        return iter(self._entities)

    def __repr__(self) -> str:
        rows = [f"   {at:2d} {name}: {self._described[name]} len={len(choices)}"
                for at, (name, choices) in enumerate(self.space_map.items())]
        return "\n".join([f"ConfigSpace (len={len(self)}, space_map=", *rows, ")"])


class ConfigEntity(ConfigSpace):
    """A point of a space: what it says of each knob."""

    def __init__(self, index: int | None, code_hash: str | None, entities: Mapping[str, Entity]) -> None:
        super().__init__()
        self.index, self.code_hash = index, code_hash
        self.written: tuple[str, str] | None = None  # target and version of TVM in the line that it was read from
        self._entities, self._collects = dict(entities), False

    def get_flatten_feature(self) -> list[float]:
        """The numbers of all knobs in one list, for models of cost."""
        return [number for entity in self._entities.values() for number in entity.features()]

    def get_other_option(self) -> dict[str, Any]:
        """The knobs that are plain values."""
        return {name: entity.val for name, entity in self._entities.items() if isinstance(entity, OtherOptionEntity)}

    def to_json_dict(self) -> dict[str, Any]:
        """The point as JSON, as TVM v0.8 writes it."""
        return {"index": self.index, "code_hash": self.code_hash,
                "entity": [[name, entity.kind, entity.data] for name, entity in self._entities.items()]}

    @staticmethod
    def from_json_dict(made: Mapping[str, Any]) -> ConfigEntity:
        """The point that `to_json_dict` wrote, or that of TVM 0.6. Raises ArgumentError for anything else."""
        if isinstance(made, Mapping) and "entity" not in made and "e" in made:  # as 0.6 wrote it
            made = {"entity": made["e"], "index": made.get("i"), "code_hash": made.get("c")}
        said = made.get("entity") if isinstance(made, Mapping) else None
        if not isinstance(said, (list, tuple)) or not all(isinstance(one, (list, tuple)) and len(one) == 3 for one in said):
            raise ArgumentError(f'this is no configuration: "entity" is a list of [name, kind, value], not {said!r}',
                                hint="ConfigEntity.to_json_dict gives one")
        index = made.get("index")
        if index is not None and type(index) is not int:
            raise ArgumentError(f"this is no configuration: the index is the number of a point, not {index!r}")
        return ConfigEntity(index, made.get("code_hash"), {str(name): entity_of(kind, data) for name, kind, data in said})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConfigEntity) and self._entities == other._entities

    def __hash__(self) -> int:
        return hash(str(self.to_json_dict()["entity"]))

    def __repr__(self) -> str:
        return f"{self._entities},{self.code_hash},{self.index}"


def _check_axes(what: str, name: str, axes: object) -> None:
    if not isinstance(axes, (list, tuple)) and type(axes).__name__ != "Array":
        raise ArgumentTypeError(f"{what} {name!r}: axes is a list of loops, not {axes!r}", hint="s[C].op.axis, or [yo, xo, yi]")


def _extent_of(axis: Any) -> int:
    """The number of iterations of a loop; ArgumentError if it is not constant."""
    if isinstance(axis, VirtualAxis):
        return axis.length
    extent = axis.dom.extent if isinstance(axis, IterVar) and axis.dom is not None else axis
    known = extent if isinstance(extent, int) else build.as_int(extent) if hasattr(extent, "dtype") else None
    if known is None or known < 1:
        raise ArgumentError(f"a knob is over a loop of a known number of iterations, not {axis!r}",
                            hint="split loops of constant extent, or define_knob with values")
    return known


# Programs of TVM import these from here.
entries(globals(), absent=OF_SPACE, later={
    "SplitEntity": "tedsl.autotvm.task.entities:SplitEntity", "ReorderEntity": "tedsl.autotvm.task.entities:ReorderEntity",
    "AnnotateEntity": "tedsl.autotvm.task.entities:AnnotateEntity",
    "FallbackConfigEntity": "tedsl.autotvm.task.fallback:FallbackConfigEntity",
    "get_factors": "tedsl.autotvm.task.policies:get_factors", "get_pow2s": "tedsl.autotvm.task.policies:get_pow2s"})
