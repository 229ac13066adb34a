"""A tile of a matrix product as a micro-kernel in LLVM IR: an outer product per step, the tile of c in vector registers."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tedsl import te, tir
from tedsl.contrib.intrinsics.needs import whole
from tedsl.errors import ArgumentError
from tedsl.target.current import as_target


def gemm_f32(m: int, n: int, k: int, target: Any = None) -> te.TensorIntrin:
    """Returns the intrinsic c[i, j] = sum(a[i, p] * b[p, j] for p in 0..k) for a tile of m rows and n columns, float32, any row
    strides.

    n must be a multiple of the target's vector width; the m * n / lanes vectors should fit its registers (12 of 16, 28 of 32).
    Raises ArgumentError for other n, and for an x86-64 target without fma.
    """
    m, n, k = (whole("gemm_f32", what, value) for what, value in (("m", m), ("n", n), ("k", k)))
    machine = as_target(target)
    lanes = machine.vector_lanes("float32")
    if machine.architecture == "x86-64" and not machine.has_fma:
        raise ArgumentError(f"gemm_f32 needs fma; target {machine}: it lacks fma", hint="for example llvm -mcpu=haswell")
    if min(m, n, k) < 1 or n % lanes:
        raise ArgumentError(f"gemm_f32: a tile of {m} x {n} over {k}; n is a multiple of the {lanes} lanes of {machine}",
                            hint=f"for example gemm_f32(6, {2 * lanes}, {k})")
    a, b = te.placeholder((m, k), name="a"), te.placeholder((k, n), name="b")
    p = te.reduce_axis((0, k), name="p")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, p] * b[p, j], axis=p), name="c")
    strided = {t: tir.decl_buffer(t.shape, t.dtype, t.op.name, strides=[te.var(f"ld{t.op.name}"), 1], offset_factor=1)
               for t in (a, b, c)}
    code, stem = _code(m, n, lanes), _stem(m, n, lanes)

    def call(kind: str, ins: Any, outs: Any) -> tir.Stmt:
        args = [outs[0].access_ptr("w" if kind == "set" else "rw"), outs[0].strides[0]]
        for buffer in ins:
            args += [buffer.access_ptr("r"), buffer.strides[0]]
        called = tir.call_extern("int32", f"{stem}_{kind}", *args, k)
        return tir.AttrStmt(tir.StringImm(stem), "pragma_import_llvm", tir.StringImm(code), tir.Evaluate(called))

    def parts(ins: Any, outs: Any) -> Any:
        zero = tir.const(0, f"float32x{lanes}")
        rows = [outs[0].vstore([i, j], zero) for i in range(m) for j in range(0, n, lanes)]
        return call("set", ins, outs), tir.SeqStmt(tuple(rows)) if len(rows) > 1 else rows[0], call("add", ins, outs)

    return te.decl_tensor_intrin(c.op, parts, name="gemm_f32", binds=strided)


def _stem(m: int, n: int, lanes: int) -> str:
    return f"tedsl_gemm_{m}x{n}x{lanes}"


@lru_cache(maxsize=32)
def _code(m: int, n: int, lanes: int) -> str:
    """Returns the functions that set and add to a tile: ptr c, stride of c, ptr a, stride of a, ptr b, stride of b, depth."""
    vector = f"<{lanes} x float>"
    tile = [(i, j) for i in range(m) for j in range(n // lanes)]
    parts = [f"declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})"]
    for kind in ("set", "add"):
        lines = [f"define void @{_stem(m, n, lanes)}_{kind}(ptr noalias %c, i32 %ldc, ptr noalias %a, i32 %lda, "
                 "ptr noalias %b, i32 %ldb, i32 %depth) {", "entry:"]
        lines += [f"  %ld{x}.wide = sext i32 %ld{x} to i64" for x in "abc"]
        for i in range(m):
            for x in "ac":
                lines += [f"  %{x}.at{i} = mul i64 %ld{x}.wide, {i}",
                          f"  %{x}.{i} = getelementptr float, ptr %{x}, i64 %{x}.at{i}"]
        for i, j in tile:
            lines.append(f"  %c.{i}.{j} = getelementptr float, ptr %c.{i}, i64 {j * lanes}")
            if kind == "add":
                lines.append(f"  %old.{i}.{j} = load {vector}, ptr %c.{i}.{j}, align 4")
        lines += ["  %any = icmp sgt i32 %depth, 0", "  br i1 %any, label %loop, label %done", "loop:",
                  "  %p = phi i32 [0, %entry], [%p.next, %loop]", "  %b.row = phi ptr [%b, %entry], [%b.next, %loop]"]
        old = {at: f"%old.{at[0]}.{at[1]}" if kind == "add" else "zeroinitializer" for at in tile}
        lines += [f"  %acc.{i}.{j} = phi {vector} [{old[i, j]}, %entry], [%sum.{i}.{j}, %loop]" for i, j in tile]
        for j in range(n // lanes):
            lines += [f"  %b.{j}.p = getelementptr float, ptr %b.row, i64 {j * lanes}",
                      f"  %b.{j} = load {vector}, ptr %b.{j}.p, align 4"]
        for i in range(m):
            lines += [f"  %a.{i}.p = getelementptr float, ptr %a.{i}, i32 %p",
                      f"  %a.{i}.s = load float, ptr %a.{i}.p, align 4",
                      f"  %a.{i}.i = insertelement {vector} poison, float %a.{i}.s, i64 0",
                      f"  %a.{i}.v = shufflevector {vector} %a.{i}.i, {vector} poison, <{lanes} x i32> zeroinitializer"]
            lines += [f"  %sum.{i}.{j} = call {vector} @llvm.fma.v{lanes}f32({vector} %a.{i}.v, {vector} %b.{j}, "
                      f"{vector} %acc.{i}.{j})" for j in range(n // lanes)]
        lines += ["  %p.next = add nuw nsw i32 %p, 1", "  %b.next = getelementptr float, ptr %b.row, i64 %ldb.wide",
                  "  %more = icmp slt i32 %p.next, %depth", "  br i1 %more, label %loop, label %done", "done:"]
        lines += [f"  %new.{i}.{j} = phi {vector} [{old[i, j]}, %entry], [%sum.{i}.{j}, %loop]" for i, j in tile]
        lines += [f"  store {vector} %new.{i}.{j}, ptr %c.{i}.{j}, align 4" for i, j in tile]
        parts.append("\n".join([*lines, "  ret void", "}"]))
    return "\n\n".join(parts) + "\n"
