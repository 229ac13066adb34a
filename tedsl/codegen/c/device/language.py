"""The languages of devices in the C family: their dialects of C, and how they spell kernels, memory and threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from tedsl.codegen.c.dialect import Dialect
from tedsl.codegen.c.text.names import C_LIBRARY
from tedsl.codegen.c.text.spelling import Spelling
from tedsl.passes.facts.threads import BLOCK_TAGS, THREAD_TAGS
from tedsl.record import record
from tedsl.target.choices import chosen
from tedsl.target.target import Target


@record
class Language:
    """A language for kernels.

    kernel: before the header of a kernel, with the sizes x, y, z of its blocks, where they are constants (`any_block`: where
    they are not). array, shared_pointer: before the type of a pointer to memory of the device, and to memory that a block
    shares; shared: before an array of the latter; common: the declaration of bytes that several arrays have together. dynamic:
    the declaration of shared memory whose size the launch says, which is the last parameter, or (dynamic_is_parameter is false)
    the first line. places: the number of the thread in each axis. barrier: all threads of the block wait for each other.
    opening: what the file begins with, by a word in it. reserved: names that mean something in it.
    """

    kernel: str
    any_block: str
    array: str
    shared: str
    shared_pointer: str
    common: str
    dynamic: str
    places: Mapping[str, str]
    barrier: str
    dynamic_is_parameter: bool = True
    opening: tuple[tuple[str, str], ...] = ()
    reserved: frozenset[str] = field(default_factory=frozenset)


_OPENCL_TYPES = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "double", "half")
_OPENCL_WORDS = """kernel __kernel global __global local __local constant __constant private __private read_only write_only
read_write uniform pipe event_t sampler_t image1d_t image2d_t image3d_t size_t ptrdiff_t intptr_t uintptr_t barrier mem_fence
min max clamp mix step sign dot cross distance length normalize select any all shuffle shuffle2 vec_step prefetch mad mad24
mad_hi mad_sat mul24 mul_hi hadd rhadd add_sat sub_sat rotate upsample popcount clz ctz degrees radians smoothstep maxmag minmag
rootn pown powr rsqrt sinpi cospi tanpi asinpi acospi atanpi atan2pi fract printf isequal isnotequal isgreater isless isordered
isunordered signbit bitselect wait_group_events get_work_dim get_global_size get_global_id get_local_size get_local_id
get_num_groups get_group_id get_global_offset MAXFLOAT HUGE_VALF CHAR_BIT as_int as_uint as_long as_ulong as_float as_double"""
_TAGS = (*BLOCK_TAGS, *THREAD_TAGS)
OPENCL = Language(
    kernel="__kernel __attribute__((reqd_work_group_size({x}, {y}, {z})))\nvoid ", any_block="__kernel void ",
    array="__global ", shared="__local ", shared_pointer="__local ",
    common="__local uint8_t {name}[{size}] __attribute__((aligned(32)));", dynamic="__local uint8_t *{name}",
    barrier="barrier(CLK_LOCAL_MEM_FENCE)",
    places={tag: f"get_{'group' if tag in BLOCK_TAGS else 'local'}_id({'xyz'.index(tag[-1])})" for tag in _TAGS},
    opening=(("double", "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"),
             ("float|double", "#pragma OPENCL FP_CONTRACT OFF\n")),
    reserved=frozenset((*_OPENCL_WORDS.split(), *(f"{name}{n}" for name in _OPENCL_TYPES for n in ("", 2, 3, 4, 8, 16)))))
CUDA = Language(
    kernel='extern "C" __global__ __launch_bounds__({x} * {y} * {z})\nvoid ', any_block='extern "C" __global__ void ',
    array="", shared="__shared__ ", shared_pointer="", common="__shared__ __align__(32) uint8_t {name}[{size}];",
    dynamic="extern __shared__ __align__(16) uint8_t {name}[];",
    barrier="__syncthreads()", places={tag: tag for tag in _TAGS}, dynamic_is_parameter=False,
    reserved=frozenset(["blockIdx", "threadIdx", "blockDim", "gridDim", "warpSize", "dim3", "min", "max", "clamp", "rsqrt"]))

_SIZES = (8, 16, 32, 64)
_BITS = {"tedsl_bits_i32_from_f32": "int", "tedsl_bits_u32_from_f32": "uint", "tedsl_bits_i64_from_f64": "long",
         "tedsl_bits_u64_from_f64": "ulong", **{f"tedsl_bits_f32_from_{letter}32": "float" for letter in "iu"},
         **{f"tedsl_bits_f64_from_{letter}64": "double" for letter in "iu"}}
_OPENCL_SPELLING = Spelling({
    **{f"{letter}int{bits}_t": f"{letter}{name}" for letter in ("", "u")
       for bits, name in zip(_SIZES, ("char", "short", "int", "long"))},
    "INT32_MIN": "INT_MIN", "INT64_MIN": "LONG_MIN", "nearbyint": "rint", "nearbyintf": "rint",
    **{f"{name}f": name for name in C_LIBRARY if name != "nearbyint"},
    **{helper: f"as_{name}" for helper, name in _BITS.items()}, "memcpy": "tedsl_copy_bytes"})
_CUDA_SPELLING = Spelling({
    **{f"{letter}int{bits}_t": f"{'unsigned ' if letter else ''}{name}" for letter in ("", "u")
       for bits, name in zip(_SIZES, ("char", "short", "int", "long long"))}, "int8_t": "signed char",
    "INT32_MIN": "(-2147483647 - 1)", "INT64_MIN": "(-9223372036854775807LL - 1)", "NAN": "__int_as_float(0x7fffffff)",
    "INFINITY": "__int_as_float(0x7f800000)", "NULL": "0"}, "LL", "ULL", "static const")


def opencl_dialect(target: Target) -> Dialect:
    """Returns the dialect of OpenCL C 1.2 that the options of `target` choose; ArgumentError for a choice that there is not."""
    return Dialect(chosen(target, "vectors", ("opencl", "loops")), chosen(target, "math", ("own", "libm")), "serial",
                   target.has_fma, "static", "restrict", zeros="", declares=False, spelling=_OPENCL_SPELLING)


def cuda_dialect(target: Target) -> Dialect:
    """Returns the dialect of CUDA C that the options of `target` choose."""
    return Dialect("loops", "own", "serial", target.has_fma, "static __device__", "__restrict__", zeros="", declares=False,
                   spelling=_CUDA_SPELLING)
