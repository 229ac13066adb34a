"""Writes docs/mistakes.md: common mistakes with their messages, by running them.

python docs/mistakes.py            writes the page
python docs/mistakes.py --check    fails if the page is not what the code says
"""

from __future__ import annotations

import linecache
import pathlib
import re
import sys
import textwrap
import warnings

PAGE = pathlib.Path(__file__).with_suffix(".md")
HEAD = """\
# What tedsl says when something is wrong

Common mistakes and the message of each, made by `python docs/mistakes.py`, which runs them. All begin with

```python
{setup}```
"""
SETUP = """\
import numpy as np
import tedsl
from tedsl import te, tir, topi

n = 64
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
s = te.create_schedule(B.op)
i = B.op.axis[0]
x = np.arange(n, dtype="float32")
"""
# By heading: pairs of a sentence and a program.
MISTAKES: dict[str, list[tuple[str, str]]] = {
    "Formulas": [
        ("numpy's functions compute numbers; a formula is not a number.",
         'te.compute((n,), lambda i: np.exp(A[i]), name="C")'),
        ("Whole tensors are multiplied by topi.", "A @ B"),
        ("A tensor has no methods of numpy's arrays: topi has the operators.", "A.reshape((8, 8))"),
        ("Python's `range` and `sum` count with numbers; a reduction has an axis.",
         'te.compute((n,), lambda i: sum(A[j] for j in range(i)), name="C")'),
        ("An element is one value.", "te.compute((n,), lambda i: A[i][0])"),
        ("A str is not an operand.", 'te.compute((n,), lambda i: A[i] + "1")'),
        ("A tensor is defined once.", "B.shape = (8, 8)"),
        ("Arguments that are missing, or that a function does not have.", "topi.nn.conv2d(A, B)"),
        ("Python's `and` asks for a truth value.", "te.compute((n,), lambda i: te.if_then_else(i > 1 and i < 9, A[i], 0.0))"),
        ("An index beyond the tensor is found when the loops are made, with the line of the formula.",
         'C = te.compute((n,), lambda i: A[i + 1], name="C")\ntedsl.build(te.create_schedule(C.op), [A, C])'),
    ],
    "Schedules": [
        ("A directive of a stage on the schedule.", "s.split(i, factor=4)"),
        ("A schedule is not called.", "s(x)"),
        ("Nor is a stage deleted.", "del s[B]"),
        ("A method that takes no arguments.", "s.normalize(3)"),
        ("A loop that was split no longer exists.", "s[B].split(i, factor=4)\ns[B].vectorize(i)"),
        ("A parallel loop over a reduction would race.",
         'k = te.reduce_axis((0, n), "k")\nC = te.compute((1,), lambda _: te.sum(A[k], axis=k), name="C")\n'
         "t = te.create_schedule(C.op)\nt[C].parallel(k)"),
    ],
    "Building": [
        ("A result that is not among the arguments is computed and dropped: a warning.", "tedsl.build(s, [A])"),
        ("Arrays are given when the built function is called.", "tedsl.build(s, [x, B])"),
        ("A pass that does not exist: a warning.", 'tedsl.transform.PassContext(disabled_pass=["VectoriseLoop"])'),
        ("An option of a target without a value.", 'tedsl.target.Target("llvm -mcpu=")'),
        ("A module of loops is built before it is called.", "tedsl.lower(s, [A, B])(x)"),
        ("A target that does not exist.", 'tedsl.build(s, [A, B], target="gpu")'),
        ("A target with an open quote.", """tedsl.target.Target('llvm -mcpu="haswell')"""),
        ("A pass that correct code needs cannot be left out.",
         'with tedsl.transform.PassContext(disabled_pass=["tir.StorageFlatten"]):\n    tedsl.build(s, [A, B])'),
        ("What TVM has and tedsl has not can be imported, not used.", "from tedsl import relax\nrelax.build(None)"),
    ],
    "Calls": [
        ("A result goes into an array that can hold it: a slice is not contiguous, and a copy of it would be lost.",
         "f = tedsl.build(s, [A, B])\nout = np.zeros((n, 2), 'float32')[:, 0]\nf(x, out)"),
        ("A result cannot be written to a read-only array.",
         "f = tedsl.build(s, [A, B])\nout = np.zeros(n, 'float32')\nout.flags.writeable = False\nf(x, out)"),
        ("Memory without a dtype.", "f = tedsl.build(s, [A, B])\nf(x, bytearray(4 * n))"),
        ("An NDArray holds values and has no operators.", "tedsl.nd.array(x) + 1"),
        ("More memory than there is.", "tedsl.nd.empty((2**60,))"),
        ("Two arguments that share memory.", "f = tedsl.build(s, [A, B])\nf(x, x)"),
        ("A dtype that differs.", "f = tedsl.build(s, [A, B])\nf(x.astype('float64'), x.copy())"),
    ],
    "Indices that are data": [
        ("By default an index read from data is clamped to its tensor. With `check` it is an error of the call.",
         'K = te.placeholder((n,), "int32", name="K")\nC = te.compute((n,), lambda i: A[K[i]], name="C")\n'
         'with tedsl.transform.PassContext(config={"tir.data_index": "check"}):\n'
         "    f = tedsl.build(te.create_schedule(C.op), [A, K, C])\nf(x, np.full(n, 70, 'int32'), np.empty(n, 'float32'))"),
    ],
    "Loops written by hand": [
        ("A node of a wrong type is refused when it is made.", "tir.Allocate(0, 'float32', [n], True, tir.Evaluate(0))"),
        ("Intrinsics of LLVM that a kernel may not run.", 'ib = tir.ir_builder.create()\n'
         'ib.emit(tir.call_llvm_intrin("int32", "llvm.x86.wbinvd", tir.const(0, "uint32")))\n'
         "tedsl.build(tir.PrimFunc([], ib.get()))"),
        ("A return where iterations run together.", 'ib = tir.ir_builder.create()\n'
         'with ib.for_range(0, 8, "i", kind="parallel") as i:\n    ib.emit(tir.ret(i))\n'
         "tedsl.build(tir.PrimFunc([], ib.get()))"),
        ("A function of the module that is called with too little.",
         'B, k = tir.decl_buffer((n,), "float32", "B"), te.var("k")\n'
         'g = tir.PrimFunc([B, k], tir.Store(B.data, tir.const(1.0), k)).with_attr("global_symbol", "g")\n'
         'call = tir.call_extern("int32", "g", B.access_ptr("w"))\n'
         'f = tir.PrimFunc([B], tir.Evaluate(call)).with_attr("global_symbol", "f")\n'
         "tedsl.build([f, g])"),
        ("A function that calls itself.",
         'f = tir.PrimFunc([], tir.Evaluate(tir.call_packed("f"))).with_attr("global_symbol", "f")\ntedsl.build(f)'),
        ("A name that no text can hold.", 'te.placeholder((n,), name="\\ud800")'),
        ("A journal that was damaged.", 'tedsl.Journal.from_json(\'{"version": "x", "directives": 3}\')'),
    ],
}


def page() -> str:
    """The whole page."""
    parts = [HEAD.format(setup=SETUP)]
    for heading, mistakes in MISTAKES.items():
        parts.append(f"\n## {heading}\n")
        for sentence, program in mistakes:
            parts.append(f"\n{sentence}\n\n```python\n{program}\n```\n\n```\n{message_of(program)}\n```\n")
    return "".join(parts)


def message_of(program: str) -> str:
    """The error or warning of `program`, which is run as program.py after the lines of SETUP."""
    source = SETUP + program
    linecache.cache["program.py"] = (len(source), None, source.splitlines(keepends=True), "program.py")
    names: dict[str, object] = {"__name__": "program"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(compile(source, "program.py", "exec"), names)
        except Exception as error:
            return wrapped(f"{type(error).__name__}: {error}")
    if not caught:
        raise AssertionError(f"nothing is wrong with\n{program}")
    return wrapped(f"{caught[0].category.__name__}: {caught[0].message}")


def wrapped(message: str) -> str:
    """The message with long lines broken, and without parts that differ between machines."""
    message = re.sub(r"0x[0-9a-f]{6,}", "0x...", message)
    return "\n".join(textwrap.fill(line, 110, subsequent_indent="    ", drop_whitespace=True, break_on_hyphens=False)
                     for line in message.splitlines())


def main() -> int:
    text = page()
    if "--check" not in sys.argv:
        PAGE.write_text(text)
    elif PAGE.read_text() != text:
        print("docs/mistakes.md is not what the code says: run python docs/mistakes.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
