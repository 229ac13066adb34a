"""Functions whose kernels only note what they were called with: for tests of the way into a kernel, without the compiler.
"""

import ctypes

import llvmlite.binding as llvm

from tedsl.codegen.kernels.abi import kernel_arguments
from tedsl.codegen.llvm import entry
from tedsl.codegen.llvm.linking import jit, lljit
from tedsl.codegen.llvm.types import argument_type
from tedsl.ir import build
from tedsl.ir.buffer import Buffer, decl_buffer
from tedsl.ir.expr import IntImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import Store, seq
from tedsl.passes.assume_compact import assume_compact
from tedsl.runtime.arguments.array_entry import shared_of
from tedsl.runtime.call import CheckedCall
from tedsl.runtime.layout import array_layout
from tedsl.runtime.signature import signature_of


def array(name, *shape, dtype="float32", symbolic_strides=False, **options):
    """A buffer; `symbolic_strides` as lowering makes them for symbolic shapes."""
    if symbolic_strides:
        options["strides"] = [Var("stride") for _ in shape]
    return decl_buffer(shape, dtype, name, **options)


def function(*args, outputs=(), noalias=True, name="f"):
    """A PrimFunc of buffers and variables that stores to the buffers named in `outputs`."""
    params = [Var(a.name + "_1", "handle") if isinstance(a, Buffer) else a for a in args]
    stores = [Store(a.data, build.const(0, a.dtype), IntImm("int32", 0)) for a in args
              if isinstance(a, Buffer) and a.name in outputs]
    buffers = {p: a for p, a in zip(params, args) if isinstance(a, Buffer)}
    return PrimFunc(tuple(params), seq(*stores), None, buffers, {"global_symbol": name, "tir.noalias": noalias})


def _kernel(symbol, version, types, status):
    arguments = ", ".join(f"{t} %a{k}" for k, t in enumerate(types))
    lines = [f"define i32 @{symbol}({arguments}) {{", f"  store i64 {version}, ptr @seen"]
    for k, type_ in enumerate(types):
        lines += [f"  %p{k} = getelementptr i64, ptr @seen, i64 {k + 1}", f"  store {type_} %a{k}, ptr %p{k}"]
    return "\n".join([*lines, f"  ret i32 {status}", "}", ""])


class StandIn:
    """`fast`: the entry point compiled for the function. `shared`: one that functions share, if it serves this one, else
    `fast`. `checked`: the way through Python. `ways`: all of these.

    seen(0): the version that ran last, 1 for any strides, 2 for compact arrays; seen(1), ...: its arguments.
    """

    def __init__(self, func, status=0, messages=(), release=False):
        self.signature = signature_of(func)
        pointers = len(func.buffer_map)
        general = entry.KernelSymbol(f"{func.name}.kernel", tuple(kernel_arguments(func)[pointers:]))
        source = self._version(func.name, general, 1, pointers, status)
        assumed = assume_compact(func)
        compact = None
        if assumed is not func:
            compact = entry.KernelSymbol(f"{func.name}.compact.kernel", tuple(kernel_arguments(assumed)[pointers:]))
            source += self._version(func.name + ".compact", compact, 2, pointers, status)
        entry_point = entry.entry_source(self.signature, general, compact, array_layout(), release=release)
        source += entry.disjoint_source([entry_point]) + entry_point
        source = entry.declarations(source) + "@seen = global [32 x i64] zeroinitializer\n" + source
        lljit.initialize()
        machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="small")
        module = llvm.parse_assembly(source)
        module.verify()
        names = [f"{func.name}.call", f"{func.name}.entry", "seen"] + ([f"{func.name}.compact.call"] if compact else [])
        self.library = jit.link(machine.emit_object(module), names)
        self.checked, other = (CheckedCall(self.signature, self.library, self.library.address(f"{func.name}.call"),
                                           self.library.address(f"{func.name}.compact.call") if compact else 0,
                                           compact.scalars if compact else (), messages,
                                           lambda: jit.runtime_address("tedsl_time_calls")) for _ in range(2))
        self.fast = self.checked.with_entry(self.library.address(f"{func.name}.entry"))
        shared = shared_of(self.signature, release)
        self.shared = self.fast if shared is None else \
            other.with_shared_entry(shared.table, jit.shared_entry_address(shared.form))
        self.ways = list(dict.fromkeys((self.fast, self.shared, self.checked)))

    def _version(self, name, kernel, version, pointers, status):
        types = ["ptr"] * pointers + [argument_type(v.dtype) for v in kernel.scalars]
        return _kernel(kernel.symbol, version, types, status) + entry.call_source(name, kernel, pointers)

    def seen(self, k, kind=ctypes.c_int64):
        return kind.from_address(self.library.address("seen") + 8 * k).value

    def forget(self):
        ctypes.memset(self.library.address("seen"), 0, 256)
