"""Allocations leave serial loops and share memory."""

import itertools

from tedsl.ir import build
from tedsl.ir.expr import Load, SizeVar, Var
from tedsl.ir.stmt import Allocate, Store
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.storage.rewrite_storage import rewrite_storage
from tests.passes.programs import PARALLEL, Function, allocate, check, loop, seq, when

I, J, K, L, M = (Var(name) for name in "ijklm")


def memory(f, name, scope=None):
    return Var(name, f.data("A").type_annotation)


def copy(to, source, var, size=8):
    return loop(var, size, Store(to, build.add(Load("float32", source, var), 1.0), var))


def chain(f, names, size=8):
    """A → T1 → T2 → ... → B, each step a loop."""
    temps = [memory(f, name) for name in names]
    memories = [f.data("A"), *temps, f.data("B")]
    body = seq(*(copy(to, source, Var(f"i{k}"), size) for k, (source, to) in enumerate(itertools.pairwise(memories))))
    for data in reversed(temps):
        body = allocate(data, size, body)
    return f.func(body)


def allocations(func):
    return [n for n in post_order(func.body) if isinstance(n, Allocate)]


def test_a_chain_needs_two_buffers():
    f = Function(A=(8,), B=(8,))
    after = check(rewrite_storage, chain(f, ["T", "U", "V", "W"]))
    assert {n.buffer_var.name for n in allocations(after)} == {"T", "U"}


def test_an_operand_and_its_result_never_share():
    f = Function(A=(8,), B=(8,))
    assert len(allocations(check(rewrite_storage, chain(f, ["T", "U"])))) == 2


def test_the_larger_size_is_allocated():
    f = Function(A=(16,), B=(16,))
    T, U, V = (memory(f, name) for name in "TUV")
    body = seq(copy(T, f.data("A"), I, 4), copy(U, T, J, 4), copy(f.data("B"), U, K, 4), copy(V, f.data("A"), L, 16),
               copy(f.data("B"), V, M, 16))
    func = f.func(allocate(T, 4, allocate(U, 4, allocate(V, 16, body))))
    assert sorted(int(n.extents[0]) for n in allocations(check(rewrite_storage, func))) == [4, 16]


def test_memory_moves_out_of_serial_loops(golden):
    f = Function(A=(8,), B=(8,))
    T = memory(f, "T")
    inner = allocate(T, 8, seq(copy(T, f.data("A"), J), copy(f.data("B"), T, K)))
    check(rewrite_storage, f.func(loop(I, 4, inner)), golden=golden)


def test_each_parallel_iteration_keeps_its_own():
    f = Function(A=(8,), B=(8,))
    T = memory(f, "T")
    inner = loop(L, 1, allocate(T, 8, seq(copy(T, f.data("A"), J), copy(f.data("B"), T, K))))
    after = check(rewrite_storage, f.func(loop(I, 4, inner, PARALLEL)))
    assert isinstance(after.body.body, Allocate)


def test_a_size_of_the_loop_stays_in_the_loop():
    f = Function(A=(8,), B=(8,))
    T = memory(f, "T")
    inner = allocate(T, build.add(I, 4), seq(copy(T, f.data("A"), J, 4), copy(f.data("B"), T, K, 4)))
    after = check(rewrite_storage, f.func(loop(I, 4, loop(L, 2, inner))))
    assert isinstance(after.body.body, Allocate)


def test_equal_symbolic_sizes_share_and_others_do_not():
    n, m = SizeVar("n"), SizeVar("m")
    f = Function(A=(n,), B=(n,))
    temps = [memory(f, name) for name in "TUV"]
    for last, count in ((n, 2), (m, 3)):
        T, U, V = temps
        one, two, three, four = (Var(x) for x in "abcd")
        body = seq(copy(T, f.data("A"), one, n), copy(U, T, two, n), copy(V, U, three, n), copy(f.data("B"), V, four, n))
        func = f.func(allocate(T, n, allocate(U, n, allocate(V, last, body))), m)
        assert len(allocations(check(rewrite_storage, func, scalars=(6,), shapes={"A": (6,), "B": (6,)}))) == count


def test_what_a_loop_carries_is_not_overwritten_in_it():
    f = Function(A=(8,), B=(8,))
    S, T, U = (memory(f, name) for name in "STU")
    step = seq(copy(T, S, J), copy(S, T, K), copy(U, f.data("A"), L), copy(f.data("B"), U, M))
    func = f.func(allocate(S, 8, seq(copy(S, f.data("A"), Var("s")), loop(I, 3, allocate(T, 8, allocate(U, 8, step))),
                                     copy(f.data("B"), S, Var("e")))))
    after = check(rewrite_storage, func)
    assert len(allocations(after)) == 2  # S lives through the loop; U takes the place of T


def test_different_dtypes_and_scopes_do_not_share():
    from tedsl.ir.expr import pointer_var
    f = Function(A=(8,), B=(8,))
    T, U = memory(f, "T"), memory(f, "U")
    V = pointer_var("V", f.buffers["A"].dtype, "shared")
    body = seq(copy(T, f.data("A"), I), copy(U, T, J), copy(V, U, K), copy(f.data("B"), V, L))
    func = f.func(allocate(T, 8, allocate(U, 8, allocate(V, 8, body))))
    assert len(allocations(check(rewrite_storage, func))) == 3


def test_a_branch_that_may_not_write_keeps_its_memory_apart():
    f = Function(A=(8,), B=(8,))
    T, U = memory(f, "T"), memory(f, "U")
    body = seq(copy(T, f.data("A"), I), when(build.greater(f.load("A", 0), 0.0), copy(f.data("B"), T, J)), copy(U, T, K),
               copy(f.data("B"), U, L))
    check(rewrite_storage, f.func(allocate(T, 8, allocate(U, 8, body))))


def test_nothing_allocated_is_the_same_object():
    f = Function(A=(8,), B=(8,))
    before = f.func(copy(f.data("B"), f.data("A"), I))
    assert rewrite_storage(before) is before
