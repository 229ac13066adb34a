"""PassContext: which passes run, who watches them, and the options by their older names."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir, transform
from tedsl.errors import AccessError, ArgumentTypeError, OptionError
from tedsl.ir.func import Accesses
from tedsl.ir.instrument import PassInstrument, PassTimingInstrument, PrintAfterAll, PrintBeforeAll, pass_instrument
from tedsl.passes.config import PassConfig
from tedsl.passes.default import device_pipeline, kernel_pipeline, lowering_pipeline, target_pipeline
from tedsl.passes.selection import NAMES, NEEDED, info_of
from tedsl.target import Target
from tests.one_stage import doubled
from tests.refusing import refused

LANES = 8


def scheduled(n=64):
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1, name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], LANES)
    s[b].vectorize(inner)
    s[b].unroll(outer)
    return s, [a, b]


@pass_instrument
class Recorder:
    """Notes what it is told; passes in `left_out` do not run."""

    def __init__(self, *left_out):
        self.left_out, self.told = left_out, []

    def enter_pass_ctx(self):
        self.told.append("enter")

    def exit_pass_ctx(self):
        self.told.append("exit")

    def should_run(self, mod, info):
        return info.name not in self.left_out

    def run_before_pass(self, mod, info):
        assert isinstance(mod, tedsl.IRModule)
        self.told.append(info.name)


# --- which passes run ---------------------------------------------------------------------------------------------------

def test_every_step_has_a_name():
    config = transform.PassContext(config={"tir.noalias": False, "tir.disable_assert": True}).options
    steps = [*lowering_pipeline(config).passes, *lowering_pipeline(simple_mode=True).passes,
             *lowering_pipeline(accesses=Accesses.AT_RUN_TIME).passes,
             *target_pipeline(Target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell")).passes,
             *device_pipeline(Target("cuda"), PassConfig()).passes, *kernel_pipeline(Target("cuda"), PassConfig()).passes]
    assert all(info_of(step).name.startswith("tir.") for step in steps)
    assert NEEDED.keys() <= set(NAMES.values())


def test_a_disabled_pass_does_not_run():
    s, args = scheduled()
    whole = str(tedsl.lower(s, args))
    with transform.PassContext(disabled_pass=["tir.UnrollLoop"]):
        rolled = str(tedsl.lower(s, args))
    assert "for" not in whole and '"unroll"' in rolled and "ramp" in rolled
    with transform.PassContext(disabled_pass=["tir.VectorizeLoop", "tir.UnrollLoop"]):
        assert "ramp" not in str(tedsl.lower(s, args)) and "vectorized" not in str(tedsl.lower(s, args))


@pytest.mark.parametrize("name", sorted(set(NAMES.values()) - NEEDED.keys()))
def test_without_it_results_are_the_same(name):
    a = te.placeholder((13, 21), name="A")
    k = te.reduce_axis((0, 21), name="k")
    twice = te.compute((13, 21), lambda i, j: te.if_then_else(j > 2, a[i, j], a[i, j] * 2), name="twice")
    c = te.compute((13,), lambda i: te.sum(twice[i, k], axis=k), name="C")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], 4)
    s[c].parallel(outer)
    s[twice].compute_at(s[c], inner)
    s[twice].double_buffer()
    _, lanes = s[twice].split(twice.op.axis[1], 8)
    s[twice].vectorize(lanes)
    data, out = np.arange(13 * 21, dtype="float32").reshape(13, 21), np.zeros(13, "float32")
    with transform.PassContext(disabled_pass=[name]):
        tedsl.build(s, [a, c])(data, out)
    np.testing.assert_array_equal(out, np.where(np.arange(21) > 2, data, data * 2).sum(axis=1))


@pytest.mark.parametrize("name, reason", sorted(NEEDED.items()))
def test_a_pass_that_is_needed_cannot_be_disabled(name, reason):
    with pytest.raises(OptionError) as error:
        transform.PassContext(disabled_pass=["tir.Simplify", name])
    assert f"{name} cannot be disabled: {reason}" in str(error.value) and "tir.UnrollLoop" in str(error.value)


def test_levels_and_required_passes():
    @tir.transform.prim_func_pass(opt_level=3, name="mine")
    def note(func, mod, ctx):
        return func.with_attr("note", 1)

    passes = transform.Sequential([note])
    module = tedsl.lower(*scheduled())
    assert "note" not in passes(module)["main"].attrs
    with transform.PassContext(opt_level=3):
        assert "note" in passes(module)["main"].attrs
    with transform.PassContext(required_pass=["mine"]):
        assert "note" in passes(module)["main"].attrs
    with transform.PassContext(opt_level=3, disabled_pass=["mine"]):
        assert "note" not in passes(module)["main"].attrs


def test_a_pass_that_is_required_and_disabled_is_refused():
    with pytest.raises(OptionError, match=r"tir\.UnrollLoop is in required_pass and in disabled_pass"):
        transform.PassContext(required_pass=["tir.Simplify", "tir.UnrollLoop"], disabled_pass=["tir.UnrollLoop"])


@pytest.mark.parametrize("level", [-1, 5, 9])
def test_a_level_out_of_range_is_refused(level):
    with pytest.raises(OptionError, match=f"opt_level is between 0 and 4, not {level}"):
        transform.PassContext(opt_level=level)


def test_level_0_builds_what_gives_the_same():
    s, args = scheduled()
    recorder, out = Recorder(), np.zeros(64, "float32")
    with transform.PassContext(opt_level=0, required_pass=["tir.SeparateTails"], instruments=[recorder]):
        tedsl.build(s, args)(np.ones(64, "float32"), out)
    assert (out == 2).all()
    assert "tir.PromoteAccumulators" not in recorder.told and "tir.SeparateTails" in recorder.told


# --- instruments --------------------------------------------------------------------------------------------------------

def test_an_instrument_sees_every_pass():
    s, args = scheduled()
    recorder = Recorder()
    assert isinstance(recorder, PassInstrument) and recorder.name == "Recorder"
    with transform.PassContext(instruments=[recorder]) as context:
        tedsl.lower(s, args)
        assert recorder.told == ["enter", *(info_of(step).name for step in lowering_pipeline().passes), "tir.RefuseRaces"]
        context.override_instruments([])
        tedsl.lower(s, args)
    assert recorder.told[-1] == "exit" and recorder.told.count("tir.StorageFlatten") == 1


def test_an_instrument_keeps_a_pass_from_running_unless_it_is_needed():
    s, args = scheduled()
    recorder = Recorder("tir.UnrollLoop", "tir.StorageFlatten")
    with transform.PassContext(instruments=[recorder]):
        assert '"unroll"' in str(tedsl.lower(s, args))
    assert "tir.UnrollLoop" not in recorder.told and "tir.StorageFlatten" in recorder.told
    with transform.PassContext(instruments=[recorder], required_pass=["tir.UnrollLoop"]):
        assert '"unroll"' not in str(tedsl.lower(s, args))


def test_an_instrument_that_skips_all_passes_builds_what_gives_the_same():
    """It is asked only about passes that can be left out; vectorized loops become serial, as if the pass were disabled."""
    asked = set()

    @pass_instrument
    class Skip:
        def should_run(self, mod, info):
            asked.add(info.name)
            return False

    s, args = scheduled()
    out = np.zeros(64, "float32")
    with transform.PassContext(instruments=[Skip()]):
        loops = str(tedsl.lower(s, args))
        tedsl.build(s, args)(np.ones(64, "float32"), out)
    assert (out == 2).all() and "ramp" not in loops and "vectorized" not in loops
    assert {"tir.VectorizeLoop", "tir.UnrollLoop"} <= asked and not asked & NEEDED.keys()


def test_an_instrument_that_forgets_to_answer_is_named():
    forgets = pass_instrument(type("Forgets", (), {"should_run": lambda self, mod, info: None}))
    with transform.PassContext(instruments=[forgets()]), \
            pytest.raises(ArgumentTypeError, match=r"should_run of the instrument Forgets returned None for the pass tir\."):
        tedsl.build(*scheduled())


def test_passes_that_a_program_calls_are_seen_too():
    recorder = Recorder()
    with transform.PassContext(instruments=[recorder]):
        transform.Sequential([tir.transform.Simplify()], name="two")(tedsl.lower(*scheduled()))
    assert recorder.told[-3:] == ["two", "tir.Simplify", "exit"]


def test_timing():
    timing = PassTimingInstrument()
    with transform.PassContext(instruments=[timing]):
        transform.Sequential([tir.transform.Simplify()], name="all")(tedsl.lower(*scheduled()))
        table = timing.render()
    assert "tir.StorageFlatten: " in table and "\n    tir.Simplify: " in table and table.splitlines()[-1].startswith("Total: ")


def test_printing(capsys):
    s, args = scheduled()
    with transform.PassContext(instruments=[PrintBeforeAll(), PrintAfterAll()]):
        tedsl.lower(s, args)
    shown = capsys.readouterr().out
    assert "Before Running Pass: tir.UnrollLoop\nprimfn" in shown and "After Running Pass: tir.UnrollLoop\nprimfn" in shown


def test_what_is_no_instrument():
    with pytest.raises(OptionError, match=r"instruments(.|\n)*pass_instrument"):
        transform.PassContext(instruments=[3])
    with pytest.raises(ArgumentTypeError, match="has none of the methods"):
        pass_instrument(type("Nothing", (), {}))
    assert tedsl.instrument is tedsl.ir.instrument


@pytest.mark.parametrize("name, method, count", [
    ("run_before_pass", lambda self, mod: None, 2), ("run_after_pass", lambda self: None, 2),
    ("should_run", lambda self, mod, info, more: True, 2), ("enter_pass_ctx", lambda self, mod: None, 0),
])
def test_a_method_of_an_instrument_with_other_arguments_is_refused(name, method, count):
    wrong = pass_instrument(type("Wrong", (), {name: method}))
    words = rf"method {name} of the instrument Wrong .* {count} arguments(.|\n)*def {name}\("
    with pytest.raises(ArgumentTypeError, match=words):
        transform.PassContext(instruments=[wrong()])
    recorder = Recorder()
    with transform.PassContext(instruments=[recorder]) as context:
        with pytest.raises(ArgumentTypeError, match=name):
            context.override_instruments([wrong()])
        assert context.instruments == [recorder] and recorder.told == ["enter"]


# --- options ------------------------------------------------------------------------------------------------------------

def test_bound_checkers_check_every_access():
    n = te.var("n")
    a = te.placeholder((10,), "int32", name="A")
    b = te.placeholder((n,), name="B")
    c = te.compute((10,), lambda i: b[a[i]], name="C")
    s = te.create_schedule(c.op)
    with transform.PassContext(config={"tir.instrument_bound_checkers": True}):
        module = tedsl.build(s, [a, b, c])
        quiet = tedsl.build(s, [a, b, c], checked=False)
    indices, out = np.full(10, 7, "int32"), np.zeros(10, "float32")
    with pytest.raises(AccessError, match="B"):
        module(indices, np.zeros(5, "float32"), out)
    quiet(indices, np.arange(5, dtype="float32"), out)
    assert (out == 4).all()


def test_build_config_takes_the_options_of_older_programs():
    s, args = scheduled()
    a, b = args
    plain = te.create_schedule(b.op)
    with tedsl.build_config(auto_unroll_max_step=128, unroll_explicit=True, add_lower_pass=None):
        assert "for" not in str(tedsl.lower(plain, args))
    with transform.build_config(offset_factor=4, data_alignment=32):
        func = tedsl.lower(plain, args)["main"]
        module = tedsl.build(plain, args)
    assert all(buffer.offset_factor == 4 and buffer.data_alignment == 32 for buffer in func.buffers)
    out = np.zeros(64, "float32")
    module(np.ones(64, "float32"), out)
    assert (out == 2).all()
    with transform.PassContext(config={"tir.auto_unroll_max_step": 128}):
        assert "for" not in str(tedsl.lower(plain, args))
    assert tedsl.build_config(restricted_func=False).config == {"tir.noalias": False}
    with pytest.raises(OptionError, match=r"no option 'auto_unroll'(.|\n)*auto_unroll_max_step"):
        tedsl.build_config(auto_unroll=3)


def test_what_build_config_lists_it_accepts():
    """disable_select_rewriting is no choice: it is taken from older programs, True warns, and the list is without it."""
    with pytest.raises(OptionError) as error:
        tedsl.build_config(zzz=3)
    assert "dump_pass_ir" in str(error.value) and "disable_select_rewriting" not in str(error.value)
    assert tedsl.build_config(disable_select_rewriting=False).disabled_pass == []
    with pytest.warns(UserWarning, match="disable_select_rewriting=True does nothing"):
        assert tedsl.build_config(disable_select_rewriting=True).disabled_pass == []


def test_dumped_loops(capsys):
    with tedsl.build_config(dump_pass_ir=True):
        tedsl.lower(*scheduled())
    assert "After Running Pass: tir.StorageFlatten" in capsys.readouterr().out


@pytest.mark.parametrize("options, words", [
    ({"config": "tir.noalias"}, "config is a dict"),
    ({"opt_level": "3"}, "'opt_level' is of type int"),
    ({"disabled_pass": "tir.UnrollLoop"}, "list of names of passes"),
    ({"required_pass": [3]}, "list of names of passes"),
])
def test_options_of_the_wrong_type(options, words):
    with pytest.raises(OptionError, match=words):
        tedsl.transform.PassContext(**options)


def test_a_pass_that_returns_nothing_is_named():
    def forgetful(func):
        return None

    s, a, c = doubled()
    context = tedsl.transform.PassContext(config={"tir.add_lower_pass": [(0, forgetful)]})
    with context, pytest.raises(ArgumentTypeError, match=r"forgetful of tir\.add_lower_pass returned None"):
        tedsl.lower(s, [a, c])


@pytest.mark.parametrize("option", ["disabled_pass", "required_pass"])
def test_a_name_that_no_pass_has_is_warned_of(option):
    with pytest.warns(UserWarning, match=rf"{option}: there is no pass 'qqqq'; names are as tir.UnrollLoop"):
        transform.PassContext(**{option: ["qqqq"]})
    with pytest.warns(UserWarning, match=r"no pass 'UnrolLoop'; did you mean tir\.UnrollLoop\?"):
        transform.PassContext(**{option: ["UnrolLoop"]})
    with pytest.warns(UserWarning, match=r"no pass 'tir\.UnrolLoop'; did you mean tir\.UnrollLoop\?"):
        transform.PassContext(**{option: ["tir.UnrolLoop"]})


def test_a_pass_of_the_program_can_be_named(recwarn):
    tir.transform.prim_func_pass(lambda func, mod, ctx: func, opt_level=0, name="my_own_pass")
    transform.PassContext(disabled_pass=["my_own_pass"])
    assert not recwarn.list


def test_what_passes_are_made_of():
    refused(lambda: tir.transform.prim_func_pass(lambda func, mod, ctx: func, opt_level=9), "between 0 and 4, not 9",
            error=OptionError)
    refused(lambda: transform.module_pass(opt_level=-1), "opt_level is between 0 and 4, not -1", error=OptionError)
    refused(lambda: tir.transform.prim_func_pass(opt_level=0)(3), "a method transform_function, not of an int",
            error=ArgumentTypeError)
    refused(lambda: transform.Sequential(3), "Sequential takes a list of passes on modules, not 3", error=ArgumentTypeError)
    refused(lambda: transform.Sequential([], opt_level=7), "opt_level is between 0 and 4, not 7", error=OptionError)
