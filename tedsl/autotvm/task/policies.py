"""The choices of a knob: how a loop may be split, loops be ordered or annotated. Their order numbers the points of a space."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex, TypeGuard

from tedsl.autotvm.task.entities import AnnotateEntity, ReorderEntity, SplitEntity
from tedsl.errors import ArgumentError, ArgumentTypeError

_MOST_FACTOR = 1 << 31
_MOST_CHOICES = 1 << 22  # of one knob, which are a list in memory


def splits_of(name: str, extent: int, policy: str, num_outputs: int, max_factor: int = _MOST_FACTOR,
           filter: Callable[[SplitEntity], bool] | None = None, candidate: Sequence[Sequence[int]] = (),
           no_tail: bool | None = None) -> list[SplitEntity]:
    """The splits of a loop of `extent` iterations into `num_outputs` loops.

    policy: "factors" (or "all"), those without a rest; "power2", powers of 2; "verbose", both; "candidate", those given.
    no_tail: whether splits with a rest are left out; None: the policy decides.
    """
    if not is_int(max_factor) or max_factor < 1:
        raise ArgumentTypeError(f"define_split {name!r}: max_factor is an int of at least 1, not {max_factor!r}",
                                hint="leave it out where factors have no limit")
    if filter is not None and not callable(filter):
        raise ArgumentTypeError(f"define_split {name!r}: filter is a function of an entity, not {filter!r}",
                                hint="filter=lambda entity: entity.size[-1] <= 16")
    if policy == "candidate":
        found = [_as_given(name, size, num_outputs) for size in _listed("define_split", name, candidate)]
    else:
        factors = [factor for factor in _factors(name, extent, policy) if factor <= max_factor]
        even = policy in ("factors", "all") if no_tail is None else no_tail
        found = _all_splits(name, extent, factors, num_outputs, even)
    kept = [one for one in found if filter is None or filter(one)]
    if not kept:
        raise ArgumentError(f"define_split {name!r}: no split of {extent} iterations is left",
                            hint="loosen filter or max_factor")
    return kept


def is_int(value: object) -> TypeGuard[int]:
    """Whether a value is an int, of Python or of numpy, and no bool."""
    return isinstance(value, SupportsIndex) and not isinstance(value, bool)


def _as_given(name: str, size: object, num_outputs: int) -> SplitEntity:
    """The split that a candidate says: extents of at least 1, of which the first may be -1, what is left."""
    if not isinstance(size, (list, tuple)) or len(size) != num_outputs or not all(map(is_int, size)):
        raise ArgumentError(f"define_split {name!r}: candidates are lists of {num_outputs} extents, not {size!r}",
                            hint=f"candidate=[{[-1, *[4] * (num_outputs - 1)]}, ...]")
    if min(size[1:], default=1) < 1 or (size[0] < 1 and size[0] != -1):
        raise ArgumentError(f"define_split {name!r}: the loops of the candidate {list(size)} are no loops of at least 1 "
                            "iteration", hint="only the first extent may be -1, which is what is left")
    return SplitEntity(tuple(size))


def _all_splits(name: str, extent: int, factors: Sequence[int], num_outputs: int, even: bool) -> list[SplitEntity]:
    """The splits whose inner loops have any of `factors` iterations, the innermost changing slowest.

    An inner part that does not fit stays out of the next loop, so that the work is that of the splits that are found.
    """
    @functools.cache
    def next_of(product: int) -> list[int]:
        return [factor for factor in factors if _fits(extent, product * factor, even)]

    counts = Counter({1: 1})  # of inner parts, by the product of their factors
    for _ in range(num_outputs - 1):
        longer: Counter[int] = Counter()
        for product, count in counts.items():
            longer.update({product * factor: count for factor in next_of(product)})
        counts = longer
    _check_count("define_split", name, sum(counts.values()), "give fewer num_outputs, a max_factor, or policy=\"power2\"")
    inner: list[tuple[int, tuple[int, ...]]] = [(1, ())]
    for _ in range(num_outputs - 1):
        inner = [(product * factor, (factor, *sizes)) for product, sizes in inner for factor in next_of(product)]
    return [SplitEntity((-1, *sizes)) for _, sizes in inner]


def _check_count(what: str, name: str, count: int, hint: str) -> None:
    if count > _MOST_CHOICES:
        raise ArgumentError(f"{what} {name!r}: the knob has {count} choices, more than the {_MOST_CHOICES} that it may have",
                            hint=hint)


def _listed(what: str, name: str, candidate: object) -> list[Any]:
    """Candidates; ArgumentTypeError unless they are a list with something in it."""
    if not isinstance(candidate, (list, tuple)) or not candidate:
        raise ArgumentTypeError(f"{what} {name!r}: candidate is a list of lists, one for each choice, not {candidate!r}")
    return list(candidate)


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
        _check_count("define_reorder", name, math.factorial(count), 'give fewer loops, or policy="interval_all"')
        return [ReorderEntity(perm) for perm in itertools.permutations(range(count))]
    if policy == "interval_all" and interval is not None:
        begin, end = _interval(name, interval, count)
        head, tail = tuple(range(begin)), tuple(range(end, count))
        return [ReorderEntity((*head, *perm, *tail)) for perm in itertools.permutations(range(begin, end))]
    if policy == "candidate" and candidate:
        return [_order(name, axes, order) for order in _listed("define_reorder", name, candidate)]
    if policy in ("interleave", "interleave_cuda") and (spatial or reduce):
        _check_chains(name, spatial, reduce)
        outer, last = _in_turns([chain[:-1] for chain in spatial]), [list(chain[-1:]) for chain in spatial]
        rest = _in_turns([*last, *reduce]) if policy == "interleave" else [*_in_turns(reduce), *itertools.chain(*last)]
        return [_order(name, axes, [*outer, *rest])]
    raise ArgumentError(f"define_reorder {name!r}: there is no policy {policy!r} with these arguments",
                        hint='choose one of "identity", "all", "interval_all" with interval, "candidate" with candidate, '
                             '"interleave" or "interleave_cuda" with spatial and reduce')


def _interval(name: str, interval: object, count: int) -> tuple[int, int]:
    begin, end = interval if isinstance(interval, (list, tuple)) and len(interval) == 2 else (None, None)
    if not is_int(begin) or not is_int(end) or not 0 <= begin <= end <= count:
        raise ArgumentError(f"define_reorder {name!r}: interval is the numbers (begin, end) of loops among {count}, not "
                            f"{interval!r}", hint=f"interval=(0, {count}) reorders all of them")
    _check_count("define_reorder", name, math.factorial(end - begin), "give a shorter interval")
    return begin, end


def _order(name: str, axes: Sequence[Any], order: object) -> ReorderEntity:
    """An order that a template gives: each of the loops once."""
    if not isinstance(order, (list, tuple)):
        raise ArgumentTypeError(f"define_reorder {name!r}: an order is a list of loops, not {order!r}",
                                hint="candidate=[[yo, xo, yi, xi], [xo, yo, yi, xi]]")
    perm = tuple([_number(name, axes, axis) for axis in order])
    if sorted(perm) != list(range(len(axes))):
        raise ArgumentError(f"define_reorder {name!r}: an order has each of the {len(axes)} loops once, and {list(order)} has "
                            f"{len(set(perm))} of them", hint="list all loops, or give define_reorder only those that move")
    return ReorderEntity(perm)


def _number(name: str, axes: Sequence[Any], axis: Any) -> int:
    """The number of a loop among `axes`; numbers stand for themselves."""
    at = next((at for at, one in enumerate(axes) if one is axis), None)
    if at is None and isinstance(axis, int) and 0 <= axis < len(axes):
        at = axis
    if at is None:
        raise ArgumentError(f"define_reorder {name!r}: {axis} is none of the loops {list(axes)}")
    return at


def _check_chains(name: str, *chains: object) -> None:
    for one in chains:
        if not isinstance(one, (list, tuple)) or not all(isinstance(chain, (list, tuple)) for chain in one):
            raise ArgumentTypeError(f"define_reorder {name!r}: spatial and reduce are lists of chains of loops, not {one!r}",
                                    hint="spatial=[[yo, yi], [xo, xi]], reduce=[[ko, ki]]")


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
        if not is_int(num_anchor) or num_anchor < 1 or not count:
            raise ArgumentError(f"define_annotate {name!r}: num_anchor is how many caches are computed at one of the loops, an "
                                f"int of at least 1, not {num_anchor!r} with {count} loops")
        return [AnnotateEntity(places) for places in itertools.combinations_with_replacement(range(count), num_anchor)]
    if policy == "candidate" and candidate:
        return [_annotations(name, one) for one in _listed("define_annotate", name, candidate)]
    words = policy.replace("try", "none").split("_") if isinstance(policy, str) else []
    if words and set(words) <= {"none", "unroll", "vec"}:
        _check_count("define_annotate", name, len(words) ** count, "give fewer loops")
        found = [AnnotateEntity(chosen) for chosen in itertools.product(words, repeat=count) if chosen.count("vec") <= 1]
        if not found:
            raise ArgumentError(f"define_annotate {name!r}: {policy!r} vectorizes each of {count} loops, and one at most is",
                                hint='"try_vec" vectorizes one of them or none; or give the innermost loop alone')
        return found
    raise ArgumentError(f"define_annotate {name!r}: there is no policy {policy!r} with these arguments",
                        hint='choose one of "try_unroll", "try_vec", "try_unroll_vec", "unroll", "bind_gpu", '
                             '"bind_gpu_virtual", "locate_cache", "candidate" with candidate')


def _annotations(name: str, given: object) -> AnnotateEntity:
    if not isinstance(given, (list, tuple)):
        raise ArgumentTypeError(f"define_annotate {name!r}: a candidate is a list of annotations, one for each loop, not "
                                f"{given!r}", hint='candidate=[["none", "vec"], ["unroll", "vec"]]')
    return AnnotateEntity(tuple(given))


def _threads(name: str, count: int, virtual: bool) -> tuple[str, ...]:
    """As many dimensions of blocks, of virtual threads and of threads as `count` loops allow; the first loops are fused."""
    dims = min(3, count // (3 if virtual else 2))
    if not dims:
        raise ArgumentError(f"define_annotate {name!r}: {count} loops are too few to be bound",
                            hint=f"give at least {3 if virtual else 2} of them")
    bound = (*_BLOCKS[3 - dims:], *(("vthread",) * dims if virtual else ()), *_THREADS[3 - dims:])
    return (*("fuse",) * (count - len(bound)), *bound)
