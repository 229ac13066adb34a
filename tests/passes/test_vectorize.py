"""Vectorized loops become vector statements; what needs its lanes in order stays a loop."""

import pytest

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import Call, Let, Load, Ramp, SizeVar, StringImm, Var
from tedsl.ir.ops import Op
from tedsl.ir.stmt import AttrStmt, Evaluate, LetStmt, Store
from tedsl.passes.loops.vectorize_loops import vectorize_loops
from tests.passes.programs import VECTORIZED, Function, allocate, body_text, check, imm, loop, seq, when

I, V, K = Var("i"), Var("v"), Var("k")


def at(i=I, v=V, lanes=8):
    return build.add(build.mul(i, lanes), v)


def vectors(body, lanes=8, low=0):
    return loop(V, lanes, body, VECTORIZED, low=low)


def test_elementwise_code_becomes_one_vector_statement():
    f = Function(A=(32,), B=(32,))
    before = f.func(loop(I, 4, vectors(f.store("B", at(), build.mul(f.load("A", at()), imm(2.0, "float32"))))))
    assert body_text(check(vectorize_loops, before)) == (
        "for (i: int32, 0, 4) {\n"
        "  B_1[ramp((i*8), 1, 8)] = ((float32x8*)A_1[ramp((i*8), 1, 8)]*broadcast(2f32, 8))\n}")


def test_a_stride_becomes_the_stride_of_the_ramp():
    f = Function(A=(32,), B=(8,))
    before = f.func(vectors(f.store("B", V, f.load("A", build.add(build.mul(V, 4), 3)))))
    assert body_text(check(vectorize_loops, before)) == "B_1[ramp(0, 1, 8)] = (float32x8*)A_1[ramp(3, 4, 8)]"


def test_what_is_the_same_for_all_lanes_is_computed_once():
    f = Function(A=(32,), B=(8,))
    value = build.mul(f.load("A", imm(5)), imm(2.0, "float32"))
    after = check(vectorize_loops, f.func(vectors(f.store("B", V, value))))
    assert body_text(after) == "B_1[ramp(0, 1, 8)] = broadcast(((float32*)A_1[5]*2f32), 8)"


def test_a_guard_becomes_the_mask_of_stores_and_loads():
    n = SizeVar("n")
    f = Function(A=(n,), B=(n,))
    blocks = build.floordiv(build.add(n, 7), 8)
    body = when(build.likely(build.less(at(), n)), f.store("B", at(), f.load("A", at())))
    before = f.func(loop(I, blocks, vectors(body)))
    for size in (1, 7, 8, 13):
        after = check(vectorize_loops, before, shapes={"A": (size,), "B": (size,)})
    mask = "if (ramp((i*8), 1, 8) < broadcast(n, 8))"
    assert body_text(after).splitlines()[1].strip() == (
        f"B_1[ramp((i*8), 1, 8)] = (float32x8*)A_1[ramp((i*8), 1, 8)] {mask} {mask}")


def test_a_scalar_load_under_a_mask_happens_if_a_lane_is_on(golden):
    f = Function(A=(4,), B=(32,))
    body = when(build.likely(build.less(at(), 18)), f.store("B", at(), f.load("A", I)))  # A[3] when i is 3 is never read
    check(vectorize_loops, f.func(loop(I, 4, vectors(body))), golden=golden)


def test_a_scalar_load_under_a_mask_without_an_end_is_gathered(golden):
    f = Function(A=(4,), B=(32,))
    odd = build.equal(build.floormod(V, 2), I)
    check(vectorize_loops, f.func(loop(I, 4, vectors(when(odd, f.store("B", at(), f.load("A", I)))))), golden=golden)


def test_uniform_parts_of_a_guard_stay_a_branch(golden):
    f = Function(A=(32,), B=(32,))
    both = build.logical_and(build.likely(build.less(I, 3)), build.likely(build.less(V, 5)))
    check(vectorize_loops, f.func(loop(I, 4, vectors(when(both, f.store("B", at(), f.load("A", at())))))), golden=golden)


def test_both_sides_of_a_branch_get_opposite_masks(golden):
    f = Function(A=(8,), B=(8,))
    before = f.func(vectors(when(build.less(V, 3), f.store("B", V, f.load("A", V)), f.store("B", V, 1))))
    check(vectorize_loops, before, golden=golden)


def test_a_mask_that_reads_memory_is_computed_before_the_sides_write_it(golden):
    f = Function(A=(8,), B=(8,))
    positive = build.greater(f.load("A", V), imm(0.0, "float32"))
    body = when(positive, seq(f.store("A", V, -5), f.store("B", V, f.load("A", V))))
    check(vectorize_loops, f.func(vectors(body)), golden=golden)


def test_if_then_else_masks_its_loads():
    f = Function(A=(8,), B=(8,))
    shifted = build.if_then_else(build.greater_equal(V, 1), f.load("A", build.sub(V, 1)), imm(0.0, "float32"))
    after = check(vectorize_loops, f.func(vectors(f.store("B", V, shifted))))
    assert body_text(after) == (
        "B_1[ramp(0, 1, 8)] = (float32x8*)A_1[ramp(-1, 1, 8)] if (ramp(0, 1, 8) >= broadcast(1, 8))")


def test_nested_if_then_else_and_select():
    f = Function(A=(8,), B=(8,))
    a = f.load("A", V)
    inner = build.if_then_else(build.less(V, 6), f.load("A", build.add(V, 2)), a)
    value = build.select(build.greater(a, imm(0.0, "float32")),
                         build.if_then_else(build.greater_equal(V, 2), f.load("A", build.sub(V, 2)), inner), inner)
    check(vectorize_loops, f.func(vectors(f.store("B", V, value))))


def test_a_loop_inside_runs_once_for_all_lanes(golden):
    f = Function(A=(40,), C=(8,))
    body = seq(f.store("C", V, 0), loop(K, 5, f.store("C", V, build.add(f.load("C", V), f.load("A", at(K))))))
    check(vectorize_loops, f.func(vectors(body)), golden=golden)


@pytest.mark.parametrize("body", [
    lambda f: f.store("C", imm(0), build.add(f.load("C", imm(0)), f.load("A", V))),
    lambda f: f.store("A", build.add(V, 1), f.load("A", V)),
    lambda f: f.store("C", build.floordiv(V, 2), build.add(f.load("C", build.floordiv(V, 2)), f.load("A", V))),
    lambda f: seq(f.store("A", V, 1), f.store("A", build.add(V, 1), 2)),
    lambda f: seq(f.store("C", imm(0), f.load("A", V)), f.store("B", V, f.load("C", imm(0)))),
    lambda f: seq(loop(K, 3, f.store("A", build.add(V, K), f.load("B", V))),
                  loop(I, 3, f.store("C", V, f.load("A", build.add(V, I))))),
    lambda f: seq(f.store("A", V, 1), f.store("C", V, f.load("A", build.add(V, 1)))),
], ids=["reduction", "chain", "collision", "overlap", "through one element", "windows", "ahead"])
def test_lanes_that_depend_on_each_other_stay_a_loop(body):
    f = Function(A=(16,), B=(16,), C=(8,))
    after = check(vectorize_loops, f.func(vectors(body(f))))
    assert body_text(after).startswith("for (v: int32, 0, 8) {")


def test_a_block_layout_that_only_looks_irregular_is_vectorized(golden):
    f = Function(A=(16,), B=(8,))
    place = build.add(build.mul(build.floordiv(V, 4), 8), build.floormod(V, 4))
    before = f.func(vectors(f.store("A", place, build.add(f.load("A", place), f.load("B", V)))))
    check(vectorize_loops, before, golden=golden)


def test_inner_loops_with_bounds_of_the_lane_stay_scalar_alone(golden):
    f = Function(A=(8,), B=(8,))
    inner = loop(K, build.add(V, 1), f.store("B", V, build.add(f.load("B", V), f.load("A", K))))
    check(vectorize_loops, f.func(vectors(seq(f.store("B", V, 0), inner))), golden=golden)


def test_calls_with_effects_run_lane_by_lane_under_their_guard(golden):
    f = Function(A=(8,), B=(8,))
    call = Evaluate(Call("int32", Op.get("tir.call_extern"), (StringImm("trace"), V)))
    body = seq(f.store("B", V, f.load("A", V)), when(build.less(V, 3), call))
    before = f.func(vectors(body))
    golden.sections(before=body_text(before), after=body_text(vectorize_loops(before)))


def test_lets_become_vectors():
    f = Function(A=(8,), B=(8,))
    x, y = Var("x", "float32"), Var("y", "float32")
    value = Let(y, build.mul(x, x), build.add(y, x))
    check(vectorize_loops, f.func(vectors(LetStmt(x, f.load("A", V), f.store("B", V, value)))))


def test_memory_inside_gets_a_dimension_of_lanes(golden):
    f = Function(A=(32,), B=(8,))
    T = Var("T", f.data("A").type_annotation)
    load = lambda i: Load("float32", T, build.as_expr(i))
    fill = loop(K, 4, Store(T, f.load("A", at(K)), K))
    body = allocate(T, 4, seq(fill, f.store("B", V, build.add(load(0), load(3)))))
    check(vectorize_loops, f.func(vectors(body)), golden=golden)


def test_a_loop_that_does_not_start_at_zero():
    f = Function(A=(16,), B=(16,))
    after = check(vectorize_loops, f.func(vectors(f.store("B", V, f.load("A", V)), low=5)))
    assert body_text(after) == "B_1[ramp(5, 1, 8)] = (float32x8*)A_1[ramp(5, 1, 8)]"


def test_nested_vectorized_loops_keep_the_outer_one(golden):
    f = Function(A=(64,), B=(64,))
    x = at(K)
    check(vectorize_loops, f.func(vectors(loop(K, 4, f.store("B", x, f.load("A", x)), VECTORIZED))), golden=golden)


def test_attributes_stay_around(golden):
    f = Function(A=(8,), B=(8,))
    body = AttrStmt(StringImm("s"), "pragma_x", imm(1), f.store("B", V, f.load("A", V)))
    check(vectorize_loops, f.func(vectors(body)), golden=golden)


def test_casts_math_and_conditions_of_integers():
    f = Function(A=(8, "int32"), B=(8,))
    value = build.cast("float32", build.floordiv(build.add(f.load("A", V), V), build.add(V, 1)))
    value = build.select(build.logical_or(build.less(V, 2), build.logical_not(build.less(V, 6))), value,
                         build.call("tir.fabs", build.negative(value)))
    check(vectorize_loops, f.func(vectors(f.store("B", V, value))))


def test_one_lane_is_a_scalar_and_none_is_nothing():
    f = Function(A=(8,), B=(8,))
    after = check(vectorize_loops, f.func(seq(vectors(f.store("B", V, f.load("A", V)), 1, low=2), f.store("B", imm(0), 1))))
    assert body_text(after) == "B_1[2] = (float32*)A_1[2]\nB_1[0] = 1f32"
    W = Var("w")
    assert body_text(vectorize_loops(f.func(loop(W, 0, f.store("B", W, 1), VECTORIZED)))) == "0"


def test_disabled_it_is_a_serial_loop(golden):
    f = Function(A=(8,), B=(8,))
    check(vectorize_loops, f.func(vectors(f.store("B", V, f.load("A", V)))), enable=False, golden=golden)


def test_a_symbolic_extent_is_refused():
    n = SizeVar("n")
    f = Function(A=(n,), B=(n,))
    with pytest.raises(LoweringError, match=r"loop v is marked vectorized(.|\n)*hint: split it by a constant"):
        vectorize_loops(f.func(vectors(f.store("B", V, f.load("A", V)), n)))


def test_nothing_to_do_is_the_same_object():
    f = Function(A=(8,), B=(8,))
    before = f.func(loop(I, 8, f.store("B", I, f.load("A", I))))
    assert vectorize_loops(before) is before
    vector = f.func(f.store("B", Ramp(imm(0), imm(1), 8), f.load("A", Ramp(imm(0), imm(1), 8))))
    assert vectorize_loops(vector) is vector


def test_rows_apart_are_vectorized_whatever_loop_walks_them(golden):
    f = Function(A=(32,), B=(32,))
    update = f.store("A", at(I), build.add(f.load("A", at(I)), f.load("B", at(I))))
    body = seq(loop(K, 4, f.store("A", at(K), 0)), loop(I, 4, update))
    check(vectorize_loops, f.func(vectors(body)), golden=golden)


@pytest.mark.parametrize("read, serial", [
    (lambda s, r: build.mul(V, s), False),  # the element itself
    (lambda s, r: build.add(build.mul(V, s), r), False),  # another row
    (lambda s, r: build.mul(build.add(V, 1), s), True),  # its neighbour
    (lambda s, r: build.sub(build.mul(V, s), build.mul(s, 7)), True),
    (lambda s, r: build.mul(build.add(V, 8), s), False),  # beyond the lanes
    (lambda s, r: build.add(build.mul(V, s), 3), True),  # the stride may be 3
    (lambda s, r: build.mul(V, r), True),
])
def test_lanes_a_symbolic_stride_apart(read, serial):
    step, row = Var("step"), Var("row")
    f = Function(A=(64,))
    before = f.func(vectors(f.store("A", build.mul(V, step), build.add(f.load("A", read(step, row)), imm(1.0, "float32")))),
                    step, row)
    assert ("for (v" in body_text(vectorize_loops(before.with_attr("from_legacy_te_schedule", True)))) == serial
    assert "for (v" in body_text(vectorize_loops(before)), "written by hand: the step may be 0"


@pytest.mark.parametrize("read, serial", [
    (lambda i, k: build.add(build.mul(k, 8), V), False),  # the same lane of another row
    (lambda i, k: build.add(build.mul(k, 4), V), True),
    (lambda i, k: build.add(V, k), True),
    (lambda i, k: build.add(build.add(V, k), 64), False),  # beyond all lanes, whatever k is
    (lambda i, k: k, True),  # an element that some lane writes
    (lambda i, k: build.add(k, 64), False),
    (lambda i, k: build.add(i, 64), True),  # nothing is known of a number that a call gives
])
@pytest.mark.parametrize("outside", [True, False])
def test_distances_that_loops_make_in_functions_written_by_hand(read, serial, outside):
    """Loops around the lanes and loops inside bring elements together; both were taken not to."""
    f, n = Function(A=(128,)), Var("n")
    update = f.store("A", V, build.add(f.load("A", read(n, K)), imm(1.0, "float32")))
    body = loop(K, 4, vectors(update)) if outside else vectors(loop(K, 4, update))
    assert ("for (v" in body_text(vectorize_loops(f.func(body, n)))) == serial


@pytest.mark.parametrize("read, serial", [
    (lambda n, k: build.add(build.mul(V, 10), k), False),  # rows of ten columns, of which the loop walks four
    (lambda n, k: build.sub(build.add(build.mul(V, 10), k), 9), True),  # the last lane's row, one column on
    (lambda n, k: build.sub(build.add(build.mul(V, 10), k), 5), False),  # between the columns that are written
])
def test_lanes_meet_in_different_iterations_of_a_loop_inside(read, serial):
    f, n = Function(A=(128,)), Var("n")
    place = build.add(build.mul(V, 10), K)
    body = vectors(loop(K, 4, f.store("A", place, build.add(f.load("A", read(n, K)), imm(1.0, "float32")))))
    assert ("for (v" in body_text(vectorize_loops(f.func(body, n)))) == serial


def test_elements_chosen_by_a_let_inside_of_a_loop_inside(golden):
    """The let names another element in another iteration, which another lane may have written."""
    f, place = Function(A=(128,), I=(8,)), Var("at")
    index = build.add(build.mul(V, 10), place)
    inside = LetStmt(place, build.cast("int32", f.load("I", K)), f.store("A", index, build.add(f.load("A", index), 1)))
    before = f.func(vectors(loop(K, 4, inside)))
    golden.sections(before=body_text(before), after=body_text(vectorize_loops(before)))


def test_elements_chosen_by_a_let_of_data(golden):
    """Lanes may name one element: what each adds to it would be lost."""
    f, place = Function(A=(16,), B=(8,), I=(8,)), Var("at")
    added = f.store("A", place, build.add(f.load("A", place), f.load("B", V)))
    body = LetStmt(place, build.cast("int32", f.load("I", V)), added)
    before = f.func(vectors(body)).with_attr("from_legacy_te_schedule", True)
    golden.sections(before=body_text(before), after=body_text(vectorize_loops(before)))
