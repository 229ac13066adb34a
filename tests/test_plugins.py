"""Target kinds, intrinsics and devices of others: registered, or declared by installed packages as entry points."""

from importlib import metadata

import numpy as np
import pytest

import tedsl
from tedsl import te, topi
from tedsl.contrib import intrinsics
from tedsl.errors import ArgumentError, ArgumentTypeError, TedslError
from tedsl.runtime.devices.table import register_device
from tedsl.simulate.driver import SimDriver
from tedsl.target import Target, TargetKind, register_kind


class Listing:
    """A backend of another package: its module is the loops as text."""

    def compile(self, funcs, target, config, *, quick=False):
        return f"{target.kind}: {', '.join(func.name for func in funcs)}"


def no_intrinsic():
    """Stands for a function of another package that makes an intrinsic."""


HOME = __name__
LISTING = TargetKind("listing", keys=("cpu",), options=("width",), backend=f"{HOME}:Listing")
BROKEN = TargetKind("broken", keys=("cpu",), backend="no_such_package.backend:Backend")
DRIVER = SimDriver()  # stands for that of another package
ENTRIES = metadata.EntryPoints([
    metadata.EntryPoint("listing", f"{HOME}:LISTING", "tedsl.targets"),
    metadata.EntryPoint("missing", "no_such_package:KIND", "tedsl.targets"),
    metadata.EntryPoint("junk", f"{HOME}:HOME", "tedsl.targets"),
    metadata.EntryPoint("their", f"{HOME}:DRIVER", "tedsl.devices"),
    metadata.EntryPoint("mine", f"{HOME}:no_intrinsic", "tedsl.intrinsics"),
    metadata.EntryPoint("twice", f"{HOME}:no_intrinsic", "tedsl.intrinsics"),
    metadata.EntryPoint("twice", f"{HOME}:Listing", "tedsl.intrinsics"),
])


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    """Nothing that a test adds outlives it."""
    monkeypatch.setattr("tedsl.target.kinds._ADDED", {})
    monkeypatch.setattr("tedsl.contrib.intrinsics.table._ADDED", {})
    monkeypatch.setattr("tedsl.runtime.devices.table._ADDED", {})


@pytest.fixture
def installed(monkeypatch):
    """As if packages with ENTRIES were installed."""
    monkeypatch.setattr(metadata, "entry_points", lambda group: ENTRIES.select(group=group))


def program():
    A = te.placeholder((64,), name="A")
    return A, te.compute((64,), lambda i: A[i] + 1.0, name="B")


def build_for(target):
    A, B = program()
    return tedsl.build(te.create_schedule(B.op), [A, B], target=target, name="add_one")


def test_a_registered_kind_builds_with_its_backend():
    register_kind(LISTING)
    assert build_for("listing -width=4") == "listing: add_one"
    assert "listing" in Target.list_kinds()


def test_an_installed_package_declares_a_kind(installed):
    assert build_for("listing") == "listing: add_one"


def test_a_kind_with_the_key_cpu_gets_the_schedules_of_processors(installed):
    _, B = program()
    with Target("listing"):
        assert topi.x86.schedule_injective([B])[B].leaf_iter_vars


@pytest.mark.parametrize("name, words", [
    ("missing", "'missing' of tedsl.targets cannot be loaded from no_such_package:KIND"),
    ("junk", "a target kind is a tedsl.target.TargetKind, not "),
])
def test_a_broken_declaration_is_named(name, words, installed):
    with pytest.raises(TedslError, match=words):
        Target(name)


def test_a_backend_that_cannot_be_imported_is_named():
    register_kind(BROKEN)
    with pytest.raises(TedslError, match=r"backend no_such_package.backend:Backend of the target kind 'broken'"):
        build_for("broken")


@pytest.mark.parametrize("kind, words", [
    (TargetKind("llvm", keys=("cpu",)), "there is a target kind 'llvm' already"),
    (TargetKind("my chip", keys=("cpu",)), "is an identifier, not 'my chip'"),
    (TargetKind("chip", keys=()), "keys are a tuple with at least one name"),
    (TargetKind("chip", keys=("cpu",), backend="chip.codegen"), "not \"module:class\""),
    ("chip", "is a tedsl.target.TargetKind, not 'chip'"),
])
def test_a_wrong_kind_is_refused(kind, words):
    with pytest.raises(TedslError, match=words):
        register_kind(kind)


def test_an_unknown_kind_names_those_that_build():
    with pytest.raises(ArgumentError, match=r"no target kind 'gpu'\n.*made for llvm, c, cuda, nvptx, rocm, opencl, spirv; "
                                            "schedules"):
        Target("gpu")


def test_intrinsics_are_found_by_name(installed):
    assert intrinsics.get("gemm_f32") is intrinsics.gemm_f32
    assert intrinsics.get("mine") is no_intrinsic
    intrinsics.register("added", no_intrinsic)
    assert intrinsics.get("added") is no_intrinsic
    assert intrinsics.names() == ["dot_bf16", "dot_i8i8i32", "dot_u8i8i32", "gemm_f32", "mma", "mma_load_a", "mma_load_b",
                                    "mma_store", "wmma_load_a", "wmma_load_b", "wmma_mma",
                                    "wmma_store", "added", "mine", "twice"]


def test_wrong_intrinsics_are_refused(installed):
    with pytest.raises(ArgumentError, match="no tensor intrinsic 'dot'"):
        intrinsics.get("dot")
    with pytest.raises(ArgumentError, match="'twice' is declared by several packages"):
        intrinsics.get("twice")
    with pytest.raises(ArgumentError, match="'gemm_f32' already"):
        intrinsics.register("gemm_f32", no_intrinsic)
    with pytest.raises(ArgumentTypeError, match="not 3"):
        intrinsics.register("three", 3)


@pytest.mark.parametrize("declared", [False, True])
def test_devices_of_other_packages(declared, request):
    """By a call, or by an entry point."""
    if declared:
        request.getfixturevalue("installed")
    else:
        register_device("their", DRIVER)
    place = tedsl.device("their", 1)
    assert place.exist and str(place) == "their(1)"
    array = tedsl.nd.array(np.arange(6.0).reshape(2, 3), place)
    assert array.device == place
    np.testing.assert_array_equal(array.copyto(tedsl.cpu(0)).numpy(), np.arange(6.0).reshape(2, 3))


def test_wrong_drivers_are_refused():
    with pytest.raises(ArgumentTypeError, match="not a driver: it lacks"):
        register_device("their", object())
    with pytest.raises(ArgumentTypeError, match="is an identifier, not 'a b'"):
        register_device("a b", DRIVER)
    for kind in ("cuda", "their"):
        register_device("their", DRIVER)
        with pytest.raises(ArgumentError, match="have a driver already"):
            register_device(kind, SimDriver())
