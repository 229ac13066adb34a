"""Targets: the notation, what a machine can do, the current target."""

import pytest

import tedsl
from tedsl.errors import ArgumentError, ArgumentTypeError, TedslError
from tedsl.ir.dtype import dtype
from tedsl.runtime.devices.device import device
from tedsl.target import Target, as_target, create, cuda, host_target, rocm
from tedsl.target.features import X86_CPUS, apply_changes
from tests.one_stage import added, doubled, runs
from tests.refusing import refused

F32, F64, I8, I16, BOOL = map(dtype, ("float32", "float64", "int8", "int16", "bool"))


def test_plain_llvm_is_this_machine():
    t = Target("llvm")
    assert t.is_host and t.runs_here and t == host_target()
    assert t.kind.name == "llvm" and str(t.kind) == "llvm" and t.keys == ("cpu",)


@pytest.mark.parametrize("notation, words", [
    ("llvm -mcpu=", "the option mcpu of a target is '', which is empty"),
    ("llvm -mattr=,,,", "the option mattr of a target is ',,,', which has an empty name"),
    ("llvm -mattr=+avx2,", "write -mattr=+avx2,+fma"),
    ({"kind": "llvm", "mtriple": ""}, "the option mtriple of a target is '', which is empty"),
    ({"kind": "llvm", "mattr": ["+avx2", ""]}, "the option mattr of a target has an empty name: ['+avx2', '']")])
def test_an_option_has_a_value(notation, words):
    refused(lambda: Target(notation), words, error=ArgumentError)


def test_options_are_read_from_text_and_from_a_dict():
    text = Target("llvm -mcpu=haswell -mattr=+avx512f,-fma")
    data = Target({"kind": "llvm", "mcpu": "haswell", "mattr": ["+avx512f", "-fma"]})
    assert text == data and hash(text) == hash(data)
    assert text.mcpu == "haswell" and text.mattr == ("+avx512f", "-fma")
    assert str(text) == "llvm -keys=cpu -mattr=+avx512f,-fma -mcpu=haswell"
    assert Target(str(text)) == text and Target(text.export()) == text and Target(text) == text


@pytest.mark.parametrize("name, bits, fma, arch", [
    ("llvm -mcpu=x86-64", 128, False, "x86-64"), ("llvm -mcpu=sandybridge", 256, False, "x86-64"),
    ("llvm -mcpu=haswell", 256, True, "x86-64"), ("llvm -mcpu=sapphirerapids", 512, True, "x86-64"),
    ("llvm -mtriple=aarch64-linux-gnu", 128, True, "aarch64"), ("llvm -mtriple=x86_64-pc-linux-gnu", 128, False, "x86-64"),
    ("llvm -mtriple=riscv64-linux-gnu", 128, True, "riscv64"),
    ("llvm -mtriple=riscv64-linux-gnu -mattr=-d", 128, False, "riscv64"),
    ("llvm -mtriple=riscv64-linux-gnu -mcpu=spacemit-x60", 256, True, "riscv64"),
    ("llvm -mtriple=riscv64-linux-gnu -mattr=+v", 128, True, "riscv64"),
    ("llvm -mtriple=riscv64-linux-gnu -mattr=+v,+zvl512b", 512, True, "riscv64"),
    ("llvm -mtriple=armv7a-linux-gnueabihf", 128, False, "arm"),
    ("llvm -mtriple=aarch64-linux-gnu -mattr=+sve", 128, True, "aarch64"),
    ("llvm -mtriple=aarch64-linux-gnu -mattr=+sve -vector-width=512", 512, True, "aarch64"),
    ("llvm -mcpu=skylake-avx512 -vector-width=256", 256, True, "x86-64"),
    ("llvm -mtriple=arm-linux-gnueabihf -mcpu=cortex-a15", 128, True, "arm"),
])
def test_vector_width_and_fma(name, bits, fma, arch):
    t = Target(name)
    assert (t.vector_bits, t.has_fma, t.arch) == (bits, fma, arch)
    assert t.vector_lanes(F32) == bits // 32 and t.vector_lanes(BOOL) == bits // 8


@pytest.mark.parametrize("name, masked", [
    ("llvm -mcpu=x86-64", set()), ("llvm -mtriple=aarch64-linux-gnu", set()), ("llvm -mcpu=haswell", {F32, F64}),
    ("llvm -mcpu=knl", {F32, F64}), ("llvm -mcpu=skylake-avx512", {F32, F64, I8, I16, BOOL}),
    ("llvm -mtriple=riscv64-linux-gnu", set()), ("llvm -mtriple=riscv64-linux-gnu -mattr=+v", {F32, F64, I8, I16, BOOL}),
])
def test_the_table_of_masks(name, masked):
    assert {d for d in (F32, F64, I8, I16, BOOL) if Target(name).can_mask(d)} == masked


def test_switching_a_feature_off_takes_what_stands_on_it():
    assert "avx512bw" not in apply_changes(X86_CPUS["skylake-avx512"], ("-avx512f",))
    assert {"avx", "sse4.2"} <= apply_changes(("sse2",), ("+avx2",))


@pytest.mark.parametrize("wrong, words", [
    ("lvm", "no target kind 'lvm'.*llvm"), ("llvm -mcpv=haswell", "no option 'mcpv'.*mcpu"),
    ("llvm -mcpu=hasswell", "no processor 'hasswell'.*haswell"), ("llvm -mattr=avx2", r"no sign(.|\n)*\+avx2"),
    ("llvm -mcpu=haswell -vector-width=512", "-vector-width=512: vectors of x86-64.*64 or 128 or 256 bits"),
    ("llvm -mtriple=aarch64-linux-gnu -mattr=+sve -vector-width=96", "-vector-width=96.*1024 or 2048 bits"),
    ("llvm -vector-width=many", "vector-width of a target is a whole number"),
    ("llvm -mtriple=riscv64-linux-gnu -mattr=+avx2", "riscv64 has no feature 'avx2'.*m, a, f, d, c, v"),
    ("llvm -mtriple=aarch64-linux-gnu -mattr=+sve22", "aarch64 has no feature 'sve22'.*did you mean sve2"),
    ("llvm -mtriple=riscv64-linux-gnu -mcpu=haswell", "no processor 'haswell' for riscv64.*spacemit-x60"),
    ("llvm -model=\ud800", r"model of a target is '\\ud800', which has a lone surrogate"),
    ({"kind": "llvm", "libs": ["mkl", "\udfff"]}, "libs of a target is .* lone surrogate"),
    ('{"kind": "llvm", "model": "\\ud800"}', "lone surrogate"), ("llvm -mattr=\ud800", "lone surrogate"),
    ("llvm -num-cores=abc", "num-cores of a target is a whole number from 1 on, not 'abc'"),
    ("llvm -num-cores=--5", "whole number from 1 on, not '--5'"), ("llvm -num-cores=0", "whole number from 1 on, not 0"),
    ("llvm -num-cores=²", "whole number from 1 on"), ("cuda -max_num_threads=many", "max_num_threads of a target is a whole"),
    ("llvm mcpu=x", "not an option"), ("", "no target kind ''"), (7, "a target is a str"),
    ({"kindd": "llvm"}, 'a dict of a target has no "kind"'),
])
def test_mistakes_name_the_choices(wrong, words):
    with pytest.raises(ArgumentError, match=f"(?s){words}"):
        Target(wrong)
    with pytest.raises(ValueError):
        Target(wrong)


def test_current_target_nests():
    assert Target.current() is None
    with pytest.raises(ArgumentError, match="no current target"):
        Target.current(allow_none=False)
    with Target("llvm -mcpu=haswell") as outer:
        assert as_target() is outer
        with Target("llvm"):
            assert as_target().is_host
        assert Target.current() is outer
    assert as_target() == host_target()


def test_cuda_by_the_name_of_its_function():
    assert cuda() == Target("cuda")
    assert cuda("v100", options="-max_num_threads=512") == Target("cuda -model=v100 -max_num_threads=512")
    assert cuda(arch="sm_80", options=["-libs=cublas"]) == Target("cuda -arch=sm_80 -libs=cublas")
    with cuda() as current:
        assert Target.current() is current


def test_a_host_rides_along():
    t = Target("cuda", host="llvm -mcpu=haswell")
    assert t.host.mcpu == "haswell" and t.keys == ("cuda", "gpu") and not t.runs_here


def test_another_architecture_does_not_run_here():
    other = "aarch64" if host_target().arch == "x86-64" else "x86_64"
    t = Target(f"llvm -mtriple={other}-unknown-linux-gnu")
    assert not t.runs_here


@pytest.mark.parametrize("kind, keys, threads, warp", [
    ("cuda", "cuda,gpu", 1024, 32), ("nvptx", "cuda,gpu", 1024, 32), ("rocm", "rocm,gpu", 256, 64),
    ("opencl", "opencl,gpu", 256, 1), ("vulkan", "vulkan,gpu", 256, 1), ("metal", "metal,gpu", 256, 16)])
def test_devices(kind, keys, threads, warp):
    made = Target(kind)
    assert ",".join(made.keys) == keys and (made.max_num_threads, made.thread_warp_size) == (threads, warp)
    assert not made.runs_here and kind in Target.list_kinds()
    said = Target(f"{kind} -max_num_threads=64 -thread_warp_size=8")
    assert (said.max_num_threads, said.thread_warp_size) == (64, 8)
    assert device(kind).kind == {"nvptx": "cuda"}.get(kind, kind)


def test_what_has_no_threads_of_a_block_says_so():
    for kind in ("llvm", "hexagon"):
        with pytest.raises(AttributeError, match=f"target {kind}.* has no max_num_threads"):
            assert Target(kind).max_num_threads


def test_functions_that_make_targets():
    assert create("llvm -mcpu=haswell") == Target("llvm -mcpu=haswell") and create(create("cuda")) == Target("cuda")
    assert str(rocm("mi100", "-mcpu=gfx908")) == "rocm -keys=rocm,gpu -mcpu=gfx908 -model=mi100" and rocm() == Target("rocm")


@pytest.mark.parametrize("text, words", [
    ('llvm -mcpu="haswell', "has a quote that is not closed"),
    ("llvm 'a", "has a quote that is not closed"),
    ('{"kind": "llvm"', "begins like JSON but is not valid JSON"),
])
def test_a_notation_that_does_not_end(text, words):
    with pytest.raises(ArgumentError, match=words):
        Target(text)


@pytest.mark.parametrize("option", ["mattr", "keys", "libs"])
@pytest.mark.parametrize("value", [0, [1], {1: 2}, range(3), None])
def test_lists_of_names_hold_names(option, value):
    with pytest.raises(ArgumentTypeError, match=rf"the option {option} of a target is a list of names, not "):
        Target({"kind": "llvm", option: value})


@pytest.mark.parametrize("target", ["llvm -mtriple=x86_64-pc-windows-msvc", "llvm -mtriple=arm64-apple-darwin"])
def test_code_for_another_system_is_shown_and_does_not_run(target):
    s, a, c = doubled()
    module = tedsl.build(s, [a, c], target=target)
    assert "define" in module.get_source() and module.get_source("asm")
    with pytest.raises(TedslError, match=r"lacks (x86-64 windows|aarch64 darwin): it is"):
        runs(module)


def test_an_unknown_machine_is_refused():
    s, a, c = doubled()
    with pytest.raises(ArgumentError, match=r"cannot generate code for the triple 'nonsense'(.|\n)*-mtriple="):
        tedsl.build(s, [a, c], target="llvm -mtriple=nonsense")


def test_a_feature_that_llvm_does_not_know_is_refused_with_what_is_near():
    with pytest.raises(tedsl.TedslError, match=r"x86-64 has no feature 'avx512vnn'\n  hint: did you mean avx512vnni"):
        tedsl.target.Target("llvm -mtriple=x86_64-linux-gnu -mattr=+avx512vnn")


def test_an_option_without_its_value_is_named():
    with pytest.raises(tedsl.TedslError, match="'-mcpu' in target 'llvm -mcpu' has no value"):
        tedsl.target.Target("llvm -mcpu")


def test_a_wrong_target_host_is_refused():
    with pytest.raises(tedsl.TedslError, match="no target kind 'banana'"):
        tedsl.build(*added(), "llvm", target_host="banana")


@pytest.mark.parametrize("tag, notation", [
    ("nvidia/geforce-rtx-3070", "cuda -arch=sm_86"), ("nvidia/nvidia-t4", "cuda -arch=sm_75"),
    ("nvidia/nvidia-h100", "cuda -arch=sm_90a"),
    ("raspberry-pi/4b-aarch64", "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72 -mattr=+neon -num-cores=4"),
    ("aws/cpu/c5.9xlarge", "llvm -mcpu=skylake-avx512 -num-cores=18")])
def test_machines_by_their_names(tag, notation):
    wanted = Target(notation)
    assert Target(tag).kind is wanted.kind and {**Target(tag).attrs, **wanted.attrs} == Target(tag).attrs
    assert tedsl.target.list_tags()[tag] == Target(tag)


def test_a_triple_that_is_an_architecture_alone_is_this_machine():
    here = Target("llvm").architecture
    s, a, c = doubled()
    assert runs(tedsl.build(s, [a, c], f"llvm -mtriple={here.replace('x86-64', 'x86_64')}"))
    other = Target("llvm -mtriple=" + ("aarch64" if here == "x86-64" else "x86_64"))
    assert not other.runs_here and "-" not in other.triple


def test_features_of_other_processors_are_left_out_without_a_triple():
    here = {"x86-64": "avx2", "aarch64": "neon"}.get(Target("llvm").architecture)
    foreign = "neon" if here == "avx2" else "avx2"
    with pytest.warns(UserWarning, match=rf"has no feature '{foreign}', left out(.|\n)*-mtriple=aarch64"):
        made = Target(f"llvm -device=arm_cpu -mattr=+{foreign}")
    assert made == Target("llvm -device=arm_cpu") and made.is_host
    with pytest.raises(ArgumentError, match=f"has no feature '{foreign}'"):
        Target(f"llvm -mtriple={'x86_64' if here == 'avx2' else 'aarch64'}-linux-gnu -mattr=+{foreign}")


def test_a_composite_target_is_several():
    with pytest.raises(ArgumentError, match=r"a composite one names several(.|\n)*host="):
        Target({"kind": "composite", "devices": ["llvm", "cuda"]})


@pytest.mark.parametrize("target, fast", [
    ("llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids", True), ("llvm -mtriple=x86_64-linux-gnu -mcpu=znver5", True),
    ("llvm -mtriple=x86_64-linux-gnu -mcpu=znver3", False), ("llvm -mtriple=aarch64-linux-gnu -mattr=+neon,+dotprod", True),
    ("llvm -mtriple=aarch64-linux-gnu -mattr=+neon", False), ("c", False), ("cuda", False)])
def test_whether_products_of_bytes_are_faster(target, fast):
    assert Target(target).has_byte_products == fast
