"""The readable notation: programs as loops of Python, `mod.readable()` and `mod.show()`. `tedsl/ir/text.py` prints
the notation of TVM 0.8, `tedsl/ir/tvmscript/` TVMScript.

    def main(A: float32[64, 100], B: float32[64, 100]):
        for i in parallel(64):
            for j.outer in range(7):
                at = j.outer*16
                B[i, at : at+16] = A[i, at : at+16] + 1.0 where at + arange(16) < 100

- A buffer has one name, its dtype and its shape; what is not row-major from element 0 is said in a comment below.
- Indices are those of the formula wherever they are proved to be (tedsl/arith/places.py); where they are not, and where several
  buffers share memory, `B.data[i*100]` is an element of the memory of `B`, counted from its beginning.
- A vector of elements is a slice, as in numpy: `A[i, 0:16]`. `arange(16)` is the vector 0, 1, ..., 15.
- `where <mask>` behind a statement: only the lanes that it allows are read and written.
- `a if c else b` evaluates the side that is chosen; `where(c, a, b)` evaluates both.
- Operators bind as in Python, and parentheses stand only where they are needed, so the order of evaluation can be read.
  Constants have no dtype: it is that of what they meet.
- `at = ...` names an index that a statement uses several times.
- No line is longer than 110 columns, unless a name is.

    printer      the walk, names, what a line is                expressions, calls   what is computed
    statements   loops, memory, functions                       wrap                 lines that are too long
"""

from __future__ import annotations

from reprlib import recursive_repr
from typing import Any

from tedsl.ir.expr import Expr
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.node import Node
from tedsl.ir.operators import LazyEqual
from tedsl.ir.script.printer import Places, ScriptPrinter
from tedsl.ir.script.statements import SCRIPT
from tedsl.ir.stmt import Stmt
from tedsl.ir.text import LONGEST_REPR


def script(node: Any, name: str | None = None) -> str:
    """The text of a module, function, statement or expression in the readable notation. name: replaces that of a function."""
    if isinstance(node, IRModule):
        return "\n\n".join(script(func, key) for key, func in node.items())
    if not isinstance(node, Node):
        return str(node)  # a number that stands for an expression
    return ScriptPrinter(SCRIPT, _places(node), name).text(node)


def script_with_lines(func: PrimFunc, name: str | None = None) -> tuple[str, dict[Stmt, int]]:
    """What `script` returns for a function, and the line of each of its statements, counted from 0."""
    return ScriptPrinter(SCRIPT, _places(func), name).text_with_lines(func)


def shown(value: Any) -> str:
    """The text of `value` for the sentence of an error: an expression, or those of a list or tuple, in the readable notation on
    one line; repr() of any other value (a number, a text in quotes, an axis with its range).
    """
    if isinstance(value, LazyEqual):
        value = value.asobject()
    if type(value) is list:
        return _listed(value)
    if type(value) is tuple:
        return f"({', '.join(map(shown, value))}{',' * (len(value) == 1)})"
    return ScriptPrinter(SCRIPT, {}, longest=LONGEST_REPR).print(value) if isinstance(value, Expr) else repr(value)


@recursive_repr("[...]")  # a list may hold itself
def _listed(values: list[Any]) -> str:
    return f"[{', '.join(map(shown, values))}]"


def _places(node: Any) -> Places:
    """The multi-dimensional indices proved for the flat accesses of a function."""
    if not isinstance(node, PrimFunc):
        return {}
    from tedsl.arith.places import places_of  # only what is shown to people needs proofs here

    return places_of(node)
