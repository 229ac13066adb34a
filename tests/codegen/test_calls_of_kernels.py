"""Functions of an object: a short kernel is one function with its call."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.codegen.llvm import machine
from tedsl.codegen.llvm.linking.elf import function_ranges
from tests.one_stage import doubled


def functions(module):
    """The names of the functions in the code of `module`, without that of the module."""
    return {name.split(".", 1)[1] for name, _, _ in function_ranges(module.image().code)}


def over(formula, shape=(64, 40), parallel=False):
    a = te.placeholder(shape, name="a")
    b = te.compute(shape, lambda *at: formula(a, *at), name="b")
    s = te.create_schedule(b.op)
    if parallel:
        s[b].parallel(b.op.axis[0])
    s[b].vectorize(s[b].split(b.op.axis[-1], factor=8)[1])
    return s, [a, b]


@pytest.mark.parametrize("parallel, names", [(False, {"call"}), (True, {"call", "kernel.b.parallel0"})])
def test_a_short_kernel_is_one_function_with_its_call(parallel, names):
    module = tedsl.build(*over(lambda a, i, j: a[i, j] * 2, parallel=parallel))
    assert functions(module) == names
    a, b = np.random.default_rng(0).random((64, 40), "float32"), np.zeros((64, 40), "float32")
    module(a, b)
    np.testing.assert_array_equal(b, a * 2)
    assert module.time_evaluator(module.entry_name, tedsl.cpu(), number=3)(*map(tedsl.nd.array, (a, b))).mean > 0


def test_a_kernel_that_launches_threads_takes_its_arguments_from_slots(monkeypatch):
    texts, parse = [], machine._parsed
    monkeypatch.setattr(machine, "_parsed", lambda llvm, text: texts.append(text) or parse(llvm, text))
    module = tedsl.build(*over(lambda a, i, j: a[i, j] * 3, parallel=True))
    assert functions(module) == {"call", "kernel.b.parallel0"} and not any("alwaysinline" in text for text in texts)
    a, b = np.random.default_rng(0).random((64, 40), "float32"), np.zeros((64, 40), "float32")
    module(a, b)
    np.testing.assert_array_equal(b, a * 3)


def test_a_long_kernel_and_one_that_is_looked_for_have_a_symbol():
    chain = lambda a, i, j: sum((a[i, j] * float(k) + a[i, j + 1 - 1] / float(k + 3) for k in range(1, 40)), a[i, j])
    assert functions(tedsl.build(*over(chain))) == {"call", "kernel"}
    with tedsl.transform.PassContext(config={"tedsl.gdb": True}):
        assert functions(tedsl.build(*over(lambda a, i, j: a[i, j] * 2), name="looked_for")) == {"call", "kernel"}


def test_kernels_of_a_module_have_symbols():
    s, a, c = doubled()
    one = tedsl.lower(s, [a, c], name="one")["one"]
    both = tedsl.build(tedsl.IRModule({"one": one, "two": one.with_attr("global_symbol", "two")}))
    assert functions(both) == {"call", "kernel"}


def test_a_kernel_that_fails_says_so():
    x, handle = tir.decl_buffer((16,), "int32", name="x"), tir.Var("x", "handle")
    zero = tir.IntImm("int32", 0)
    body = tir.AssertStmt(tir.BufferLoad(x, [zero]) > 0, tir.StringImm("x begins with a positive number"),
                          tir.BufferStore(x, tir.IntImm("int32", 5), [zero]))
    module = tedsl.build(tir.PrimFunc([handle], body, None, {handle: x}))
    data = np.ones(16, "int32")
    module(data)
    assert data[0] == 5
    with pytest.raises(tedsl.TedslError, match="begins with a positive number"):
        module(np.zeros(16, "int32"))
    assert functions(module) == {"call"}
