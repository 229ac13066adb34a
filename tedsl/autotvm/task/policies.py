"""The choices of a knob: how a loop may be split, loops be ordered or annotated. Their order numbers the points of a space."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from tedsl.autotvm.task.entities import AnnotateEntity, ReorderEntity, SplitEntity
from tedsl.errors import ArgumentError

_MOST_FACTOR = 1 << 31


def splits_of(name: str, extent: int, policy: str, num_outputs: int, max_factor: int = _MOST_FACTOR,
           filter: Callable[[SplitEntity], bool] | None = None, candidate: Sequence[Sequence[int]] = (),
           no_tail: bool | None = None) -> list[SplitEntity]:
    """The splits of a loop of `extent` iterations into `num_outputs` loops.

    policy: "factors" (or "all"), those without a rest; "power2", powers of 2; "verbose", both; "candidate", those given.
    no_tail: whether splits with a rest are left out; None: the policy decides.
    """
    if policy == "candidate":
        wrong = [size for size in candidate if len(size) != num_outputs]
        if wrong or not candidate:
            raise ArgumentError(f"define_split {name!r}: candidates are lists of {num_outputs} extents, not "
                                f"{wrong or candidate}")
        found = [SplitEntity(tuple(int(n) for n in size)) for size in candidate]
    else:
        factors = [factor for factor in _factors(name, extent, policy) if factor <= max_factor]
        even = policy in ("factors", "all") if no_tail is None else no_tail
        found = [SplitEntity((-1, *reversed(inner))) for inner in itertools.product(factors, repeat=num_outputs - 1)
                 if _fits(extent, math.prod(inner), even)]
    kept = [one for one in found if filter is None or filter(one)]
    if not kept:
        raise ArgumentError(f"define_split {name!r}: no split of {extent} iterations is left",
                            hint="loosen filter or max_factor")
    return kept


def get_factors(n: int) -> list[int]:
    """The divisors of a number, the least first."""
    _check_number("get_factors", n)
    low = [divisor for divisor in range(1, math.isqrt(n) + 1) if n % divisor == 0]
    return sorted({*low, *(n // divisor for divisor in low)})


def get_pow2s(n: int) -> list[int]:
    """The powers of 2 up to a number."""
    _check_number("get_pow2s", n)
    return [1 << bits for bits in range(n.bit_length())]


def _check_number(what: str, n: object) -> None:
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ArgumentError(f"{what} takes an int of at least 1, not {n!r}")


def _factors(name: str, extent: int, policy: str) -> list[int]:
    if policy in ("factors", "all"):
        return get_factors(extent)
    if policy == "power2":
        return get_pow2s(extent)
    if policy == "verbose":
        return sorted({*get_factors(extent), *get_pow2s(extent)})
    raise ArgumentError(f"define_split {name!r}: there is no policy {policy!r}",
                        hint='choose one of "factors", "power2", "verbose", "candidate"')


def _fits(extent: int, inner: int, even: bool) -> bool:
    return extent % inner == 0 if even else inner <= extent


def orders_of(name: str, axes: Sequence[Any], policy: str, candidate: Sequence[Sequence[Any]] = (),
           interval: tuple[int, int] | None = None, spatial: Sequence[Sequence[Any]] = (),
           reduce: Sequence[Sequence[Any]] = ()) -> list[ReorderEntity]:
    """The orders of the loops `axes`.

    policy: "identity"; "all"; "interval_all", all orders of the loops in `interval`; "candidate", those given, as lists of
    loops; "interleave" and "interleave_cuda", one order of chains of spatial and of reduction loops: the outer loops of the
    spatial chains in turns, then the reduction loops, among the innermost spatial ones or before them.
    """
    count = len(axes)
    if policy == "identity":
        return [ReorderEntity(tuple(range(count)))]
    if policy == "all":
        return [ReorderEntity(perm) for perm in itertools.permutations(range(count))]
    if policy == "interval_all" and interval is not None:
        begin, end = interval
        head, tail = tuple(range(begin)), tuple(range(end, count))
        return [ReorderEntity((*head, *perm, *tail)) for perm in itertools.permutations(range(begin, end))]
    if policy == "candidate" and candidate:
        return [ReorderEntity(tuple([_number(name, axes, axis) for axis in order])) for order in candidate]
    if policy in ("interleave", "interleave_cuda") and (spatial or reduce):
        outer, last = _in_turns([chain[:-1] for chain in spatial]), [list(chain[-1:]) for chain in spatial]
        rest = _in_turns([*last, *reduce]) if policy == "interleave" else [*_in_turns(reduce), *itertools.chain(*last)]
        return [ReorderEntity(tuple([_number(name, axes, axis) for axis in (*outer, *rest)]))]
    raise ArgumentError(f"define_reorder {name!r}: there is no policy {policy!r} with these arguments",
                        hint='choose one of "identity", "all", "interval_all" with interval, "candidate" with candidate, '
                             '"interleave" or "interleave_cuda" with spatial and reduce')


def _number(name: str, axes: Sequence[Any], axis: Any) -> int:
    """The number of a loop among `axes`; numbers stand for themselves."""
    at = next((at for at, one in enumerate(axes) if one is axis), None)
    if at is None and isinstance(axis, int) and 0 <= axis < len(axes):
        at = axis
    if at is None:
        raise ArgumentError(f"define_reorder {name!r}: {axis} is none of the loops {list(axes)}")
    return at


def _in_turns(chains: Sequence[Sequence[Any]]) -> list[Any]:
    """The elements of chains, each from the first chain that has the most left."""
    left, order = [list(chain) for chain in chains], []
    while any(left):
        order.append(max(left, key=len).pop(0))
    return order


_BLOCKS, _THREADS = ("blockIdx.z", "blockIdx.y", "blockIdx.x"), ("threadIdx.z", "threadIdx.y", "threadIdx.x")


def annotations_of(name: str, count: int, policy: str, candidate: Sequence[Sequence[Any]] = (),
                num_anchor: int = 1) -> list[AnnotateEntity]:
    """The annotations of `count` loops.

    policy: "bind_gpu", "bind_gpu_virtual": threads for the last loops, into which the first are fused; words with "_" between
    them, of which each loop may have any, and one loop at most "vec": "try_unroll_vec", where "try" is none, or "unroll";
    "locate_cache": the loops for num_anchor caches; "candidate", those given.
    """
    if policy in ("bind_gpu", "bind_gpu_virtual"):
        return [AnnotateEntity(_threads(name, count, policy == "bind_gpu_virtual"))]
    if policy == "locate_cache":
        return [AnnotateEntity(places) for places in itertools.combinations_with_replacement(range(count), num_anchor)]
    if policy == "candidate" and candidate:
        return [AnnotateEntity(tuple(one)) for one in candidate]
    words = policy.replace("try", "none").split("_") if isinstance(policy, str) else []
    if words and set(words) <= {"none", "unroll", "vec"}:
        return [AnnotateEntity(chosen) for chosen in itertools.product(words, repeat=count) if chosen.count("vec") <= 1]
    raise ArgumentError(f"define_annotate {name!r}: there is no policy {policy!r} with these arguments",
                        hint='choose one of "try_unroll", "try_vec", "try_unroll_vec", "unroll", "bind_gpu", '
                             '"bind_gpu_virtual", "locate_cache", "candidate" with candidate')


def _threads(name: str, count: int, virtual: bool) -> tuple[str, ...]:
    """As many dimensions of blocks, of virtual threads and of threads as `count` loops allow; the first loops are fused."""
    dims = min(3, count // (3 if virtual else 2))
    if not dims:
        raise ArgumentError(f"define_annotate {name!r}: {count} loops are too few to be bound",
                            hint=f"give at least {3 if virtual else 2} of them")
    bound = (*_BLOCKS[3 - dims:], *(("vthread",) * dims if virtual else ()), *_THREADS[3 - dims:])
    return (*("fuse",) * (count - len(bound)), *bound)
