"""Functions whose implementation the target chooses, tags of targets, and targets by the names of boards."""

import pytest

from tedsl import target
from tedsl.errors import ArgumentError, ArgumentTypeError


def test_the_target_chooses():
    @target.generic_func
    def layout(data, wide=False):
        """The layout of `data`."""
        return "plain", data, wide

    @layout.register(["cuda", "gpu"])
    def layout_gpu(data, wide=False):
        return "gpu", data, wide

    layout.register(lambda data: ("cpu", data), "cpu")
    assert layout(1) == ("plain", 1, False) and layout.__doc__ == "The layout of `data`." and layout.name == "layout"
    with target.Target("llvm"):
        assert layout(1) == ("cpu", 1)
    with target.Target("cuda"):
        assert layout(2, wide=True) == ("gpu", 2, True) and layout.get_packed_func() is layout_gpu
    with target.Target("hexagon"):
        assert layout(3) == ("plain", 3, False)
    with pytest.raises(ArgumentError, match=r"for 'cuda' already\n.*allow_override"):
        layout.register(layout_gpu, ["cuda"])
    with pytest.raises(ArgumentError, match="has a default already"):
        layout.set_default(layout_gpu)
    with pytest.raises(ArgumentTypeError, match="keys of targets are strings"):
        layout.register(layout_gpu, [3])


def test_functions_by_name():
    @target.override_native_generic_func("test_of_generic")
    def first(x):
        return x + 1

    assert target.get_native_generic_func("test_of_generic") is first and first(1) == 2
    empty = target.get_native_generic_func("test_of_generic_without")
    with pytest.raises(ArgumentError, match="has no implementation for llvm"):
        empty(1)
    with pytest.raises(ArgumentTypeError, match="an implementation is a function"):
        target.generic_func(3)


def test_tags():
    config = {"kind": "llvm", "mcpu": "haswell"}
    assert target.register_tag("test/board", config) == target.Target("test/board") == target.Target("llvm -mcpu=haswell")
    assert target.list_tags()["test/board"].mcpu == "haswell" and target.register_tag("test/board", config)
    with pytest.raises(ArgumentError, match="stands for another target"):
        target.register_tag("test/board", {"kind": "llvm"})
    assert target.register_tag("test/board", {"kind": "c"}, override=True).kind.name == "c"
    with pytest.raises(ArgumentError, match="another target"):
        target.register_tag("llvm", config, override=True)
    for name, given in (("a b", config), ("test/other", "llvm")):
        with pytest.raises(ArgumentTypeError, match="register_tag"):
            target.register_tag(name, given)


@pytest.mark.parametrize("name, words", [
    ("nvidia/geforce-rtx-3091", r"no tag 'nvidia/geforce-rtx-3091'(.|\n)*did you mean .*nvidia/geforce-rtx-3090"),
    ("aws/cpu/c5.xlarge -mattr=+avx2", r"no options beside it(.|\n)*\"llvm -keys=cpu -mcpu=skylake-avx512 -num-cores=2\""),
    ("xyz/0", "there is no target kind 'xyz/0'")])
def test_what_is_no_tag(name, words):
    with pytest.raises(ArgumentError, match=words):
        target.Target(name)


def test_every_tag_of_tvm_is_a_target():
    known = target.list_tags()
    card = known["nvidia/geforce-rtx-3090"]
    assert card.arch == card.cpu == "sm_86" and card.attrs["max_threads_per_block"] == 1024 and card.architecture == "nvptx64"
    assert known["raspberry-pi/4b-aarch64"].arch == "aarch64" and known["aws/cpu/c5.9xlarge"].attrs["num-cores"] == 18
    assert target.Target("nvidia/nvidia-a100", host="llvm").host.kind.name == "llvm"


def test_boards():
    assert target.arm_cpu("rasp4b64").mcpu == "cortex-a72" and target.arm_cpu("rk3399").arch == "aarch64"
    assert target.rasp() == target.arm_cpu("rasp3b") and target.rasp().arch == "arm" and target.rasp().device_name == "arm_cpu"
    assert target.riscv_cpu().mcpu == "sifive-u54" and target.riscv_cpu("sifive-e31").arch == "riscv32"
    assert target.arm_cpu("mine", "-mtriple=aarch64-linux-gnu").mtriple == "aarch64-linux-gnu"
    assert target.mali().keys[:2] == ("mali", "opencl") and target.bifrost(options=["-model=g71"]).model == "g71"
    assert target.intel_graphics().thread_warp_size == 16


def test_old_and_later_spellings():
    assert target.Target("llvm -target=aarch64-linux-gnu").mtriple == "aarch64-linux-gnu"
    cuda = target.Target("cuda").with_host("llvm")
    assert str(cuda.host) == "llvm -keys=cpu"
    assert target.Target.check_and_update_host_consist("cuda", "llvm") == (cuda, cuda.host)
    assert target.Target.check_and_update_host_consist(None) == (None, None)
    both, host = target.Target.check_and_update_host_consist({"llvm": 1, "cuda": 2}, "llvm")
    assert list(both) == [target.Target("llvm", "llvm"), cuda] and host == cuda.host
    assert target.codegen.llvm_version_major() >= 15


def test_what_a_generic_function_has():
    @target.generic_func
    def layout(data):
        return data

    layout.register(lambda data: ("cpu", data), "cpu")
    assert layout.fdefault(3) == 3 and layout.dispatch_dict["cpu"](3) == ("cpu", 3) and layout(3) == 3


def test_numbers_of_intrinsics():
    number = target.codegen.llvm_lookup_intrinsic_id("llvm.fshl.i32")
    assert number > 0 and target.codegen.llvm_lookup_intrinsic_id("llvm.fshl.i32") == number
    assert target.codegen.llvm_get_intrinsic_name(number) == "llvm.fshl.i32"
    assert not any(map(target.codegen.llvm_lookup_intrinsic_id, ("fshl", "llvm", "llvm.a b", "")))
    with pytest.raises(ArgumentError, match="no intrinsic of LLVM has the number 100000"):
        target.codegen.llvm_get_intrinsic_name(100000)
    with pytest.raises(ArgumentTypeError, match="is a str"):
        target.codegen.llvm_lookup_intrinsic_id(3)
