"""Indices that are read from data: clamped, checked or trusted."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import AccessError, OptionError
from tedsl.ir.walk.visitor import post_order

WHERE, TABLE = te.placeholder((16,), "int32", name="K"), te.placeholder((8,), name="A")
GATHERED = te.compute((16,), lambda i: TABLE[WHERE[i]] * 2, name="C")


def data_index(mode):
    return tedsl.PassContext(config={"tir.data_index": mode})


def scheduled(kind="serial"):
    s = te.create_schedule(GATHERED.op)
    outer, inner = s[GATHERED].split(GATHERED.op.axis[0], 8)
    if kind == "vectorized":
        s[GATHERED].vectorize(inner)
    elif kind == "parallel":
        s[GATHERED].parallel(outer)
    return s, [WHERE, TABLE, GATHERED]


def arrays(**wrong):
    places = np.arange(16, dtype="int32") % 8
    for at, value in wrong.items():
        places[int(at[1:])] = value
    return places, np.arange(8, dtype="float32"), np.zeros(16, "float32")


def built(mode, s, args):
    with data_index(mode):
        return tedsl.build(s, args)


@pytest.mark.parametrize("kind", ["serial", "vectorized", "parallel"])
def test_a_wrong_index_is_found_with_its_stage_and_value(kind):
    kernel = built("check", *scheduled(kind))
    places, table, out = arrays()
    kernel(places, table, out)
    np.testing.assert_array_equal(out, table[places] * 2)
    for value in (77, -1, 8):
        with pytest.raises(AccessError, match=rf"reads A\[{value}\]: index {value} of dimension 0 is not in \[0, 8\)"
                                              r"\n  in stage C \(.*test_data_indices.py:12\)\n  loops: .*inner = 3"):
            kernel(*arrays(i11=value))


def test_an_unsigned_index_is_shown_unsigned():
    where = te.placeholder((4,), "uint64", name="K")
    out = te.compute((4,), lambda i: TABLE[where[i]], name="C")
    kernel = built("check", te.create_schedule(out.op), [TABLE, where, out])
    for value in (2**63 + 1, 2**63, 2**64 - 1):
        with pytest.raises(AccessError, match=rf"reads A\[{value}\]: index {value} of dimension 0 is not in \[0, 8\)"):
            kernel(np.zeros(8, "float32"), np.full(4, value, "uint64"), np.zeros(4, "float32"))


def test_clamped_trusted_and_checked_loops():
    for mode, clamps, faults in (("clamp", True, False), ("check", False, True), ("trust", False, False)):
        with data_index(mode):
            text = str(tedsl.lower(*scheduled()))
        assert ("max(min(" in text, "tedsl.checked.fault" in text) == (clamps, faults)
        assert "data_index" not in text


def test_parallel_loops_stay_parallel():
    with data_index("check"):
        assert '"parallel"' in str(tedsl.lower(*scheduled("parallel")))


def test_trusted_indices_give_the_same_where_they_are_right():
    places, table, out = arrays()
    built("trust", *scheduled("vectorized"))(places, table, out)
    np.testing.assert_array_equal(out, table[places] * 2)


def test_only_what_data_decides_is_checked():
    b = te.compute((8, 8), lambda i, j: TABLE[(i + j) % 8], name="B")
    with data_index("check"):
        func = tedsl.lower(te.create_schedule(b.op), [TABLE, b])["main"]
    assert not any(isinstance(node, tir.IfThenElse) for node in post_order(func.body))


@pytest.mark.parametrize("place", ["compute_root", "compute_inline", "compute_at"])
@pytest.mark.parametrize("mode", ["clamp", "check", "trust"])
def test_tables_that_are_computed(mode, place):
    table = te.compute((8,), lambda i: TABLE[i] + 1, name="T")
    nested = te.placeholder((8,), "int32", name="L")
    out = te.compute((16,), lambda i: te.if_then_else(WHERE[i] >= 0, table[nested[WHERE[i]]], 0.0), name="D")
    s = te.create_schedule(out.op)
    getattr(s[table], place)(*([s[out], out.op.axis[0]] if place == "compute_at" else []))
    kernel = built(mode, s, [WHERE, nested, TABLE, out])
    places, data, got = arrays(i3=-5)
    order = np.arange(8, dtype="int32")[::-1].copy()
    kernel(places, order, data, got)
    np.testing.assert_array_equal(got, np.where(places >= 0, data[order[places]] + 1, 0))
    if mode == "check":
        order[2] = 9
        with pytest.raises(AccessError, match=r"index 9 of dimension 0 is not in \[0, 8\)"):
            kernel(places, order, data, got)


@pytest.mark.parametrize("mode", ["clamp", "check"])
def test_statements_written_by_hand(mode):
    def body(ins, outs):
        ib = tir.ir_builder.create()
        k, a, c = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        with ib.for_range(0, 16, name="i") as i:
            c[i] = a[k[i]]
        return ib.get()

    out = te.extern((16,), [WHERE, TABLE], body, dtype="float32", name="E")
    kernel = built(mode, te.create_schedule(out.op), [WHERE, TABLE, out])
    places, table, got = arrays()
    kernel(places, table, got)
    np.testing.assert_array_equal(got, table[places])
    if mode == "check":
        with pytest.raises(AccessError, match=r"reads A\[9\]: index 9(.|\n)*stage E"):
            kernel(*arrays(i11=9))


def test_a_store_at_an_index_from_data_is_checked():
    def body(ins, outs):
        ib = tir.ir_builder.create()
        k, c = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        with ib.for_range(0, 16, name="i") as i:
            c[k[i]] = 1.0
        return ib.get()

    out = te.extern((8,), [WHERE], body, dtype="float32", name="E")
    kernel = built("check", te.create_schedule(out.op), [WHERE, out])
    got = np.zeros(8, "float32")
    kernel(arrays()[0], got)
    assert (got == 1).all()
    with pytest.raises(AccessError, match=r"stores E\[-2\]: index -2(.|\n)*loops: i = 11"):
        kernel(arrays(i11=-2)[0], got)


def test_explain_says_which_reads_data_decides():
    s, _ = scheduled()
    text = str(s.explain())
    assert "clamped: A[K[i]]: the index depends on data and is clamped to the nearest element of A" in text
    assert "tir.data_index" in text


def test_what_a_pass_of_the_user_leaves_is_clamped():
    seen = []
    config = {"tir.data_index": "check", "tir.add_lower_pass": [(3, lambda func: seen.append(func) or func)]}
    with tedsl.PassContext(config=config):
        kernel = tedsl.build(*scheduled())
    assert len(seen) == 1
    with pytest.raises(AccessError, match=r"reads A\[77\]"):
        kernel(*arrays(i11=77))


def test_a_trace_shows_the_checks():
    with data_index("check"):
        assert "tedsl.checked.fault" in str(tedsl.trace(*scheduled()))


def test_other_modes_are_refused():
    with pytest.raises(OptionError, match=r"'tir\.data_index' is one of 'clamp', 'check', 'trust', not 'clip'"):
        data_index("clip")


def test_memory_of_vectors_has_room_for_all_their_lanes():
    """Checked mode took ib.allocate("int32x4", (1,)) for one int32, and refused the lanes behind the first."""
    def body(ins, outs):
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        held = ib.allocate("int32x4", (1,), name="held")
        held[0] = source[tir.Ramp(0, 1, 4)]
        target[tir.Ramp(0, 1, 4)] = held[0]
        return ib.get()

    made = te.extern((4,), [WHERE], body, dtype="int32", name="D")
    kernel = tedsl.build(te.create_schedule(made.op), [WHERE, made], checked=True)
    result = np.zeros(4, "int32")
    kernel(np.arange(16, dtype="int32"), result)
    assert result.tolist() == [0, 1, 2, 3]
