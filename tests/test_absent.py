"""Modules of TVM that tedsl does not have: the message says so, and what to use."""

import importlib
import pathlib

import pytest

import tedsl
from tedsl.absent import INSTEAD
from tedsl.errors import AbsentModuleError, OptionError


@pytest.mark.parametrize("name", sorted(INSTEAD.keys() - {"relay"}))
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


def test_relay_has_the_options_of_builds_and_refuses_the_rest():
    from tedsl import relay

    assert tedsl.relay is relay
    with tedsl.relay.build_config(opt_level=3, disabled_pass=["tir.UnrollLoop"]):
        assert tedsl.transform.PassContext.current().opt_level == 3
    for asks in ("relay.nn", "exec('from tedsl.relay import testing')"):
        with pytest.raises(AbsentModuleError, match=r"tedsl\.relay is not part of tedsl(.|\n)*hint: a network is a graph"):
            eval(asks)


def test_each_has_a_file():
    folder = pathlib.Path(tedsl.__file__).parent / "absent"
    assert {file.stem for file in folder.glob("*.py")} - {"__init__"} == set(INSTEAD)


def test_other_names_stay_bare():
    with pytest.raises(ImportError, match="cannot import name 'nonsense'"):
        exec("from tedsl import nonsense")
