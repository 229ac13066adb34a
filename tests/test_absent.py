"""Modules of TVM that tedsl does not have: they can be imported, and a use says what to do instead."""

import copy
import importlib
import inspect
import pickle
import pydoc
import runpy
import sys
from types import ModuleType

import pytest

import tedsl
from tedsl.absent import INSTEAD, StandIn
from tedsl.errors import AbsentModuleError, OptionError, TedslError

HERE = {"relay", "rpc", "script"}  # in part


def refused(program, **names):
    """The error of a program."""
    with pytest.raises(AbsentModuleError) as caught:
        exec(program, names)
    assert isinstance(caught.value, ModuleNotFoundError) and isinstance(caught.value, TedslError)
    return caught.value


def words_of(path):
    return f"tedsl.{path} is not part of tedsl, which has TVM's te, tir and topi"


@pytest.mark.parametrize("name", sorted(INSTEAD.keys() - HERE))
def test_each_can_be_imported_and_a_use_says_what_to_do(name):
    home, _, module = f"tedsl.{name}".rpartition(".")
    with pytest.raises((AttributeError, AbsentModuleError), match=r"no attribute|is not part of tedsl"):
        getattr(importlib.import_module(home), module)
    for imports in (f"import tedsl.{name} as m", f"from {home} import {module} as m"):
        error = refused(f"{imports}\nm.used")
        assert (error.problem, error.hint) == (words_of(f"{name}.used"), INSTEAD[name])
        error = refused(f"{imports}\nm()")
        assert (error.problem, error.hint) == (words_of(name), INSTEAD[name])
    assert refused(f"from tedsl.{name}.inside import used\nused()").hint == INSTEAD[name]
    assert isinstance(sys.modules[f"tedsl.{name}"], StandIn)


USES = {
    "attribute": "m.x", "call": "m(1, k=2)", "decorator": "@m\ndef f(): pass", "base": "class C(m): pass",
    "with": "with m: pass",
    "isinstance": "isinstance(3, m)", "one of several": "isinstance(3, (str, m))", "issubclass": "issubclass(int, m)",
    "index": "m[0]", "store": "m[0] = 1", "delete": "del m[0]", "for": "for _ in m: pass", "in": "3 in m", "next": "next(m)",
    "type": "m | None", "unpack": "a, b = m", "sum": "m + 1",
    "product": "2 * m", "comparison": "m < 1", "number": "float(m)", "negative": "-m"}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_each_use_is_refused(use):
    assert refused(f"from tedsl.relax.frontend import nn as m\n{use}").hint == INSTEAD["relax"]


def test_all_names_of_one_are_a_use():
    assert refused("from tedsl.relax import *").problem == words_of("relax")


def test_the_root_has_one_only_where_it_is_imported():
    assert not hasattr(tedsl, "relax")
    with pytest.raises(OptionError, match=r"tedsl\.relax is not part of tedsl"):
        _ = tedsl.relax
    for asks in ("contrib.cudnn", "tir.usmp"):
        with pytest.raises(OptionError, match=rf"tedsl\.{asks} is not part of tedsl"):
            eval(f"tedsl.{asks}")
    exec("import tedsl.contrib.cudnn, tedsl.relax")
    assert isinstance(tedsl.relax, StandIn) and isinstance(tedsl.contrib.cudnn, StandIn)


def test_tools_look_at_one_as_at_a_module():
    from tedsl.meta_schedule import tune_tir as one

    assert repr(one) == "<stand-in for tedsl.meta_schedule.tune_tir, which is not part of tedsl>"
    assert isinstance(one, ModuleType) and one.__name__ == "tedsl.meta_schedule.tune_tir" and one and one == one and {one: 1}
    assert [hasattr(one, name) for name in ("__path__", "__spec__", "__file__", "__wrapped__", "_repr_html_")] == [
        True, True, False, False, False]
    assert copy.copy(one) is copy.deepcopy(one) is pickle.loads(pickle.dumps(one)) is one
    assert INSTEAD["meta_schedule"] in inspect.getdoc(one) and INSTEAD["meta_schedule"] in pydoc.render_doc(one)
    assert all(name.startswith("__") for name, _ in inspect.getmembers(one)) and not inspect.isroutine(one)


def test_the_traceback_of_a_call_shows_the_program_alone():
    from tedsl import micro

    with pytest.raises(AbsentModuleError) as caught:
        micro()
    assert "tedsl/absent.py" not in {str(entry.path)[-len("tedsl/absent.py"):] for entry in caught.traceback}


def test_one_cannot_be_run():
    with pytest.raises(ImportError, match=r"tedsl\.exec\.rpc_server is not part of tedsl"):
        runpy.run_module("tedsl.exec.rpc_server")


def test_names_in_hints_exist():
    assert tedsl.contrib.intrinsics and tedsl.contrib.sparse and tedsl.target.generic_func and tedsl.why_slow
    from tedsl.rpc import LocalSession

    from tedsl import actors, graph, tune
    from tedsl.contrib.cc import cross_compiler
    from tedsl.tir.analysis import calculate_workspace_bytes

    assert actors and graph.trace and graph.Spec and tune and cross_compiler and calculate_workspace_bytes and LocalSession


def test_relay_has_the_options_of_builds_and_refuses_the_rest():
    from tedsl import relay

    assert tedsl.relay is relay
    with tedsl.relay.build_config(opt_level=3, disabled_pass=["tir.UnrollLoop"]):
        assert tedsl.transform.PassContext.current().opt_level == 3
    for use in ("relay.nn", "from tedsl.relay import testing\ntesting.mlp()", "from tedsl.relay import var\nvar('x')",
                "import tedsl.relay.frontend.onnx as f\nf.from_onnx"):
        assert refused(use, relay=relay).hint == INSTEAD["relay"]


@pytest.mark.parametrize("home, name", [
    ("rpc", "request_remote"), ("rpc", "Server"), ("script", "relax"), ("autotvm.task", "extract_from_program"),
    ("tir", "Block"),
    ("autotvm.measure", "request_remote"), ("tir.transform", "LowerOpaqueBlock"), ("topi.x86", "dense_cblas"),
    ("auto_scheduler", "RPCRunner"), ("contrib.nvcc", "find_cuda_path")])
def test_names_of_modules_that_are_here(home, name):
    error = refused(f"from tedsl.{home} import {name}\n{name}('a')")
    assert error.problem == words_of(f"{home}.{name}") and error.hint


@pytest.mark.parametrize("home, name, near", [
    ("rpc", "LocalSesion", "LocalSession"), ("relay", "build_confg", "build_config"), ("script", "tirr", "tir"),
    ("te", "computee", "compute"), ("tedsl", "placeholder", "tedsl.te.placeholder"),
    ("tir.transform", "VectoriseLoop", "Vectorize")])
def test_a_name_that_is_misspelt_is_no_stand_in(home, name, near):
    home = f"tedsl.{home}".removesuffix(".tedsl")
    with pytest.raises(ImportError, match=rf"cannot import name '{name}' from '{home}'(.|\n)*hint: did you mean {near}"):
        exec(f"from {home} import {name}")
    with pytest.raises(OptionError, match=f"did you mean {near}"):
        getattr(importlib.import_module(home), name)


def test_other_names_stay_bare():
    with pytest.raises(ImportError, match="cannot import name 'nonsense'"):
        exec("from tedsl import nonsense")
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'tedsl\.contrib\.nonsense'"):
        importlib.import_module("tedsl.contrib.nonsense")
    assert importlib.util.find_spec("tedsl.contrib.nonsense") is None
