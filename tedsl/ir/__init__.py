"""The loop IR: dtypes, expressions, statements, functions, and the tools to walk, rebuild, print and run them.

    dtype -> node -> expr (the semantics) -> build (constructing expressions) -> iters, buffer -> stmt -> func
    walk/: visit, rebuild, substitute, compare           text, verify, evaluate: print, check, run (interpreter/)
    calls/: signatures of operators                      script/: the readable notation; tvmscript/: TVM's

`tedsl.ir.structural_equal` and the other names that programs use are imported lazily.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tedsl.absent import answer_in
from tedsl.aliases import import_as
from tedsl.errors import missing_name, public

if TYPE_CHECKING:
    from tedsl import transform as transform
    from tedsl.ir import container as container
    from tedsl.ir import instrument as instrument
    from tedsl.ir.calls.registered import register_intrin_lowering as register_intrin_lowering
    from tedsl.ir.calls.registered import register_op_attr as register_op_attr
    from tedsl.ir.container import Array as Array
    from tedsl.ir.container import Map as Map
    from tedsl.ir.expr import Expr
    from tedsl.ir.func import GlobalVar as GlobalVar
    from tedsl.ir.func import IRModule as IRModule
    from tedsl.ir.func import PrimFunc
    from tedsl.ir.iters import IterVar as IterVar
    from tedsl.ir.iters import Range as Range
    from tedsl.ir.ops import Op as Op
    from tedsl.ir.types import PointerType as PointerType
    from tedsl.ir.types import PrimType as PrimType
    from tedsl.ir.walk.equal import assert_structural_equal as assert_structural_equal
    from tedsl.ir.walk.equal import structural_equal as structural_equal
    from tedsl.ir.walk.equal import structural_hash as structural_hash
    from tedsl.ir.walk.serial import load_json as load_json
    from tedsl.ir.walk.serial import save_json as save_json

    PrimExpr, BaseFunc = Expr, PrimFunc

_NAMES = {
    "Array": "container", "BaseFunc": "func", "CallingConv": "func", "GlobalVar": "func", "IRModule": "func",
    "IterVar": "iters", "Map": "container", "Op": "ops", "PointerType": "types", "PrimExpr": "expr", "PrimType": "types",
    "Range": "iters",
    "assert_structural_equal": "walk.equal", "structural_equal": "walk.equal", "structural_hash": "walk.equal",
    "load_json": "walk.serial", "save_json": "walk.serial",
    "register_intrin_lowering": "calls.registered", "register_op_attr": "calls.registered",
    "Type": "types",
}
_ABOVE = {
    **dict.fromkeys(("Attrs", "DictAttrs", "EnvFunc", "make_node"), "tedsl.compat.reflection"),
    **dict.fromkeys(("FuncType", "GlobalTypeVar", "IncompleteType", "RelayRefType", "SequentialSpan", "SourceName", "Span",
                     "TensorType", "TupleType", "TypeCall", "TypeConstraint", "TypeKind", "TypeRelation", "TypeVar"),
                    "tedsl.compat.function_types"),
}


if not TYPE_CHECKING:  # for type checkers a misspelled name is an error
    def __getattr__(name: str) -> Any:
        if name in ("container", "instrument"):
            return import_module(f"tedsl.ir.{name}")
        if name == "transform":
            return import_module("tedsl.transform")  # it stands above; programs also look for it here
        if name not in _NAMES and name not in _ABOVE:
            raise missing_name(__name__, name, _NAMES)
        value = getattr(import_module(_ABOVE.get(name) or f"tedsl.ir.{_NAMES[name]}"),
                        {"PrimExpr": "Expr", "BaseFunc": "PrimFunc"}.get(name, name))
        globals()[name] = public(value, __name__, name)
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES, *_ABOVE, "container", "instrument", "transform"})


import_module("tedsl.ir.text")  # gives nodes the text that they print as
import_as(globals(), "attrs", "base", "function", "json_compact", "module", "op", "tensor_type", "type")
__path__.append(f"{__path__[0].removesuffix('ir')}compat/root/ir")  # `import tedsl.ir.transform` finds the file there
answer_in(globals())
