"""What a call costs: its checks, an operation on recorded tensors, and the start and end of a parallel region."""

from __future__ import annotations

from functools import partial

import numpy as np

import tedsl
from benchmarks.case import Case, Contender, Goal, Maker, maker
from tedsl import autograd, te

REGION = 2e-6  # seconds
EAGER = 5e-6  # seconds, beside which the kernel of one element is nothing


def call(threads: int) -> Case:
    """Three arrays of one element, checked, without a function of Python around the call; the best that Python can do is to
    call an empty lambda.
    """
    A, B = te.placeholder((1,), name="A"), te.placeholder((1,), name="B")
    C = te.compute((1,), lambda i: A[i] + B[i], name="C")
    kernel = tedsl.build(te.create_schedule(C.op), [A, B, C])["default_function"]
    a, b, c = (np.ones(1, "float32") for _ in range(3))
    return Case("call", {"tedsl": Contender(partial(kernel, a, b, c), lambda: c), "an empty lambda": Contender(lambda: None),
                         "numpy": Contender(partial(np.add, a, b, out=c), lambda: c)}, lambda: np.full(1, 2.0))


def eager(recorded: bool, threads: int) -> Case:
    """A sum of two tensors of one element: the kernel is found, called, and a node remembers it where gradients are wanted."""
    a, b = (autograd.Tensor(np.ones(1, "float32"), requires_grad=recorded) for _ in range(2))
    made = []

    def call() -> None:
        made[:] = [a + b]

    return Case("eager", {"tedsl": Contender(call, lambda: made[0].detach().numpy())}, lambda: np.full(1, 2.0), budget=EAGER)


def backward(threads: int) -> Case:
    """Four sums one after the other, and their pass back: eight operations."""
    a = autograd.Tensor(np.ones(1, "float32"), requires_grad=True)

    def call() -> None:
        a.grad = None
        (a + a + a + a + a).backward()

    return Case("eager", {"tedsl": Contender(call, lambda: a.grad.numpy())}, lambda: np.full(1, 5.0), budget=8 * EAGER)


def region(threads: int) -> Case:
    """A loop of one iteration for each thread, which stores one number each."""
    A = te.compute((threads, 16), lambda i, j: (i + j).astype("float32"), name="A")
    s = te.create_schedule(A.op)
    s[A].parallel(A.op.axis[0])
    s[A].vectorize(A.op.axis[1])
    kernel = tedsl.build(s, [A])["default_function"]
    a = np.empty((threads, 16), "float32")
    return Case("region", {"tedsl": Contender(lambda: kernel(a), lambda: a)},
                lambda: np.add.outer(np.arange(threads), np.arange(16)), 0, budget=REGION, goal=Goal(1.0))


def cases(threads: int) -> list[Maker]:
    """The cases of this suite."""
    made = [maker("checked call of three arrays", call, threads),
            maker("operation on one element", eager, False, threads),
            maker("recorded operation on one element", eager, True, threads),
            maker("four recorded ones and their pass back", backward, threads)]
    return made + [maker("empty parallel region", region, threads)] * (threads > 1)
