"""Statements nest deeper than Python recurses: threads are started for what nests, not for each store."""

import sys
import threading

import pytest

from tedsl.ir.build import const
from tedsl.ir.expr import Var, pointer_var
from tedsl.ir.stmt import For, LetStmt, Store, seq
from tedsl.ir.walk.rewriter import ScopedRewriter
from tests.ir.programs import F32, loop

A, i = pointer_var("A", F32), Var("i")


@pytest.fixture(autouse=True)
def python_recurses_1000_levels():
    """Another test may have raised the limit: torch.compile does, and leaves it so."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)


class Counted(ScopedRewriter):
    """Counts the threads in which loops and stores are reached; stores get the next value."""

    def __init__(self):
        self.threads, self.stores = set(), 0

    def stmt(self, stmt):
        if isinstance(stmt, (For, Store)):
            self.threads.add(threading.current_thread())
        if isinstance(stmt, Store):
            self.stores += 1
            return Store(stmt.buffer_var, const(2.0), stmt.index)
        return self.descend(stmt)


def under_lets(depth, body):
    for _ in range(depth):
        body = LetStmt(Var("t"), const(0), body)
    return body


def store():
    return Store(A, const(1.0), i)


def on_a_deep_stack(call, frames=400):
    return on_a_deep_stack(call, frames - 1) if frames else call()


def test_a_thousand_levels():
    counted = Counted()
    made = counted(under_lets(2000, store()))
    for _ in range(2000):
        made = made.body
    assert made.value.value == 2.0


def test_stores_start_no_threads():
    for depth in range(34, 44):
        counted = Counted()
        body = under_lets(depth, seq(*(store() for _ in range(20))))
        on_a_deep_stack(lambda counted=counted, body=body: counted(body))
        assert counted.stores == 20
        assert len(counted.threads) == 1


def test_each_loop_at_the_end_of_a_stack_has_a_thread():
    counted = Counted()
    on_a_deep_stack(lambda: counted(under_lets(39, seq(*(loop(i, 4, store()) for _ in range(3))))))
    assert len(counted.threads) == 3


def test_a_stack_that_is_not_deep_goes_on():
    counted = Counted()
    counted(under_lets(39, seq(*(loop(i, 4, store()) for _ in range(3)))))
    assert counted.threads == {threading.current_thread()}
