"""Errors about a loop name the directive on that loop: not one of another kind, nor on a loop of the same name elsewhere."""

import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError

n = te.size_var("n")


def chain(*shape):
    A = te.placeholder(shape or (n,), name="A")
    B = te.compute(A.shape, lambda *i: A(*i) + 1.0, name="B")
    C = te.compute(A.shape, lambda *i: B(*i) * 2.0, name="C")
    return A, B, C, te.create_schedule(C.op)


def source(s, args):
    """The line of the error that says where it comes from; "" if there is none."""
    with pytest.raises(LoweringError) as caught:
        tedsl.build(s, args)
    return "".join(line for line in str(caught.value).splitlines() if line.startswith("  from: "))


def test_a_version_is_unrolled_and_the_general_loop_is_parallel():
    A, _, C, s = chain()
    version = s[C].specialize(n > 4)
    s[C].parallel(C.op.axis[0])
    version.unroll(C.op.axis[0])
    assert ".unroll(" in source(s, [A, C])


def test_a_loop_of_an_extern_is_not_that_of_a_stage():
    def statements(ins, outs):
        ib = tir.ir_builder.create()
        a, o = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, n, name="i", kind="unroll") as i:
            o[i] = a[i]
        return ib.get()

    A = te.placeholder((n,), name="A")
    E = te.extern((n,), [A], statements, name="E", dtype="float32")
    for directive in ("parallel", "unroll"):
        D = te.compute((n,), lambda i: E[i] + 1.0, name="D")
        s = te.create_schedule(D.op)
        getattr(s[D], directive)(D.op.axis[0])
        found = source(s, [A, D])
        assert found == "" or directive == "unroll"  # E comes first; with it out of the way, D cannot be unrolled either


@pytest.mark.parametrize("place", ["root", "inside"])
@pytest.mark.parametrize("other", ["parallel", "unroll"])
def test_two_stages_with_loops_of_one_name(place, other):
    A, B, C, s = chain(n, n)
    getattr(s[B], other)(B.op.axis[1])
    s[C].unroll(C.op.axis[1])
    if place == "inside":
        s[B].compute_at(s[C], C.op.axis[0])
    wrong = "s[C].unroll(" if other == "parallel" else "s[B].unroll("
    assert wrong in source(s, [A, C])


def test_the_annotation_and_not_the_pragma_after_it():
    A, _, C, s = chain()
    s[C].unroll(C.op.axis[0])
    s[C].pragma(C.op.axis[0], "loop_partition_hint")
    assert "s[C].unroll(" in source(s, [A, C])


@pytest.mark.parametrize("kind, code", [("import_c", "int f( {"), ("import_llvm", "junk"), ("import_llvm", "; no function")])
def test_code_that_cannot_be_imported(kind, code):
    A, _, C, s = chain(8)
    s[C].pragma(C.op.axis[0], kind, code)
    s[C].pragma(C.op.axis[0], "loop_partition_hint")
    assert f"'{kind}', '{code}')" in source(s, [A, C])


@pytest.mark.parametrize("directive", [
    "s[C].split(C.op.axis[0], te.var('q'))", "s[C].specialize(te.var('q') > 1)", "s[C].prefetch(B, C.op.axis[0], te.var('q'))"])
def test_a_variable_that_no_argument_gives(directive):
    A, B, C, s = chain(8)
    eval(directive, {"s": s, "te": te, "A": A, "B": B, "C": C})
    name = directive[len("s[C]."):].split("(")[0]
    assert f"s[C].{name}(" in source(s, [A, C])
