"""Where numpy's fields are not where they should be, or the machine is another: calls through Python, or words."""

import itertools
import sys

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.codegen.kernels import abi
from tedsl.codegen.llvm import compiled
from tedsl.errors import ArgumentError, TedslError
from tedsl.runtime import call, layout, parallel, symbols
from tedsl.runtime.arguments import numpy_fields


def added(n=8):
    a, b = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    c = te.compute((n,), lambda i: a[i] + b[i], name="C")
    return te.create_schedule(c.op), [a, b, c]


def test_the_layout_is_found_here():
    if sys.implementation.name == "cpython":
        assert layout.array_layout() is not None


def test_offsets_that_are_not_true_are_noticed():
    array = np.zeros((2, 3))
    good = layout.Layout()
    assert numpy_fields.fields_agree(array, good)
    for wrong in (layout.Layout(data=24), layout.Layout(ndim=64), layout.Layout(descr=48), layout.Layout(flags=24),
                  layout.Layout(number=24)):
        assert not numpy_fields.fields_agree(array, wrong)


def test_flags_that_stand_elsewhere_are_noticed(monkeypatch):
    """The samples tell each flag from the others: two that are swapped are no layout."""
    names = ["C_CONTIGUOUS", "ALIGNED", "WRITEABLE"]
    assert numpy_fields.verified_layout() is not None
    for one, other in itertools.combinations(names, 2):
        with monkeypatch.context() as swapped:
            swapped.setattr(numpy_fields, one, getattr(numpy_fields, other))
            swapped.setattr(numpy_fields, other, getattr(layout, one))
            assert numpy_fields.verified_layout() is None


def test_without_a_layout_calls_go_through_python(monkeypatch):
    monkeypatch.setattr(compiled, "array_layout", lambda: None)
    module = tedsl.build(*added())
    assert isinstance(module["default_function"], call.CheckedCall)
    a, c = np.ones(8, np.float32), np.zeros(8, np.float32)
    module(a, a, c)
    assert (c == 2).all()
    with pytest.raises(ArgumentError, match="overlaps"):
        module(a, c, c)
    assert module.time_evaluator("default_function", tedsl.cpu(), number=3)(a, a, c).mean > 0


def test_other_systems_lower_and_say_what_is_missing_to_run(monkeypatch):
    s, args = added()
    monkeypatch.setattr(sys, "platform", "win32")
    assert "C_2[i]" in str(tedsl.lower(s, args, simple_mode=True))
    with pytest.raises(TedslError, match=r"kernels run on Linux(.|\n)*this is win32"):
        tedsl.build(s, args)


def test_parallel_on_other_processors_is_refused_in_words(monkeypatch):
    monkeypatch.setattr(parallel.platform, "machine", lambda: "ppc64le")
    with pytest.raises(TedslError, match="parallel loops run on x86-64, AArch64, ARMv7 and 64-bit RISC-V, not on ppc64le"):
        parallel.pool_source()


def test_the_pool_is_valid_on_aarch64(monkeypatch):
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    monkeypatch.setattr(parallel.platform, "machine", lambda: "aarch64")
    machine = llvm.Target.from_triple("aarch64-linux-gnu").create_target_machine()
    assert "yield" in machine.emit_assembly(llvm.parse_assembly(parallel.pool_source()))


def test_statuses_mean_the_same_on_both_sides():
    assert (call.NO_MEMORY, call.CALLBACK_RAISED, call.FIRST_ASSERTION) == \
        (abi.NO_MEMORY, abi.CALLBACK_RAISED, abi.FIRST_ASSERTION)


@pytest.mark.parametrize("name", sorted(symbols.CPYTHON | set(symbols.DATA)))
def test_every_symbol_of_the_interpreter_has_an_address(name):
    assert symbols.is_known(name) and symbols.address_of(name)


def test_symbols_of_the_process_exist():
    missing = [name for name in symbols.PROCESS if not _exists(name)]
    assert not missing


def _exists(name):
    try:
        return bool(symbols.address_of(name))
    except AttributeError:
        return False
