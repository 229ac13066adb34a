"""Maps of indices as objects, by the name of TVM's tir.IndexMap.

    tiled = tir.IndexMap.from_func(lambda i, j: [i // 4, j, i % 4])
    tiled.map_shape([8, 3])                   (2, 3, 4)
    tiled.inverse([8, 3])                     (a, b, c) -> (a*4 + c, b)

`s.transform_layout` and `te.compute` take the functions themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.iter_affine_map.detect import detect_iter_map
from tedsl.arith.iter_affine_map.inverse import inverse_affine_iter_map
from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.ir import build
from tedsl.ir.dtype import INT32
from tedsl.ir.expr import Expr, IntImm, Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.walk.substitute import substitute
from tedsl.runtime.array import NDArray, array
from tedsl.schedule.index_map import parameters_of
from tedsl.schedule.memory_options import AXIS_SEPARATOR as _SEPARATOR


class IndexMap:
    """The map from `initial_indices`, variables, to `final_indices`, expressions of them. inverse_index_map: the map back,
    where it is not to be found by itself.
    """

    AXIS_SEPARATOR = _SEPARATOR

    def __init__(self, initial_indices: Sequence[Var], final_indices: Sequence[Any],
                 inverse_index_map: IndexMap | Callable[..., Any] | None = None) -> None:
        self.initial_indices = tuple(initial_indices)
        if not all(isinstance(var, Var) for var in self.initial_indices):
            raise ArgumentTypeError(f"IndexMap: the initial indices are variables, not {list(initial_indices)!r}",
                                    hint="IndexMap.from_func(lambda i, j: [j, i])")
        self.final_indices: tuple[Expr, ...] = tuple(map(build.as_expr, final_indices))
        self.inverse_index_map = inverse_index_map if inverse_index_map is None or isinstance(inverse_index_map, IndexMap) \
            else IndexMap.from_func(inverse_index_map, len(self.final_indices))

    @staticmethod
    def from_func(mapping_function: Callable[..., Any], ndim: int | None = None,
                  inverse_index_map: IndexMap | Callable[..., Any] | None = None) -> IndexMap:
        """The map that a function of indices computes. ndim: how many there are, for a function of *indices; names after the
        star are the last ones.
        AXIS_SEPARATOR among its results is refused: see from_func_with_separators.
        """
        made, separators = IndexMap.from_func_with_separators(mapping_function, ndim, inverse_index_map)
        if separators:
            raise ArgumentError("IndexMap.from_func: the function gives separators of axes",
                                hint="IndexMap.from_func_with_separators returns where they stand")
        return made

    @staticmethod
    def from_func_with_separators(mapping_function: Callable[..., Any], ndim: int | None = None,
                                  inverse_index_map: IndexMap | Callable[..., Any] | None = None) -> tuple[IndexMap, list[int]]:
        """The map that a function of indices computes, and before which of its results a separator of axes stands."""
        variables = _variables(mapping_function, ndim)
        results = parameters_of(mapping_function).called(mapping_function, variables)
        final: list[Any] = []
        separators: list[int] = []
        for result in results if isinstance(results, (list, tuple)) else [results]:
            if result is _SEPARATOR or isinstance(result, type(_SEPARATOR)):
                separators.append(len(final))
            else:
                final.append(result)
        return IndexMap(variables, final, inverse_index_map), separators

    def is_equivalent_to(self, other_map: IndexMap) -> bool:
        """Whether the maps give the same for all indices, as far as that is proved."""
        counts = [(len(one.initial_indices), len(one.final_indices)) for one in (self, other_map)]
        if counts[0] != counts[1]:
            return False
        analyzer = Analyzer()
        return all(analyzer.can_prove_equal(mine, theirs)
                   for mine, theirs in zip(self.final_indices, other_map.map_indices(self.initial_indices)))

    def map_indices(self, indices: Sequence[Any]) -> tuple[Expr, ...]:
        """The final indices for given ones."""
        given = self._checked("map_indices", indices)
        analyzer = Analyzer()
        values = dict(zip(self.initial_indices, map(build.as_expr, given)))
        return tuple([analyzer.simplify(substitute(final, values)) for final in self.final_indices])

    def map_shape(self, shape: Sequence[Any]) -> tuple[Expr, ...]:
        """The extents of the final indices for initial indices from 0 to `shape`."""
        ranges = self._ranges("map_shape", shape)
        analyzer = Analyzer()
        for var, span in ranges.items():
            analyzer.bind(var, span)
        found = detect_iter_map(list(self.final_indices), ranges)
        if found:
            return tuple([analyzer.simplify(build.as_expr(_end(one))) for one in found])
        return tuple([build.const(analyzer.const_int_bound(final).max_value + 1, final.dtype) for final in self.final_indices])

    def map_ndarray(self, arr_src: Any) -> NDArray:
        """An array whose elements stand where the map puts them, zeros elsewhere."""
        source = arr_src.numpy() if isinstance(arr_src, NDArray) else numpy.asarray(arr_src)
        sizes = [extent.value for extent in self.map_shape(source.shape) if isinstance(extent, IntImm)]
        places = numpy.indices(source.shape)
        made = numpy.zeros(sizes, source.dtype)
        values = dict(zip(self.initial_indices, places))
        made[tuple(_computed(final, values, source.shape) for final in self.final_indices)] = source
        return array(made)

    def inverse(self, shape: Sequence[Any]) -> IndexMap:
        """The map back, for initial indices from 0 to `shape`, or in ranges. ArgumentError where the map is not one to one."""
        if self.inverse_index_map is not None:
            return self.inverse_index_map
        ranges = self._ranges("inverse", shape)
        found = detect_iter_map(list(self.final_indices), ranges, require_bijective=True)
        if not found:
            raise ArgumentError(f"IndexMap.inverse: {self} is not known to be one to one for the shape {list(shape)}",
                                hint="give inverse_index_map to IndexMap.from_func; maps with padding are not one to one")
        outputs = [Var(f"axis{n}", final.dtype) for n, final in enumerate(self.final_indices)]
        inputs = inverse_affine_iter_map(found, outputs)
        analyzer = Analyzer()
        return IndexMap(outputs, [
            analyzer.simplify(build.as_expr(inputs.get(var, ranges[var].min))) for var in self.initial_indices])

    def non_surjective_inverse(self, shape: Sequence[Any]) -> tuple[IndexMap, Expr]:
        """The map back, and the condition under which a place has no element: False, since maps with padding are refused."""
        return self.inverse(shape), build.const(False, "bool")

    def __call__(self, *indices: Any) -> list[Expr]:
        """The final indices for given ones: a map stands for its function."""
        return list(self.map_indices(indices))

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.initial_indices))}) -> ({', '.join(map(str, self.final_indices))})"

    def __repr__(self) -> str:
        return f"IndexMap({self})"

    def _checked(self, what: str, given: Sequence[Any]) -> list[Any]:
        if len(given) != len(self.initial_indices):
            raise ArgumentError(f"IndexMap.{what}: {self} takes {len(self.initial_indices)} indices, not {len(given)}")
        return list(given)

    def _ranges(self, what: str, shape: Sequence[Any]) -> dict[Var | IterVar, Range]:
        given = self._checked(what, shape)
        return {var: one if isinstance(one, Range) else Range.from_min_extent(build.const(0, var.dtype), one)
                for var, one in zip(self.initial_indices, given)}


def _variables(function: Any, ndim: int | None) -> list[Var]:
    """A variable for each parameter of a function; of *indices as many as are left of `ndim`."""
    if not callable(function):
        raise ArgumentTypeError(f"IndexMap.from_func takes a function, not {type_in_words(function)}",
                                hint="lambda i, j: [j, i]")
    given = parameters_of(function)
    if given.rest is not None and ndim is None:
        raise ArgumentError(f"IndexMap.from_func: a function of *{given.rest} takes any number of indices",
                            hint="ndim says how many")
    if ndim is not None and not given.takes(ndim):
        least = "at least " if given.rest is not None else ""
        raise ArgumentError(f"IndexMap.from_func: ndim is {ndim}, and the function takes {least}{given.fixed} indices")
    rest = [f"{given.rest}_{n}" for n in range((ndim or 0) - given.fixed)]
    return [Var(name, INT32) for name in (*given.by_position, *rest, *given.by_name)]


def _end(sum_of_parts: Any) -> Any:
    """What is behind the greatest value of a sum of parts of iterators."""
    end: Any = sum_of_parts.base + 1
    for part in sum_of_parts.args:
        end = end + (part.extent - 1) * part.scale
    return end


def _computed(expr: Expr, values: dict[Var, Any], shape: tuple[int, ...]) -> Any:
    """The values of an index for arrays of indices."""
    analyzer = Analyzer()
    flat = [[int(value) for value in place.ravel()] for place in values.values()]
    results = [analyzer.simplify(substitute(expr, {var: build.const(one, var.dtype) for var, one in zip(values, at)}))
               for at in zip(*flat)]
    return numpy.array([one.value for one in results if isinstance(one, IntImm)], "int64").reshape(shape)
