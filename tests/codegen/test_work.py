"""Which loops do little of the work of a function."""

import pytest

import tedsl
from tedsl.codegen.kernels.work import rare_loops


def loop(out, body, name, extent, kind="serial"):
    with out.for_range(0, extent, name=name, kind=kind) as i:
        body(i)


def rare(write):
    """The names of the rare loops of the statements that `write` adds to a builder, given that and a pointer."""
    out = tedsl.tir.ir_builder.create()
    data = out.pointer("float32", name="data")
    write(out, data)
    return sorted(each.loop_var.name for each in rare_loops(out.get()))


@pytest.mark.parametrize("extent, little", [(3300, True), (3255, True), (3250, False), (100, False)])
def test_beside_another_loop(extent, little):
    """3255 and 105: a 32nd is 105."""
    def write(out, data):
        loop(out, lambda i: data.__setitem__(i, 0.0), "main", extent)
        loop(out, lambda i: data.__setitem__(i, 0.0), "rest", 105)

    assert ("rest" in rare(write)) is little


def test_work_is_that_of_all_loops_inside():
    def write(out, data):
        def rows(i):
            loop(out, lambda k: data.__setitem__(k, 1.0), "k", 1000)
            loop(out, lambda j: data.__setitem__(j, 0.0), "j", 10)
        loop(out, rows, "i", 8)

    assert rare(write) == ["j"]


def test_what_is_outside_of_a_parallel_loop_does_not_count_in_it():
    def write(out, data):
        loop(out, lambda i: data.__setitem__(i, 0.0), "large", 1 << 20)
        def rows(i):
            loop(out, lambda k: data.__setitem__(k, 1.0), "k", 16)
        loop(out, rows, "p", 4, "parallel")
        loop(out, lambda i: data.__setitem__(i, 0.0), "small", 64)

    assert rare(write) == ["small"]


def test_branches_run_as_often_as_a_loop_takes_them():
    def write(out, data):
        def branches(i):
            with out.if_scope(i < 40):
                loop(out, lambda k: data.__setitem__(k, 1.0), "most", 16)
            with out.else_scope():
                loop(out, lambda k: data.__setitem__(k, 2.0), "few", 16)
        loop(out, branches, "i", 41)

    assert rare(write) == ["few"]


def test_symbolic_loops_count_alike():
    n = tedsl.te.var("n")

    def write(out, data):
        loop(out, lambda i: data.__setitem__(i, 0.0), "a", n)
        loop(out, lambda i: data.__setitem__(i, 0.0), "b", n)
        loop(out, lambda i: data.__setitem__(i, 0.0), "c", 2)

    assert rare(write) == ["c"]


def test_deep_nests():
    def write(out, data):
        def inside(depth):
            if depth:
                loop(out, lambda i: inside(depth - 1), f"i{depth}", 1)
            else:
                data[0] = 1.0
        inside(90)

    assert rare(write) == []


def test_a_function_without_stores():
    assert rare(lambda out, data: out.emit(tedsl.tir.Evaluate(0))) == []
