"""Execution of device kernels in the interpreter: each thread of a block is a generator that yields where it must wait.

In a program with barriers each thread runs to its next barrier before the others follow, so that a missing barrier shows.
A program without barriers (as `lower` gives it) runs in lockstep: the thread that is furthest behind goes on, statement by
statement, so that all have finished one statement before any begins the next.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

from tedsl.errors import InternalError
from tedsl.ir.expr import CommReducer
from tedsl.ir.interpreter import arithmetic
from tedsl.record import record

Position: TypeAlias = tuple[int, ...]  # numbers of statements, and of the iterations of the loops between them


@record
class Request:
    """A wait of a thread until all threads reach the statement of that number; with a reducer, for their combined values.

    group: equal for threads whose values are combined; position: of the thread, in a program that runs in lockstep. With
    `shuffle`, "lane", "up" or "down", it is for the value of another thread: values has its own and which, group the width.
    """

    number: int
    position: Position = ()
    reducer: CommReducer | None = None
    group: tuple[int, ...] = ()
    values: tuple[Any, ...] = ()
    counts: bool = True  # whether the values of this thread are among those combined
    shuffle: str = ""


Thread: TypeAlias = Generator[Any, Any, None]
Evaluate: TypeAlias = Callable[..., Any]


class Block:
    """The memory that the threads of one block share."""

    def __init__(self) -> None:
        self.memory: dict[Any, Any] = {}

    def array(self, key: Any, size: int, of: Any) -> Any:
        """The array of an allocation, created by the first thread that reaches it."""
        if key not in self.memory or len(self.memory[key]) != max(size, 0):
            self.memory[key] = arithmetic.uninitialised(max(size, 0), of)
        return self.memory[key]


def run_kernel(make: Callable[..., Thread], blocks: Sequence[int], threads: Sequence[int], in_step: bool,
               reverse: bool, evaluate: Evaluate) -> None:
    """Runs all threads of all blocks.

    make: `make(block, *block indices, *thread indices)` returns a thread as a generator. evaluate: computes an expression from
    the values of its variables.
    """
    run = _run_in_step if in_step else _run_freely
    for at in _all_of(blocks, reverse):
        block = Block()
        run([make(block, *at, *thread) for thread in _all_of(threads, False)], reverse, evaluate)


def _all_of(counts: Sequence[int], reverse: bool) -> list[tuple[int, ...]]:
    positions = list(itertools.product(*[range(max(count, 0)) for count in counts]))
    return positions[::-1] if reverse else positions


def _run_freely(threads: list[Thread], reverse: bool, evaluate: Evaluate) -> None:
    """Runs the threads from one barrier to the next, each as far as it can."""
    answers: list[Any] = [None] * len(threads)
    while True:
        order = range(len(threads))
        requests = {k: _advance(threads[k], answers[k]) for k in (reversed(order) if reverse else order)}
        waiting = [r for r in requests.values() if r is not None]
        if not waiting:
            return
        if len(waiting) != len(threads) or len({r.number for r in waiting}) != 1:
            raise InternalError(f"{len(waiting)} of {len(threads)} threads wait at a barrier that the others do not reach")
        answers = _answers([r for k in order if (r := requests[k]) is not None], evaluate)


def _run_in_step(threads: list[Thread], reverse: bool, evaluate: Evaluate) -> None:
    """Runs the threads in lockstep: the one furthest behind goes on; at a barrier it waits for the others."""
    sign = -1 if reverse else 1
    heap: list[tuple[Position, int, int, Any]] = [((), sign * k, k, None) for k in range(len(threads))]
    heapify(heap)
    met: dict[int, Request] = {}
    while heap:
        position, order, k, answer = heappop(heap)
        stop = _advance(threads[k], answer)
        if stop is None:
            continue
        if isinstance(stop, Request):
            met[k] = stop
            position = stop.position
        else:
            heappush(heap, (stop, order, k, None))
        if met and not heap:
            if len({r.position for r in met.values()}) != 1 or len(met) != len(threads):
                raise InternalError(f"{len(met)} of {len(threads)} threads wait for others that never come")
            requests = [met[j] for j in sorted(met)]
            for j, result in zip(sorted(met), _answers(requests, evaluate)):
                heappush(heap, (position, sign * j, j, result))
            met = {}


def _advance(thread: Thread, answer: Any) -> Any:
    """Resumes a thread with `answer`; returns its next request, None if it has finished."""
    try:
        return thread.send(answer)
    except StopIteration:
        return None


def _answers(requests: Sequence[Request], evaluate: Evaluate) -> list[Any]:
    """The answer to each thread: None at a barrier, else the values of its group combined in the order of the threads."""
    reducer = requests[0].reducer
    if requests[0].shuffle:
        return [_shuffled(requests, k) for k in range(len(requests))]
    if reducer is None:
        return [None] * len(requests)
    combined: dict[tuple[int, ...], list[Any]] = {}
    for r in requests:
        values = combined.setdefault(r.group, [evaluate(e) for e in reducer.identity_element])
        if r.counts:
            known = {**dict(zip(reducer.lhs, values)), **dict(zip(reducer.rhs, r.values))}
            combined[r.group] = [evaluate(result, known) for result in reducer.result]
    return [combined[r.group] for r in requests]


def _shuffled(requests: Sequence[Request], thread: int) -> Any:
    """The value that a thread gets of another one of its part of the warp; its own if there is no such thread."""
    request = requests[thread]
    (width,), (value, lane) = request.group, request.values
    own = thread % width
    at = {"lane": lane % width, "up": own - lane, "down": own + lane}[request.shuffle]
    other = thread - own + at
    return requests[other].values[0] if 0 <= at < width and other < len(requests) else value
