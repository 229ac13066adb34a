"""The point that a template gets where no record fits: splits whose innermost loop fills a vector of the target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tedsl.autotvm.task.entities import Entity, OtherOptionEntity, SplitEntity
from tedsl.autotvm.task.space import ConfigEntity, ConfigSpace
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.target.current import as_target


class FallbackConfigEntity(ConfigSpace):
    """A configuration whose knobs are chosen when the template defines them: `define_*` collects and chooses."""

    is_fallback = True

    def _first(self, name: str, choices: Sequence[Entity]) -> Entity:
        split = choices[0]
        if not isinstance(split, SplitEntity) or len(split.size) < 2:
            return split
        lanes = as_target(None).vector_lanes("float32")
        near = [one for one in choices if isinstance(one, SplitEntity) and one.size[-1] <= lanes]
        return max(near or choices, key=lambda one: (one.size[-1], -sum(one.size[1:-1]))
                   if isinstance(one, SplitEntity) else (0, 0))

    def __setitem__(self, name: str, entity: Entity | list[int] | bool) -> None:
        """Sets a knob: `cfg["tile_x"] = SplitEntity((-1, 8))`; numbers are those of a split, a bool is an option."""
        if isinstance(entity, bool):
            entity = OtherOptionEntity(entity)
        self._entities[name] = SplitEntity(tuple(entity)) if isinstance(entity, (list, tuple)) else entity

    def fallback_split(self, name: str, constraints: Sequence[int]) -> None:
        """Chooses a split: for each loop but the first, from the innermost out, the largest factor up to its constraint.

        constraints: the most iterations of each loop, outermost first; -1 or 0 where there is no limit.
        """
        if name not in self.space_map:
            raise ArgumentError(f"fallback_split: there is no knob {name!r}",
                                hint=f"there are {', '.join(self.space_map) or 'none'}: define {name!r} first")
        fitting = [one for one in self.space_map[name] if isinstance(one, SplitEntity) and len(one.size) == len(constraints)
                   and all(most <= 0 or size <= most for size, most in zip(one.size[1:], constraints[1:]))]
        if not fitting:
            raise ArgumentError(f"fallback_split: no choice of {name!r} has at most {list(constraints)} iterations")
        self._entities[name] = max(fitting, key=lambda one: one.size[:0:-1])

    def fallback_with_reference_log(self, ref_log: Iterable[tuple[Any, Any]]) -> None:
        """Takes the choices of the most similar record of another shape: that of which most choices are in this space.

        Splits are those of this space with the largest factors up to those of the record; a knob that it lacks stays as it is.
        """
        if isinstance(ref_log, str) or not isinstance(ref_log, Iterable):
            raise ArgumentTypeError(f"fallback_with_reference_log takes pairs of input and result, not {ref_log!r}",
                                    hint="list(autotvm.record.load_from_file(path))")
        configs = [pair[0].config for pair in ref_log if isinstance(getattr(pair[0], "config", None), ConfigEntity)]
        if not configs:
            return
        nearest = max(configs, key=lambda config: sum(
            name in config and config[name] in choices for name, choices in self.space_map.items()))
        for name, choices in self.space_map.items():
            if name not in nearest:
                continue
            entity = nearest[name]
            if entity in choices:
                self._entities[name] = entity
            elif isinstance(entity, SplitEntity):
                self.fallback_split(name, [-1, *entity.size[1:]])
