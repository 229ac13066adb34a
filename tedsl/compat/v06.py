"""The names of TVM 0.6: `import tedsl.compat.v06 as tvm` in place of `import tvm`.

In TVM 0.6 the language stood at the root (`tvm.placeholder`, `tvm.compute`, `tvm.create_schedule`), expressions in `tvm.expr`,
statements in `tvm.stmt`, passes over statements in `tvm.ir_pass`. Each name is that of today's tedsl.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tedsl.errors import missing_name

# A module of TVM 0.6, and the module that has its names here.
MODULES = {
    "_ffi": "tedsl._ffi", "api": "tedsl.compat.v06", "attrs": "tedsl.ir", "generic": "tedsl.tir",
    "arith": "tedsl.compat.arith", "autotvm": "tedsl.autotvm",
    "build_module": "tedsl.compat.build_module", "codegen": "tedsl.compat.build_module",
    "container": "tedsl.compat.container", "contrib": "tedsl.contrib", "datatype": "tedsl.target.datatype",
    "error": "tedsl.error", "expr": "tedsl.compat.expr", "hybrid": "tedsl.te.hybrid", "intrin": "tedsl.compat.v06",
    "ir_builder": "tedsl.tir.ir_builder", "ir_pass": "tedsl.compat.ir_pass",
    "make": "tedsl.compat.make", "module": "tedsl.compat.module", "nd": "tedsl.nd", "ndarray": "tedsl.nd",
    "node": "tedsl.compat.node", "object": "tedsl.compat.node", "relay": "tedsl.relay", "rpc": "tedsl.rpc",
    "runtime": "tedsl.runtime", "schedule": "tedsl.te.schedule",
    "stmt": "tedsl.compat.make", "tag": "tedsl.te.tag", "target": "tedsl.target", "te": "tedsl.te",
    "tensor": "tedsl.te.tensor", "tensor_intrin": "tedsl.compat.build_module", "testing": "tedsl.testing",
    "tir": "tedsl.tir", "topi": "topi",
    "transform": "tedsl.transform",
}
# The dtypes that had names at the root: `tvm.var("n", dtype=tvm.int32)`.
int8, int32, float32, handle = "int8", "int32", "float32", "handle"
# A function or class of the root, and the module that has it here; under another name after the colon.
NAMES = {
    **dict.fromkeys(("IRModule",), "tedsl.ir.func"),
    "build": "tedsl.driver", "lower": "tedsl.compat.build_module",
    **dict.fromkeys(("cpu", "gpu", "cuda", "opencl", "metal", "rocm", "vulkan", "context", "cl", "mtl", "vpi", "ext_dev",
                     "TVMContext"), "tedsl.nd"),
    **dict.fromkeys(("register_extension", "register_object", "register_error"), "tedsl"),
    "NodeBase": "tedsl.compat.node", "NDArray": "tedsl.nd", "register_node": "tedsl.compat.make",
    "TVMType": "tedsl.runtime:DataType", "TypeCode": "tedsl.runtime:DataTypeCode",
    **dict.fromkeys(("register_func", "get_global_func"), "tedsl.runtime.functions"),
    "get_env_func": "tedsl.runtime.functions:get_global_func", "LoweredFunc": "tedsl.compat.lowered_func",
    "build_config": "tedsl.compat.build_module", "BuildConfig": "tedsl.compat.build_module",
    "current_build_config": "tedsl.compat.build_module", "PassContext": "tedsl.transform",
    "convert": "tedsl.runtime", "Target": "tedsl.target", "TVMError": "tedsl.errors:TedslError",
    "Tensor": "tedsl.te", "Schedule": "tedsl.te", "Range": "tedsl.te",
    **dict.fromkeys(("decl_buffer", "layout", "bijective_layout", "call_packed", "call_extern", "call_pure_extern",
                     "call_llvm_intrin", "trace"), "tedsl.tir"),
    **dict.fromkeys(("load_json", "save_json"), "tedsl.ir"),
    "decl_tensor_intrin": "tedsl.compat.build_module",
    "call_intrin": "tedsl.compat.make", "call_pure_intrin": "tedsl.compat.make",
    "register_intrin_rule": "tedsl.compat.make",
    **dict.fromkeys(("int8", "int32", "float32", "handle"), "tedsl.compat.v06"),
    "select": "tedsl.tir:Select", "pow": "tedsl.te:power",
    **dict.fromkeys(("var", "size_var", "const", "min_value", "max_value", "placeholder", "compute", "scan", "extern",
                     "thread_axis", "reduce_axis", "create_schedule", "tag_scope", "comm_reducer",
                     "sum", "min", "max", "any", "all", "exp", "erf", "tanh", "sigmoid", "log", "cos", "sin", "atan", "sqrt",
                     "rsqrt", "floor", "ceil", "trunc", "abs", "round", "nearbyint", "isnan", "power", "popcount", "fmod",
                     "tan", "asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh", "log2", "log10", "log1p", "isfinite",
                     "isinf", "reinterpret",
                     "if_then_else", "div", "indexdiv", "indexmod", "truncdiv", "truncmod", "floordiv", "floormod"),
                    "tedsl.te"),
}


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return import_module(MODULES[name])
    if name not in NAMES:
        raise missing_name(__name__, name, [*NAMES, *MODULES])
    module, _, own = NAMES[name].partition(":")
    globals()[name] = getattr(import_module(module), own or name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*NAMES, *MODULES})
