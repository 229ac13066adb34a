"""The extension module of a wheel, in LLVM IR: entry points of kernels for Python, and what makes builtin functions of them.

    accept(ndarray, number)    the type of numpy's arrays, and its number of the dtype bfloat16 (-1: unknown). Before, and where
                               numpy's fields are not where they should be, every call goes through `calls.py`.
    make(index, call)          the builtin function of kernel `index`, whose `self` is `call`, the checked call in Python

It uses names of the stable ABI alone, so one file serves CPython 3.11 and all later ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.codegen.kernels.symbol import KernelSymbol
from tedsl.codegen.llvm.entry.disjoint import disjoint_source
from tedsl.codegen.llvm.entry.numpy_arrays import CPYTHON, NumpyEntry
from tedsl.codegen.llvm.export.library import Function
from tedsl.codegen.llvm.types import global_name
from tedsl.runtime.arguments.numpy_fields import Layout
from tedsl.runtime.signature import Signature

_FASTCALL, _KEYWORDS = 0x80, 0x02  # METH_FASTCALL, METH_KEYWORDS
# What an extension takes from CPython.
PYTHON_NAMES = frozenset((
    "PyModule_Create2", "PyCFunction_NewEx", "PyLong_AsSsize_t", "PyErr_BadArgument", "PyTuple_New", "PyTuple_SetItem",
    "PyObject_CallObject", "PyObject_CallMethod", "PyLong_AsLongLongAndOverflow", "PyFloat_AsDouble", "PyFloat_FromDouble",
    "PyLong_FromLongLong", "PyLong_FromUnsignedLongLong", "PyBool_FromLong", "PyEval_SaveThread", "PyEval_RestoreThread",
    "Py_IncRef", "Py_DecRef", "PyLong_Type", "PyFloat_Type", "_Py_NoneStruct"))
_TYPES = {"int": "@PyLong_Type", "float": "@PyFloat_Type"}


def extension_source(name: str, functions: Sequence[tuple[Function, bool, str]]) -> str:
    """Returns the IR of the extension module `name`. functions: with whether the GIL is always released, and the docstring."""
    entries, methods, texts = [], [], []
    for k, (function, release, doc) in enumerate(functions):
        entry = _ExtensionEntry(f"{function.symbol}.python", function.signature, function.general, function.compact, release)
        entries.append(entry.text())
        texts += [_text(f"name.{k}", function.signature.name), _text(f"doc.{k}", doc)]
        methods.append(_method(f"@name.{k}", global_name(entry.symbol()), _FASTCALL | _KEYWORDS, f"@doc.{k}"))
    texts += [_text("module.name", name), _text("accept.name", "accept"), _text("make.name", "make")]
    own = [_method("@accept.name", "@accept", _FASTCALL, "null"), _method("@make.name", "@make", _FASTCALL, "null"),
           _method("null", "null", 0, "null")]
    tables = [f"@methods = internal global [{len(methods)} x %Method] [{', '.join(methods)}]",
              f"@own_methods = internal global [{len(own)} x %Method] [{', '.join(own)}]"]
    module = _MODULE.replace("MODULE_NAME", name).replace("COUNT", str(len(methods)))
    return "\n".join([CPYTHON, module, *texts, *tables, disjoint_source(entries), *entries])


def _method(name: str, function: str, flags: int, doc: str) -> str:
    return f"%Method {{ ptr {name}, ptr {function}, i32 {flags}, ptr {doc} }}"


def _text(name: str, text: str) -> str:
    data = text.encode() + b"\0"
    spelled = "".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02X}" for c in data)
    return f'@{name} = private unnamed_addr constant [{len(data)} x i8] c"{spelled}"'


class _ExtensionEntry(NumpyEntry):
    """Emits the entry point of a kernel with the names of an extension module."""

    def __init__(self, symbol: str, sig: Signature, general: KernelSymbol, compact: KernelSymbol | None, release: bool) -> None:
        super().__init__(sig, general, compact, Layout(), release)
        self._symbol = symbol

    def symbol(self) -> str:
        return self._symbol

    def type_address(self, name: str) -> str:
        return _TYPES.get(name) or self.assign("load ptr, ptr @ndarray")

    def none_address(self) -> str:
        return "@_Py_NoneStruct"

    def array_place(self, obj: str, type_: str, slot: str) -> str:
        return slot

    def bfloat16_number(self) -> str:
        return self.assign("load i32, ptr @bfloat16_number")

    def checked_call(self) -> list[str]:
        return ["  %answer = call ptr @call_slowly(ptr %self, ptr %args, i64 %count)", "  ret ptr %answer"]


_MODULE = """
%Method = type { ptr, ptr, i32, ptr }
%Definition = type { i64, ptr, ptr, i64, ptr, ptr, ptr, i64, ptr, ptr, ptr, ptr, ptr }
@ndarray = internal global ptr null
@bfloat16_number = internal global i32 -1
@definition = internal global %Definition { i64 1, ptr null, ptr null, i64 0, ptr null, ptr @module.name, ptr null, i64 -1,
    ptr @own_methods, ptr null, ptr null, ptr null, ptr null }
@PyLong_Type = external global i8
@PyFloat_Type = external global i8
@_Py_NoneStruct = external global i8
declare ptr @PyModule_Create2(ptr, i32)
declare ptr @PyCFunction_NewEx(ptr, ptr, ptr)
declare i64 @PyLong_AsSsize_t(ptr)
declare i32 @PyErr_BadArgument()
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyObject_CallObject(ptr, ptr)
declare double @llvm.fabs.f64(double)
declare double @llvm.copysign.f64(double, double)

define ptr @PyInit_MODULE_NAME() {
  %module = call ptr @PyModule_Create2(ptr @definition, i32 1013)
  ret ptr %module
}

define internal ptr @accept(ptr %self, ptr %args, i64 %count) {
entry:
  %two = icmp eq i64 %count, 2
  br i1 %two, label %read, label %bad
read:
  %type = load ptr, ptr %args
  %number_at = getelementptr ptr, ptr %args, i64 1
  %number_object = load ptr, ptr %number_at
  %number = call i64 @PyLong_AsSsize_t(ptr %number_object)
  %narrow = trunc i64 %number to i32
  call void @Py_IncRef(ptr %type)
  store ptr %type, ptr @ndarray
  store i32 %narrow, ptr @bfloat16_number
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
bad:
  %b = call i32 @PyErr_BadArgument()
  ret ptr null
}

define internal ptr @make(ptr %self, ptr %args, i64 %count) {
entry:
  %two = icmp eq i64 %count, 2
  br i1 %two, label %read, label %bad
read:
  %index_object = load ptr, ptr %args
  %index = call i64 @PyLong_AsSsize_t(ptr %index_object)
  %known = icmp ult i64 %index, COUNT
  br i1 %known, label %found, label %bad
found:
  %call_at = getelementptr ptr, ptr %args, i64 1
  %call = load ptr, ptr %call_at
  %method = getelementptr %Method, ptr @methods, i64 %index
  %function = call ptr @PyCFunction_NewEx(ptr %method, ptr %call, ptr null)
  ret ptr %function
bad:
  %b = call i32 @PyErr_BadArgument()
  ret ptr null
}

define internal ptr @call_slowly(ptr %call, ptr %args, i64 %count) {
entry:
  %tuple = call ptr @PyTuple_New(i64 %count)
  %lost = icmp eq ptr %tuple, null
  br i1 %lost, label %fail, label %each
fail:
  ret ptr null
each:
  %k = phi i64 [ 0, %entry ], [ %k1, %put ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %put, label %run
put:
  %at = getelementptr ptr, ptr %args, i64 %k
  %arg = load ptr, ptr %at
  call void @Py_IncRef(ptr %arg)
  %r = call i32 @PyTuple_SetItem(ptr %tuple, i64 %k, ptr %arg)
  %k1 = add i64 %k, 1
  br label %each
run:
  %answer = call ptr @PyObject_CallObject(ptr %call, ptr %tuple)
  call void @Py_DecRef(ptr %tuple)
  ret ptr %answer
}
"""
