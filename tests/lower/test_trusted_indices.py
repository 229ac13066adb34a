"""Indices that the author of statements vouches for: ib.scope_attr(memory, "tir.data_index", "trust")."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import AccessError, LoweringError

K, A = te.placeholder((16,), "int32", name="K"), te.placeholder((8,), name="A")


def moved(trusted=()):
    """C[K[i]] = A[K[i]], with the memory called `trusted` trusted."""
    def body(ins, outs):
        ib = tir.ir_builder.create()
        where, source, target = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        for name, memory in (("A", source), ("C", target)):
            if name in trusted:
                ib.scope_attr(memory, "tir.data_index", "trust")
        with ib.for_range(0, 16, name="i") as i:
            target[where[i]] = source[where[i]]
        return ib.get()

    made = te.extern((8,), [K, A], body, dtype="float32", name="C")
    return te.create_schedule(made.op), [K, A, made]


@pytest.mark.parametrize("trusted, clamped, asserted", [("", True, True), ("A", False, True), ("C", True, False),
                                                        ("AC", False, False)])
def test_indices_into_trusted_memory_are_as_written(trusted, clamped, asserted):
    text = str(tedsl.lower(*moved(trusted), simple_mode=True))
    assert ("max(" in text) == clamped and ("assert" in text) == asserted and "data_index" not in text
    places, source, target = np.arange(16, dtype="int32") % 8, np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tedsl.build(*moved(trusted))(places, source, target)
    np.testing.assert_array_equal(target, source)


@pytest.mark.parametrize("mode", ["checked", "tir.data_index"])
def test_checks_that_are_asked_for_do_not_trust(mode):
    with tedsl.PassContext(config={"tir.data_index": "check"} if mode != "checked" else {}):
        kernel = tedsl.build(*moved("AC"), checked=mode == "checked")
    with pytest.raises(AccessError, match=r"A\[8\]: index 8 of dimension 0 is not in \[0, 8\)"):
        kernel(np.arange(16, dtype="int32"), np.zeros(8, "float32"), np.zeros(8, "float32"))


def test_memory_of_the_statements_themselves():
    def body(ins, outs):
        ib = tir.ir_builder.create()
        where, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        counts = ib.allocate("int32", (8,), name="counts")
        ib.scope_attr(counts, "tir.data_index", "trust")
        with ib.for_range(0, 8, name="k") as k:
            counts[k] = 0
        with ib.for_range(0, 16, name="i") as i:
            counts[where[i]] = counts[where[i]] + 1
        with ib.for_range(0, 8, name="k") as k:
            target[k] = counts[k]
        return ib.get()

    made = te.extern((8,), [K], body, dtype="int32", name="C")
    s = te.create_schedule(made.op)
    assert "assert" not in str(tedsl.lower(s, [K, made], simple_mode=True))
    places, result = np.random.default_rng(0).integers(0, 8, 16).astype("int32"), np.zeros(8, "int32")
    tedsl.build(s, [K, made])(places, result)
    np.testing.assert_array_equal(result, np.bincount(places, minlength=8))


@pytest.mark.parametrize("node, value", [("A", "trust"), (None, "clamp"), (None, 1)])
def test_other_attributes_of_that_name_are_refused(node, value):
    def body(ins, outs):
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        ib.scope_attr(node or source, "tir.data_index", value)
        target[0] = source[0]
        return ib.get()

    made = te.extern((8,), [A], body, dtype="float32", name="C")
    with pytest.raises(LoweringError, match='it says of one memory that its indices are in range'):
        tedsl.lower(te.create_schedule(made.op), [A, made])
