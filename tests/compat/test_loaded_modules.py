"""Hybrid modules and libraries of several objects, loaded as programs of TVM do, and targets and devices without code here."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.contrib import cc
from tedsl.errors import ArgumentError


@te.hybrid.script
def outer(n, m, a, b):
    c = output_tensor((n, m), a.dtype)  # noqa: F821
    for i in range(n):
        for j in range(m):
            c[i, j] = a[i] * b[j]
    return c


def test_a_hybrid_module_takes_its_arguments_in_the_order_of_build(tmp_path):
    n, m = te.size_var("n"), te.size_var("m")
    a, b = te.placeholder((n,), name="a"), te.placeholder((m,), name="b")
    c = outer(n, m, a, b)
    made = te.hybrid.build(te.create_schedule(c.op), [n, m, a, b], [c])
    made.save(tmp_path / "outer.py")
    loaded = te.hybrid.HybridModule()
    with pytest.raises(ArgumentError, match="empty"):
        loaded(2, 3)
    loaded.load(tmp_path / "outer.py")
    x, y = np.arange(2, dtype="float32"), np.arange(3, dtype="float32")
    for module in (made, loaded, te.hybrid.HybridModule.load(tmp_path / "outer.py")):
        np.testing.assert_array_equal(module(2, 3, x, y), np.outer(x, y))
    assert loaded(n, m, a, b).op.input_tensors == [a, b]
    assert "output_tensor" in te.hybrid.runtime.HYBRID_GLOBALS


def test_lists_of_lists_are_indexed_by_pairs():
    @te.hybrid.script
    def added(a, b):
        c = output_tensor(a.shape, a.dtype)  # noqa: F821
        for i in const_range(2):  # noqa: F821
            for j in const_range(3):  # noqa: F821
                c[i, j] = a[i, j] + b[i, j]
        return c

    a = te.placeholder((2, 3), "int32", name="a")
    numbers = [[1, 2, 3], [4, 5, 6]]
    c = added(a, tedsl.runtime.convert(numbers))
    found = np.zeros((2, 3), "int32")
    tedsl.build(te.create_schedule(c.op), [a, c])(np.ones((2, 3), "int32"), found)
    np.testing.assert_array_equal(found, np.array(numbers) + 1)


@pytest.mark.skipif(cc.get_cc() is None, reason="links with a C compiler")
def test_a_library_of_two_objects_has_the_functions_of_both(tmp_path):
    x = te.placeholder((5,), name="x")
    for number, name in ((1, "first"), (2, "second")):
        y = te.compute((5,), lambda i, k=number: x[i] + float(k), name="y")
        tedsl.build(te.create_schedule(y.op), [x, y], name=name).save(str(tmp_path / f"{name}.o"))
    cc.create_shared(str(tmp_path / "both.so"), [str(tmp_path / f"{name}.o") for name in ("first", "second")])
    both = tedsl.runtime.load_module(str(tmp_path / "both.so"))
    for number, name in ((1, "first"), (2, "second")):
        found = np.zeros(5, "float32")
        both[name](np.zeros(5, "float32"), found)
        np.testing.assert_array_equal(found, np.full(5, number, "float32"))


def test_targets_and_devices_for_which_nothing_is_compiled():
    assert tedsl.target.vta().kind.name == "ext_dev"
    assert tedsl.target.hexagon("v68").mcpu == "hexagonv68"
    assert [one(1).device_type for one in (tedsl.vpi, tedsl.ext_dev, tedsl.hexagon, tedsl.nd.webgpu)] == [9, 12, 14, 15]

    @tedsl.target.override_native_generic_func("loaded.generic")
    def plain(x):
        return x + 1

    @tedsl.target.extend_native_generic_func("loaded.generic", "cuda")
    def on_cuda(x):
        return x + 2

    with tedsl.target.Target("cuda"):
        assert plain(1) == 3
    with tedsl.target.arm_cpu():
        assert plain(1) == 2
