"""Modules of TVM that tedsl does not have: the message says so, and what to use."""

import importlib
import re

import pytest

import tedsl
from tedsl.absent import INSTEAD
from tedsl.errors import AbsentModuleError, OptionError

HERE = {"relay", "rpc", "script"}  # in part
AT_ROOT = sorted(name for name in INSTEAD if "." not in name and name not in HERE)


@pytest.mark.parametrize("name", AT_ROOT)
def test_importing_it_says_what_to_use(name):
    words = f"tedsl.{name} is not part of tedsl, which has TVM's te, tir and topi\n  hint: "
    with pytest.raises(AbsentModuleError) as refused:
        exec(f"from tedsl import {name}")
    assert str(refused.value) == words + INSTEAD[name]
    with pytest.raises(ImportError):
        importlib.import_module(f"tedsl.{name}")
    with pytest.raises(OptionError, match="not part of tedsl"):
        getattr(tedsl, name)
    assert not hasattr(tedsl, name)


@pytest.mark.parametrize("name", sorted(INSTEAD.keys() - set(AT_ROOT) - HERE))
def test_importing_it_from_a_package_says_what_to_use(name):
    package, _, module = name.rpartition(".")
    for asks in (f"import tedsl.{name}", f"import tedsl.{name}.inside", f"from tedsl.{name} import inside",
                 f"from tedsl.{package} import {module}"):
        with pytest.raises(ModuleNotFoundError) as refused:
            exec(asks)
        assert isinstance(refused.value, AbsentModuleError) and refused.value.hint == INSTEAD[name], asks


def test_asking_a_package_for_it_says_what_to_use():
    for asks in ("tedsl.contrib.cudnn", "tedsl.tir.usmp"):
        with pytest.raises(OptionError, match=f"{re.escape(asks)} is not part of tedsl"):
            eval(asks)
    assert not hasattr(tedsl.contrib, "cudnn")


def test_names_in_hints_exist():
    assert tedsl.contrib.intrinsics and tedsl.contrib.sparse and tedsl.target.generic_func and tedsl.why_slow
    from tedsl import actors, graph, tune
    from tedsl.contrib.cc import cross_compiler
    from tedsl.tir.analysis import calculate_workspace_bytes

    assert actors and graph.trace and graph.Spec and tune and cross_compiler and calculate_workspace_bytes


def test_relay_has_the_options_of_builds_and_refuses_the_rest():
    from tedsl import relay

    assert tedsl.relay is relay
    with tedsl.relay.build_config(opt_level=3, disabled_pass=["tir.UnrollLoop"]):
        assert tedsl.transform.PassContext.current().opt_level == 3
    for asks in ("relay.nn", "exec('from tedsl.relay import testing')", "exec('import tedsl.relay.frontend.onnx')"):
        with pytest.raises(AbsentModuleError, match=r"tedsl\.relay.* is not part of tedsl(.|\n)*hint: a network is a graph"):
            eval(asks)


def test_other_names_stay_bare():
    with pytest.raises(ImportError, match="cannot import name 'nonsense'"):
        exec("from tedsl import nonsense")
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'tedsl\.contrib\.nonsense'"):
        importlib.import_module("tedsl.contrib.nonsense")
