"""What a loop accumulates stays in registers."""


from tedsl.ir import build
from tedsl.ir.expr import Call, Load, Ramp, SizeVar, StringImm, Var
from tedsl.ir.ops import Op
from tedsl.ir.stmt import Evaluate, Store
from tedsl.passes.machine.promote_accumulators import promote_accumulators
from tests.passes.programs import Function, allocate, body_text, check, imm, loop, seq, when

I, J, K = Var("i"), Var("j"), Var("k")


def accumulate(f, index, value, predicate=None, name="C"):
    data = f.data(name)
    index = build.as_expr(index)
    dtype = f.buffers[name].dtype.with_lanes(index.dtype.lanes)
    return Store(data, build.add(Load(dtype, data, index, predicate), value), index, predicate)


def dot(f):
    return build.mul(f.load("A", build.add(build.mul(I, 8), K)), f.load("B", K))


def test_a_row_sum_starts_runs_and_ends_in_a_register():
    f = Function(A=(32,), B=(8,), C=(4,))
    before = f.func(loop(I, 4, seq(f.store("C", I, 0), loop(K, 8, accumulate(f, I, dot(f))))))
    assert body_text(check(promote_accumulators, before)) == (
        "for (i: int32, 0, 4) {\n"
        "  allocate(C.acc: Pointer(local float32), float32, [1]), storage_scope = local {\n"
        "    C.acc[0] = 0f32\n"
        "    for (k: int32, 0, 8) {\n"
        "      C.acc[0] = ((float32*)C.acc[0] + ((float32*)A_1[((i*8) + k)]*(float32*)B_1[k]))\n"
        "    }\n"
        "    C_1[i] = (float32*)C.acc[0]\n"
        "  }\n}")


def test_without_a_start_value_it_is_loaded(golden):
    f = Function(A=(32,), B=(8,), C=(4,))
    before = f.func(loop(K, 8, loop(I, 4, loop(J, 2, accumulate(f, I, dot(f))))))
    check(promote_accumulators, before, golden=golden)


def test_a_loop_that_may_not_run_touches_nothing(golden):
    n = SizeVar("n")
    f = Function(A=(n,), C=(1,))
    before = f.func(loop(K, n, accumulate(f, imm(0), f.load("A", K))))
    for size in (0, 1, 5):
        check(promote_accumulators, before, shapes={"A": (size,)}, golden=golden)


def test_a_tile_of_vectors(golden):
    f = Function(A=(64,), B=(128,), C=(64,))
    rows = [Ramp(build.add(build.mul(I, 16), 8 * y), imm(1), 8) for y in range(2)]
    b = f.load("B", Ramp(build.mul(K, 8), imm(1), 8))
    update = seq(*(accumulate(f, row, build.mul(build.cast("float32x8", f.load("A", build.add(K, y))), b))
                   for y, row in enumerate(rows)))
    start = seq(*(Store(f.data("C"), build.const(0.0, "float32x8"), row) for row in rows))
    before = f.func(loop(I, 4, seq(start, loop(K, 16, update))))
    check(promote_accumulators, before, golden=golden)


def test_overlapping_places_stay_in_memory():
    f = Function(A=(64,), C=(64,))
    rows = [Ramp(build.add(I, shift), imm(1), 8) for shift in (0, 4)]
    value = f.load("A", Ramp(K, imm(1), 8))
    before = f.func(loop(I, 4, loop(K, 16, seq(*(accumulate(f, row, value) for row in rows)))))
    assert promote_accumulators(before) is before


def test_places_at_an_unknown_distance_stay_in_memory():
    n = SizeVar("n")
    f = Function(A=(16,), C=(64,))
    before = f.func(loop(K, 16, seq(accumulate(f, imm(0), f.load("A", K)), accumulate(f, n, f.load("A", K)))), n)
    assert promote_accumulators(before) is before


def test_another_access_to_the_buffer_keeps_it_in_memory():
    f = Function(A=(16,), C=(64,))
    reads_other = accumulate(f, imm(0), f.load("C", K))
    assert promote_accumulators(before := f.func(loop(K, 16, reads_other))) is before


def test_a_mask_is_kept_at_both_ends(golden):
    f = Function(A=(64,), C=(5,))
    lanes = Ramp(imm(0), imm(1), 8)
    mask = build.less(lanes, build.const(5, "int32x8"))
    value = f.load("A", Ramp(build.mul(K, 8), imm(1), 8))
    check(promote_accumulators, f.func(loop(K, 8, accumulate(f, lanes, value, mask))), golden=golden)


def test_a_masked_value_that_goes_elsewhere_stays_in_memory(golden):
    f = Function(A=(64,), C=(5,), D=(8,))
    lanes = Ramp(imm(0), imm(1), 8)
    mask = build.less(lanes, build.const(5, "int32x8"))
    value = f.load("A", Ramp(build.mul(K, 8), imm(1), 8))
    elsewhere = Store(f.data("D"), Load("float32x8", f.data("C"), lanes, mask), lanes)
    before = f.func(loop(K, 8, seq(accumulate(f, lanes, value, mask), elsewhere)))
    check(promote_accumulators, before, golden=golden)


def test_a_guard_that_the_loop_does_not_change_guards_both_ends(golden):
    n = SizeVar("n")
    f = Function(A=(16,), C=(2,))
    rows = seq(*(when(build.less(y, n), accumulate(f, imm(y), f.load("A", K))) for y in range(2)))
    for value in (0, 1, 2):
        check(promote_accumulators, f.func(loop(K, 16, rows), n), scalars=(value,), golden=golden)


def test_a_guard_that_changes_and_holds_once():
    """In the middle of the loop it does, so that the place in memory is one that is read and written."""
    f = Function(A=(16,), C=(2,))
    before = f.func(loop(K, 16, when(build.greater(K, 3), accumulate(f, imm(0), f.load("A", K)))))
    assert body_text(check(promote_accumulators, before)) == (
        "allocate(C.acc: Pointer(local float32), float32, [1]), storage_scope = local {\n"
        "  C.acc[0] = (float32*)C_1[0]\n"
        "  for (k: int32, 0, 16) {\n"
        "    if (k > 3) {\n"
        "      C.acc[0] = ((float32*)C.acc[0] + (float32*)A_1[k])\n"
        "    }\n"
        "  }\n"
        "  C_1[0] = (float32*)C.acc[0]\n}")


def test_rows_of_a_window_that_lie_in_a_border():
    """Of each row of the result some row of the window lies inside of the image."""
    f = Function(A=(36,), C=(4,))
    inside = build.logical_and(build.less_equal(1, build.add(I, J)), build.less(build.add(I, J), 5))
    update = when(inside, loop(K, 6, accumulate(f, I, f.load("A", build.add(build.mul(build.add(I, J), 6), K)))))
    before = f.func(loop(I, 4, seq(f.store("C", I, 0), loop(J, 3, update))))
    after = body_text(check(promote_accumulators, before))
    assert after.index("C.acc[0] = 0f32") < after.index("for (j:") and after.rindex("C_1[i] = ") > after.rindex("for (k:")


def test_a_guard_that_may_never_hold_keeps_the_place_in_memory():
    n = SizeVar("n")
    f = Function(A=(16,), C=(2,))
    for guard in (build.greater(K, n), build.greater(K, 15), build.greater(f.load("A", K), 0.0)):
        before = f.func(loop(K, 16, when(guard, accumulate(f, imm(0), f.load("A", K)))), n)
        assert promote_accumulators(before) is before


def test_aliasing_and_effects_forbid_it():
    f = Function(noalias=False, A=(16,), C=(2,))
    before = f.func(loop(K, 16, accumulate(f, imm(0), f.load("A", K))))
    assert promote_accumulators(before) is before
    g = Function(A=(16,), C=(2,))
    call = Evaluate(Call("int32", Op.get("tir.call_packed"), (StringImm("look"),)))
    before = g.func(loop(K, 16, seq(call, accumulate(g, imm(0), g.load("A", K)))))
    assert promote_accumulators(before) is before


def prefetched(f, name, index):
    return Evaluate(build.call("tir.prefetch", build.call("tir.address_of", f.load(name, index), dtype_="handle"), 0, 3, 1,
                               dtype_="int32"))


def test_prefetches_do_not_forbid_it_unless_they_ask_for_the_place_itself():
    f = Function(A=(16,), C=(2,))
    update = accumulate(f, imm(0), f.load("A", K))
    made = body_text(check(promote_accumulators, f.func(loop(K, 16, seq(prefetched(f, "A", K), update)))))
    assert "C.acc[0] = ((float32*)C.acc[0] + (float32*)A_1[k])" in made and "@tir.address_of((float32*)A_1[k]" in made
    before = f.func(loop(K, 16, seq(prefetched(f, "C", imm(0)), update)))
    assert promote_accumulators(before) is before
    address = Evaluate(build.call("tir.address_of", f.load("A", K), dtype_="handle"))
    before = f.func(loop(K, 16, seq(address, update)))
    assert promote_accumulators(before) is before  # who takes it may do anything


def test_the_outermost_loop_counts(golden):
    f = Function(A=(16,), C=(4,))
    before = f.func(loop(I, 4, loop(J, 4, loop(K, 4, accumulate(f, I, f.load("A", build.add(build.mul(J, 4), K)))))))
    check(promote_accumulators, before, golden=golden)


def test_arrays_of_constant_places_are_registers_already():
    f = Function(A=(16,), C=(2,))
    T = Var("T", f.data("A").type_annotation)
    total = Store(T, build.add(Load("float32", T, imm(0)), f.load("A", K)), imm(0))
    body = seq(Store(T, imm(0.0, "float32"), imm(0)), loop(K, 16, total), f.store("C", imm(0), Load("float32", T, imm(0))))
    before = f.func(allocate(T, 1, body))
    assert promote_accumulators(before) is before


def test_start_values_that_read_what_is_written_stay_where_they_are():
    f = Function(A=(16,), C=(2,), D=(2,))
    before = f.func(seq(f.store("C", imm(0), f.load("D", imm(0))), f.store("D", imm(0), 1),
                        loop(K, 16, accumulate(f, imm(0), f.load("A", K)))))
    check(promote_accumulators, before)


def test_a_later_start_of_another_place_wins():
    f = Function(A=(16,), C=(2,))
    before = f.func(seq(f.store("C", imm(0), 1), f.store("C", build.sub(I, I), 5), f.store("C", imm(0), 2),
                        loop(K, 16, accumulate(f, imm(0), f.load("A", K)))))
    check(promote_accumulators, f.func(loop(I, 2, before.body)))


def test_a_start_that_is_the_same_object_as_an_earlier_store_leaves_that_store():
    """Copies of loops share statements: the store of zero before the first loop is the object that starts the second."""
    f = Function(A=(8,), C=(2,), D=(4,))
    zero = f.store("C", 0, 0)
    first = loop(I, 4, f.store("D", I, f.load("C", 0)))
    before = f.func(seq(zero, first, zero, loop(K, 8, accumulate(f, imm(0), f.load("A", K)))))
    after = body_text(check(promote_accumulators, before))
    assert "C_1[0] = 0f32" in after.partition("for")[0] and after.count("= 0f32") == 2
