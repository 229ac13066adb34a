"""TVMScript, `mod.script()`: programs as Python text in the notation of TVM 0.9 to 0.12.

    @T.prim_func
    def main(A: T.handle, B: T.handle):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        A_1 = T.match_buffer(A, (1024,), "float32")
        B_1 = T.match_buffer(B, (1024,), "float32")
        for i_outer in T.parallel(64):
            B_1[i_outer * 16:i_outer * 16 + 16] = A_1[i_outer * 16:i_outer * 16 + 16] + T.Broadcast(T.float32(1), 16)

- The text is Python: names are identifiers (`i.outer` is `i_outer`), each declared before its use. tedsl does not read it back.
- Flat memory is accessed through a buffer of one dimension: `C_2 = T.Buffer((n * m,), "float32", data=C_1.data)`. A vector is
  a slice where its elements are in a row; an access under a mask is `vload` or `vstore` with a predicate.
- What covers the rest of its block (an allocation, an attribute, an assertion, a let) is a statement of its own if it is the
  last of the block, else a `with`.
- `T.call_intrin(dtype, name, ...)` calls an operator that TVM does not have.

    names        what is declared where                    expressions, calls   what is computed
    printer      names as identifiers                      statements           loops, memory, functions
"""

from __future__ import annotations

from textwrap import indent

from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.tvmscript.expressions import EXPRESSIONS
from tedsl.ir.tvmscript.printer import TVMScriptPrinter
from tedsl.ir.tvmscript.statements import STATEMENTS

TABLE = {**EXPRESSIONS, **STATEMENTS}


def tvmscript(program: IRModule | PrimFunc, prefix: str = "T") -> str:
    """The text of a module or function. prefix: the name of `tvm.script.tir` in it."""
    if isinstance(program, PrimFunc):
        return f"# from tvm.script import tir as {prefix}\n\n{_function(program, prefix, program.name)}"
    functions = [indent(_function(func, prefix, name), " " * 4) for name, func in program.items()]
    return (f"# from tvm.script import ir as I\n# from tvm.script import tir as {prefix}\n\n"
            f"@I.ir_module\nclass Module:\n" + ("\n\n".join(functions) or "    pass"))


def _function(func: PrimFunc, prefix: str, name: str) -> str:
    return TVMScriptPrinter(TABLE, prefix, name).print(func)
