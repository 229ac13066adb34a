"""Scripts that construct nodes from arguments some of which are wrong."""

from __future__ import annotations

from tedsl.fuzz.draw import Draw

PRELUDE = """\
import numpy as np
import tedsl
from tedsl import te, tir
i, n, x, h = te.var("i"), te.size_var("n"), te.var("x", "float32"), te.var("h", "handle")
c = i < n
A = tir.decl_buffer((8, 8), name="A")
P = te.placeholder((8, 8), name="P")
axis = te.reduce_axis((0, 8), "k")
R = tedsl.ir.iters.Range(0, 8)
S = tir.Evaluate(i)
F = tir.PrimFunc([i], S)
combiner = tir.CommReducer([x], [te.var("y", "float32")], [x], [tir.FloatImm("float32", 0.0)])
"""

_BINARY = {f"tir.{name}": ("i", "n") for name in (
    "Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max", "EQ", "NE", "LT", "LE", "GT", "GE")}

# What makes a node, and arguments that it takes.
EXPRESSIONS: dict[str, tuple[str, ...]] = {
    **_BINARY,
    "tir.And": ("c", "c"), "tir.Or": ("c", "c"), "tir.Not": ("c",),
    "tir.Select": ("c", "i", "n"), "tir.Cast": ("'float32'", "i"), "tir.Let": ("i", "n", "i + 1"),
    "tir.Call": ("'float32'", "'tir.exp'", "(x,)"), "tir.Ramp": ("i", "1", "4"), "tir.Broadcast": ("x", "4"),
    "tir.Shuffle": ("[x]", "[tir.IntImm('int32', 0)]"), "tir.Load": ("'float32'", "A.data", "i"), "tir.BufferLoad": ("A",
    "[i, n]"), "tir.ProducerLoad": ("P", "[i, n]"), "tir.Reduce": ("combiner", "[x]", "[axis]", "c", "0"),
    "tir.Var": ("'v'", "'int32'"), "tir.SizeVar": ("'v'", "'int64'"), "tir.IntImm": ("'int32'", "3"),
    "tir.FloatImm": ("'float32'", "1.5"), "tir.StringImm": ("'text'",),
    "te.const": ("3", "'int32'"), "te.max": ("x", "axis"), "te.if_then_else": ("c", "x", "1.0"), "te.exp": ("x",),
    "tir.call_intrin": ("'float32'", "'tir.exp'", "x"), "tir.call_extern": ("'int32'", "'f'", "i"),
    "tir.reinterpret": ("'int32'", "x"), "te.power": ("x", "x"), "te.floordiv": ("i", "n"), "te.round": ("x",),
}
STATEMENTS: dict[str, tuple[str, ...]] = {
    "tir.For": ("i", "0", "8", "0", "S"), "tir.While": ("c", "S"), "tir.LetStmt": ("i", "n", "S"),
    "tir.AttrStmt": ("A.data", "'pragma_unroll_explicit'", "1", "S"), "tir.IfThenElse": ("c", "S", "S"),
    "tir.Allocate": ("A.data", "'float32'", "[8]", "True", "S"), "tir.Store": ("A.data", "x", "i"),
    "tir.BufferStore": ("A", "x", "[i, n]"), "tir.BufferRealize": ("A", "[R, R]", "c", "S"), "tir.SeqStmt": ("[S, S]",),
    "tir.ProducerStore": ("P", "x", "[i, n]"), "tir.ProducerRealize": ("P", "[R, R]", "c", "S", "'local'"),
    "tir.Evaluate": ("x",), "tir.AssertStmt": ("c", "'message'", "S"), "tir.Prefetch": ("A", "[R, R]"),
}
OTHERS: dict[str, tuple[str, ...]] = {
    "tir.PrimFunc": ("[i]", "S"), "tir.decl_buffer": ("(8, 8)", "'float32'", "'B'"), "tedsl.IRModule": ("{'main': F}",),
    "tir.BufferRegion": ("A", "[R, R]"),
    "tedsl.ir.iters.Range": ("0", "8"), "tir.IterVar": ("R", "i", "0"), "tir.CommReducer": ("[x]", "[x]", "[x]", "[x]"),
    "te.placeholder": ("(8, 8)", "'float32'", "'B'"), "te.compute": ("(8,)", "lambda i: P[i, 0]", "'B'"),
    "te.reduce_axis": ("(0, 8)", "'k'"), "te.thread_axis": ("(0, 8)", "'threadIdx.x'"), "te.var": ("'v'", "'int32'"),
    "te.create_schedule": ("te.compute((8,), lambda i: P[i, 0]).op",), "tedsl.nd.empty": ("(2, 2)", "'float32'"),
}
WRONG = (
    "None", "True", "0", "-1", "3", "2**31", "2**63", "-2**70", "1.5", "float('nan')", "float('inf')", "1j", "'x'", "''",
    "'int32'", "'int33'", "'float32x4'", "'float32x0'", "'int32x99999999999'", "'handle'", "'void'", "'\\ud800'", "'a\\0b'",
    "b'x'", "[]", "()", "{}", "set()", "[None]", "(1, 2, 3)", "[[1]]", "{1: 2}", "{'a': None}", "range(3)", "object()",
    "int", "len", "lambda *a: None", "np.float32(1)", "np.int64(3)", "np.zeros(3)", "np.bool_(True)", "np.dtype('float32')",
    "Ellipsis", "slice(1)", "NotImplemented", "i", "n", "x", "h", "c", "A", "A.data", "P", "P.op", "axis", "R", "S", "F",
    "combiner", "tir.Add", "tedsl.IRModule({'main': F})", "tir.Broadcast(x, 4)", "tir.Broadcast(i, 4)", "tir.Ramp(i, 1, 8)",
    "tir.StringImm('text')", "te.const(1, 'bool')", "te.const(300, 'int64')", "te.const(1.0, 'float16')",
    "te.max(x, axis=axis)", "iter([i])", "type('Odd', (), {'dtype': 'int32'})()",
)


def node_script(draw: Draw) -> str:
    """A script that makes a node from arguments of which one or two are wrong, and looks at it."""
    makers = draw.weighted({0: 5, 1: 4, 2: 3})
    table = (EXPRESSIONS, STATEMENTS, OTHERS)[makers]
    name = draw.choice(list(table))
    arguments = list(table[name])
    for _ in range(1 + draw.chance(30)):
        at, value = draw.which(len(arguments)), wrong(draw)
        nested = draw.choice((f"[{value}]", f"({value}, {arguments[at]})"))
        arguments[at] = nested if draw.chance(15) else value
    call = f"node = {name}({', '.join(arguments)})"
    return f"{call}\n{_look(makers, draw)}"


def wrong(draw: Draw) -> str:
    """The text of a value of any type."""
    return draw.choice(WRONG)


def _look(makers: int, draw: Draw) -> str:
    """The lines that use an accepted node: it is printed, and sometimes lowered, run or compiled."""
    if makers == 2:
        return "str(node), repr(node), hash(node)"
    stmt = "node" if makers else "tir.Evaluate(node)"
    deeper = draw.weighted({"str(func)": 10, "tedsl.lower(func)": 5, "tedsl.build(func)": 1, "func.script()": 2})
    return f"str(node), repr(node), hash(node)\nfunc = tir.PrimFunc([i, n, x, A.data], {stmt})\n{deeper}"
