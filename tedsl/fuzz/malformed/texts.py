"""Scripts with texts that are nearly right: notations of targets, names, and LLVM's intrinsics."""

from __future__ import annotations

from tedsl.fuzz.draw import Draw
from tedsl.fuzz.malformed.nodes import wrong

_PIECES = ("llvm", "cuda", "c", "gpu", "", " ", "-", "--", "-mcpu=haswell", "-mcpu=", "-mcpu", "-mcpu=skylake-avx512",
           "-mattr=+avx2", "-mattr=+avx2,-fma", "-mattr=", "-mattr=,,", "-mattr=+nothing", "-keys=cpu", "-keys=",
           "-device=arm_cpu", "-libs=mkl", "-mtriple=aarch64-linux-gnu", "-mtriple=x", "-model=a b", "-num-cores=four",
           "-num-cores=-1", "-link-params=2", "'", '"', "\\", "\0", "\ud800", "é", "\n", "=", "{", '{"kind": "llvm"}',
           '{"kind": 3}', "-opt-level=9", "-system-lib", "%s", "-host=llvm")
_OPTIONS = ("'kind'", "'mcpu'", "'mattr'", "'keys'", "'host'", "'device'", "'mtriple'", "'libs'", "'model'", "'tag'", "3",
            "None")
_CHARACTERS = ("a", "B", "_", "1", ".", " ", "", "\0", "\ud800", "\udfff", "é", "名", "\n", "\t", '"', "'", "\\", "%", "@",
               "{", "}", "$", ";", "\x7f", "\u202e", "llvm.", "return", "None", "main", "x" * 300)
_NAMED = ("te.placeholder((4,), name={0})", "te.compute((4,), lambda i: i, name={0})", "te.var({0})", "te.size_var({0})",
          "te.reduce_axis((0, 4), {0})", "te.thread_axis((0, 4), {0})", "te.thread_axis({0})",
          "tir.decl_buffer((4,), name={0})", "tir.call_extern('int32', {0}, 1)", "tir.call_pure_extern('float32', {0}, 1.0)",
          "te.comm_reducer({0}, {0}, {0})", "te.placeholder((4,), {0})", "tir.decl_buffer((4,), scope={0})",
          "te.compute((4,), lambda i: i, tag={0})", "te.compute((4,), lambda i: i, attrs={{str({0}): 1}})",
          "tir.IterVar((0, 4), {0}, 0)", "te.var('v', {0})", "tedsl.tir.transform.PassContext(config={{str({0}): 1}})",
          "tedsl.tir.StringImm({0})", "tedsl.register_func({0}, abs)")
_STAGED = ("s[B].pragma(s[B].op.axis[0], {0})", "s[B].set_scope({0})", "s.cache_read(P, {0}, [B])", "s.cache_write(B, {0})",
           "s[B].bind(s[B].op.axis[0], te.thread_axis({0}))", "tedsl.lower(s, [P, B], name={0})",
           "tedsl.build(s, [P, B], name={0})", "s[B].split(s[B].op.axis[0], {0})",
           "s[B].split(s[B].op.axis[0], factor=4, tail={0})", "tedsl.build(s, [P, B], {0})", "tedsl.build(s, [P, B])[{0}]",
           "s[B].split(s[B].op.axis[0], factor=4, tail='shift_inwards', lines_of={0})",
           "tedsl.build(s, [P, B]).get_source({0})", "tedsl.build(s, [P, B]).get_function({0})")

# Some that change the machine, read its clock, or trap; some that do not exist; and those that are plain arithmetic.
_INTRINSICS = ("llvm.x86.wbinvd", "llvm.x86.rdtsc", "llvm.x86.int", "llvm.trap", "llvm.debugtrap", "llvm.ubsantrap",
               "llvm.stacksave.p0", "llvm.stackrestore.p0", "llvm.returnaddress", "llvm.frameaddress.p0",
               "llvm.eh.sjlj.longjmp", "llvm.x86.sse2.pause", "llvm.x86.sse2.clflush", "llvm.x86.rdpmc", "llvm.x86.xend",
               "llvm.x86.xbegin", "llvm.va_start", "llvm.gcroot", "llvm.coro.end", "llvm.assume", "llvm.sqrt.f32",
               "llvm.sqrt.f99", "llvm.sqrt", "llvm.fabs.f32", "llvm.fma.f32", "llvm.ctpop.i32", "llvm.ctlz.i32",
               "llvm.bswap.i32", "llvm.bitreverse.i32", "llvm.nothing", "llvm.nonesuch", "llvm.", "llvm", "sqrt", "",
               "llvm.memcpy.p0.p0.i64", "llvm.memset.p0.i64", "llvm.prefetch.p0", "llvm.readcyclecounter",
               "llvm.x86.avx512.vpdpbusd.512", "llvm.x86.avx2.pmadd.wd", "llvm.aarch64.neon.sdot.v4i32.v16i8",
               "llvm.powi.f32.i32", "llvm.x86.wrmsr", "llvm.x86.lgdt", "llvm.ceil.f64", "llvm.copysign.f32",
               "llvm.sadd.with.overflow.i32", "llvm.x86.rdrand.32", "llvm.x86.fxsave", "llvm.x86.monitor", "llvm.x86.clui",
               "llvm.vscale.i32", "llvm.expect.i1", "llvm.umax.i32", "llvm.x86.tpause", "llvm.x86.ldtilecfg",
               "llvm.experimental.deoptimize", "llvm.localescape")
_RESULTS = ("'float32'", "'int32'", "'float64'", "'int64'", "'bool'", "'void'", "'handle'", "'int32x16'", "'float32x4'",
            "''")
_OPERANDS = ("1.0", "1", "P[i, 0]", "te.const(1, 'int64')", "te.const(1, 'bool')", "te.const(0, 'uint8')", "i", "'text'",
             "te.const(2, 'float64')", "tir.Broadcast(P[i, 0], 4)")


def target_script(draw: Draw) -> str:
    """A notation of a target: pieces of options in any order, or a dict."""
    if draw.chance(25):
        items = [f"{draw.choice(_OPTIONS)}: {draw.choice(('llvm', 'haswell', '+avx2', 'x')) !r}" if draw.chance(40)
                 else f"{draw.choice(_OPTIONS)}: {wrong(draw)}" for _ in range(draw.between(0, 3))]
        notation = "{'kind': 'llvm', " + ", ".join(items) + "}" if draw.chance(60) else "{" + ", ".join(items) + "}"
    else:
        pieces = [draw.choice(_PIECES) for _ in range(draw.between(1, 4))]
        notation = repr((" " if draw.chance(70) else "").join((["llvm"] if draw.chance(60) else []) + pieces))
    host = f", {wrong(draw)}" if draw.chance(10) else ""
    return (f"target = tedsl.target.Target({notation}{host})\n"
            "str(target), repr(target), hash(target), target.features, target.vector_bits, target.runs_here")


def name_script(draw: Draw) -> str:
    """Something that takes a name, with one of odd characters, or with another value."""
    name = repr("".join(draw.choice(_CHARACTERS) for _ in range(draw.between(0, 4)))) if draw.chance(80) else wrong(draw)
    if draw.chance(60):
        return f"named = {draw.choice(_NAMED).format(name)}\nstr(named), repr(named), hash(named)"
    return (f"B = te.compute((8,), lambda i: P[i, 0], 'B')\ns = te.create_schedule(B.op)\n{draw.choice(_STAGED).format(name)}\n"
            "str(s), str(tedsl.lower(s, [P, B]))")


def intrinsic_script(draw: Draw) -> str:
    """A formula with an intrinsic of LLVM by its name, built and run."""
    name, result = draw.choice(_INTRINSICS), draw.choice(_RESULTS)
    operands = "".join(f", {draw.choice(_OPERANDS)}" for _ in range(draw.between(0, 3)))
    call = draw.choice(("call_llvm_intrin", "call_llvm_pure_intrin"))
    return (f"B = te.compute((8,), lambda i: tir.{call}({result}, {name!r}{operands}).astype('float32'), 'B')\n"
            "f = tedsl.build(te.create_schedule(B.op), [P, B])\nf(np.ones((8, 8), 'float32'), np.zeros(8, 'float32'))")
