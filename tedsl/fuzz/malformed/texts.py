"""Texts that are nearly right: journals as JSON, notations of targets, names, and LLVM's intrinsics. As scripts."""

from __future__ import annotations

import functools
import json
from typing import Any

from tedsl import te
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


@functools.cache
def _journals() -> tuple[str, ...]:
    """Journals of a few schedules, as JSON."""
    found = []
    for directed in (_tiled, _cached, _reduced):
        s, stage = _schedule()
        directed(s, stage)
        found.append(s.journal.to_json())
    return tuple(found)


def _schedule() -> tuple[Any, Any]:
    P = te.placeholder((8, 8), name="P")
    k = te.reduce_axis((0, 8), "k")
    B = te.compute((8,), lambda i: te.sum(P[i, k], axis=k), name="B")
    return te.create_schedule(B.op), B


def _tiled(s: Any, B: Any) -> None:
    outer, inner = s[B].split(B.op.axis[0], factor=4)
    s[B].reorder(inner, outer)
    s[B].vectorize(inner)


def _cached(s: Any, B: Any) -> None:
    copy = s.cache_read(B.op.input_tensors[0], "local", [B])
    s[copy].compute_at(s[B], B.op.axis[0])
    s[copy].pragma(copy.op.axis[1], "auto_unroll_max_step", 16)


def _reduced(s: Any, B: Any) -> None:
    outer, _ = s[B].split(B.op.reduce_axis[0], nparts=2)
    part = s.rfactor(B, outer)
    s[part].unroll(part.op.axis[0])
    s[B].parallel(s[B].op.axis[0])


def journal_script(draw: Draw) -> str:
    """A journal as JSON with one thing in it changed, read and replayed."""
    text = draw.choice(_journals())
    if draw.chance(30):
        at = draw.which(len(text))
        text = text[:at] + draw.choice(("", "[", "}", '"', "null", "9", ",", "\\ud800", "NaN",
        "-")) + text[at + draw.which(3):]
    else:
        data = json.loads(text)
        for _ in range(draw.between(1, 2)):
            data = _changed(data, draw)
        text = json.dumps(data)
    given = repr(text.encode("utf-8", "replace")) if draw.chance(5) else repr(text)
    return (f"journal = te.Journal.from_json({given})\nstr(journal), repr(journal)\nk = te.reduce_axis((0, 8), 'k')\n"
            "B = te.compute((8,), lambda i: te.sum(P[i, k], axis=k), name='B')\ns = te.create_schedule(B.op)\n"
            "s.replay(journal)\nstr(s), str(s.journal), tedsl.lower(s, [P, B])")


def _changed(data: Any, draw: Draw) -> Any:
    """JSON data with another value at one place, or without it."""
    if draw.chance(25) or not data or not isinstance(data, (dict, list)):
        return draw.choice((None, True, -1, 0, 3, 2**70, 1.5, 1e400, "", "x", "B", "i.outer", "\ud800", [], {}, [[]],
        ["B"], {"a": 1}))
    if isinstance(data, dict):
        key = draw.choice(list(data))
        if draw.chance(15):
            return {k: v for k, v in data.items() if k != key}
        renamed = draw.choice(("", "stage", "\ud800", "x")) if draw.chance(10) else key
        return {renamed if k == key else k: _changed(v, draw) if k == key else v for k, v in data.items()}
    at = draw.which(len(data))
    if draw.chance(15):
        return data[:at] + data[at + 1:] if draw.chance(50) else [*data, data[at]]
    return [_changed(v, draw) if k == at else v for k, v in enumerate(data)]
