"""Dot products of bfloat16 into float32: a function in LLVM IR around one instruction."""

from __future__ import annotations

from typing import Any

from tedsl import te, tir
from tedsl.contrib.intrinsics.needs import target_with, whole
from tedsl.errors import ArgumentError

# c[0..16] = start + sum over p of a[2p], a[2p + 1] . b[p, :, 0], b[p, :, 1]
_CODE = """
declare <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float>, <32 x bfloat>, <32 x bfloat>)

define internal <16 x float> @tedsl_dot_bf16(<16 x float> %start, ptr %a, ptr %b, i32 %pairs) alwaysinline {
entry:
  %any = icmp sgt i32 %pairs, 0
  br i1 %any, label %loop, label %done
loop:
  %p = phi i32 [0, %entry], [%next, %loop]
  %acc = phi <16 x float> [%start, %entry], [%sum, %loop]
  %pa = getelementptr i32, ptr %a, i32 %p
  %word = load i32, ptr %pa, align 2
  %one = insertelement <16 x i32> poison, i32 %word, i64 0
  %words = shufflevector <16 x i32> %one, <16 x i32> poison, <16 x i32> zeroinitializer
  %left = bitcast <16 x i32> %words to <32 x bfloat>
  %pb = getelementptr <32 x bfloat>, ptr %b, i32 %p
  %right = load <32 x bfloat>, ptr %pb, align 2
  %sum = call <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float> %acc, <32 x bfloat> %left, <32 x bfloat> %right)
  %next = add nuw nsw i32 %p, 1
  %more = icmp slt i32 %next, %pairs
  br i1 %more, label %loop, label %done
done:
  %result = phi <16 x float> [%start, %entry], [%sum, %loop]
  ret <16 x float> %result
}

define void @tedsl_dot_bf16_set(ptr %c, ptr %a, ptr %b, i32 %pairs) {
  %r = call <16 x float> @tedsl_dot_bf16(<16 x float> zeroinitializer, ptr %a, ptr %b, i32 %pairs)
  store <16 x float> %r, ptr %c, align 4
  ret void
}

define void @tedsl_dot_bf16_add(ptr %c, ptr %a, ptr %b, i32 %pairs) {
  %start = load <16 x float>, ptr %c, align 4
  %r = call <16 x float> @tedsl_dot_bf16(<16 x float> %start, ptr %a, ptr %b, i32 %pairs)
  store <16 x float> %r, ptr %c, align 4
  ret void
}
"""


def dot_bf16(depth: int, target: Any = None) -> te.TensorIntrin:
    """Returns the intrinsic c[i] = sum(a[k] * b[k // 2, i, k % 2] for k in 0..depth) for i in 0..16: a and b bfloat16, c
    float32. AVX-512 BF16.

    The instruction adds pairs and treats denormals as zero: results are those of float32 up to the order of additions.
    """
    depth = whole("dot_bf16", "the depth", depth)
    if depth < 2 or depth % 2:
        raise ArgumentError(f"dot_bf16: the depth is {depth}; the instruction takes pairs", hint="an even number of at least 2")
    target_with("dot_bf16", target, "x86-64", "avx512bf16")
    a, b = te.placeholder((depth,), "bfloat16", name="a"), te.placeholder((depth // 2, 16, 2), "bfloat16", name="b")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((16,), lambda i: te.sum(a[k].astype("float32") * b[k // 2, i, k % 2].astype("float32"), axis=k), name="c")

    def call(name: str, ins: Any, outs: Any, access: str) -> tir.Stmt:
        called = tir.call_extern("int32", name, outs[0].access_ptr(access), ins[0].access_ptr("r"), ins[1].access_ptr("r"),
                                 depth // 2)
        return tir.AttrStmt(tir.StringImm(name), "pragma_import_llvm", tir.StringImm(_CODE), tir.Evaluate(called))

    def parts(ins: Any, outs: Any) -> Any:
        return (call("tedsl_dot_bf16_set", ins, outs, "w"), outs[0].vstore([0], tir.const(0, "float32x16")),
                call("tedsl_dot_bf16_add", ins, outs, "rw"))

    return te.decl_tensor_intrin(c.op, parts, name="dot_bf16", default_buffer_params={"offset_factor": 1})
