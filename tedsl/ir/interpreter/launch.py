"""How kernels of a device run in the interpreter: each thread of a block is a generator, which stops where it must wait.

A program with barriers runs freely between them: a thread goes on until its next barrier, and the others follow, so that a
barrier that is missing shows. A program without any (as `lower` gives it) runs in step: the thread that is furthest behind
goes on, statement by statement, so that all have finished one statement before any begins the next.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

from tedsl.errors import InternalError
from tedsl.ir.expr import CommReducer
from tedsl.ir.interpreter import arithmetic

Position: TypeAlias = tuple[int, ...]  # numbers of statements, and of the iterations of the loops between them


@dataclass(frozen=True)
class Request:
    """What a thread waits for: all threads to come to the statement of that number; with a reducer, their combined values.

    group: the threads of one value have the same; position: where the thread is, in a program that runs in step.
    """

    number: int
    position: Position = ()
    reducer: CommReducer | None = None
    group: tuple[int, ...] = ()
    values: tuple[Any, ...] = ()
    counts: bool = True  # whether the values of this thread are among those combined


Thread: TypeAlias = Generator[Any, Any, None]
Evaluate: TypeAlias = Callable[..., Any]


class Block:
    """The memory that the threads of one block share."""

    def __init__(self) -> None:
        self.memory: dict[Any, Any] = {}

    def array(self, key: Any, size: int, of: Any) -> Any:
        """The array of an allocation: made by the first thread that comes to it."""
        if key not in self.memory or len(self.memory[key]) != max(size, 0):
            self.memory[key] = arithmetic.uninitialised(max(size, 0), of)
        return self.memory[key]


def run_kernel(make: Callable[..., Thread], blocks: Sequence[int], threads: Sequence[int], in_step: bool,
               reverse: bool, evaluate: Evaluate) -> None:
    """Runs all threads of all blocks; `make(block, *block indices, *thread indices)` begins one.

    evaluate: of an expression, given the values of its variables.
    """
    run = _run_in_step if in_step else _run_freely
    for at in _all_of(blocks, reverse):
        block = Block()
        run([make(block, *at, *thread) for thread in _all_of(threads, False)], reverse, evaluate)


def _all_of(counts: Sequence[int], reverse: bool) -> list[tuple[int, ...]]:
    found = list(itertools.product(*[range(max(count, 0)) for count in counts]))
    return found[::-1] if reverse else found


def _run_freely(threads: list[Thread], reverse: bool, evaluate: Evaluate) -> None:
    """One barrier after the other."""
    answers: list[Any] = [None] * len(threads)
    while True:
        order = range(len(threads))
        requests = {k: _advance(threads[k], answers[k]) for k in (reversed(order) if reverse else order)}
        waiting = [r for r in requests.values() if r is not None]
        if not waiting:
            return
        if len(waiting) != len(threads) or len({r.number for r in waiting}) != 1:
            raise InternalError(f"{len(waiting)} of {len(threads)} threads wait at a barrier that the others do not come to")
        answers = _answers([r for k in order if (r := requests[k]) is not None], evaluate)


def _run_in_step(threads: list[Thread], reverse: bool, evaluate: Evaluate) -> None:
    """The thread that is furthest behind goes on; where all must meet, it waits for the others to come there."""
    sign = -1 if reverse else 1
    heap: list[tuple[Position, int, int, Any]] = [((), sign * k, k, None) for k in range(len(threads))]
    heapify(heap)
    met: dict[int, Request] = {}
    while heap:
        position, order, k, answer = heappop(heap)
        made = _advance(threads[k], answer)
        if made is None:
            continue
        if isinstance(made, Request):
            met[k] = made
            position = made.position
        else:
            heappush(heap, (made, order, k, None))
        if met and not heap:
            if len({r.position for r in met.values()}) != 1 or len(met) != len(threads):
                raise InternalError(f"{len(met)} of {len(threads)} threads wait for others that never come")
            requests = [met[j] for j in sorted(met)]
            for j, result in zip(sorted(met), _answers(requests, evaluate)):
                heappush(heap, (position, sign * j, j, result))
            met = {}


def _advance(thread: Thread, answer: Any) -> Any:
    """Where the thread stops next; None if it has finished."""
    try:
        return thread.send(answer)
    except StopIteration:
        return None


def _answers(requests: Sequence[Request], evaluate: Evaluate) -> list[Any]:
    """What each thread gets: nothing at a barrier, the values of its group combined in the order of the threads."""
    reducer = requests[0].reducer
    if reducer is None:
        return [None] * len(requests)
    combined: dict[tuple[int, ...], list[Any]] = {}
    for r in requests:
        values = combined.setdefault(r.group, [evaluate(e) for e in reducer.identity_element])
        if r.counts:
            known = {**dict(zip(reducer.lhs, values)), **dict(zip(reducer.rhs, r.values))}
            combined[r.group] = [evaluate(result, known) for result in reducer.result]
    return [combined[r.group] for r in requests]
